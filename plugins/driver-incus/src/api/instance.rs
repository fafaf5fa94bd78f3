//! Requests to `/1.0/instances`.

use super::model::{Instance, State};
use super::{Api, Outcome, Reply};
use crate::bodies::{Action, Change, Creation, Isolation, Move, StartDone};
use wharf_guest::{Call, Error, File, Path};

/// The engine unpacks an image into its pool at the first use, which takes many seconds.
const CREATE_ROUNDS: u32 = 6;
/// A move copies a disk. The host asks again.
const MOVE_ROUNDS: u32 = 2;
/// Starts and removals of many instances at once are slow.
const CHANGE_ROUNDS: u32 = 6;
/// Time for the engine to kill and clean up after the grace of a stop, ms.
const STOP_MARGIN_MS: u32 = 20_000;
/// Milliseconds of one wait.
const ROUND_MS: u32 = 5_000;
/// A change of limits of an instance, ms. The engine waits for other changes of the instance.
const CHANGE_MS: u32 = 30_000;
/// The first file of an instance mounts its disk, ms.
const FILE_MS: u32 = 30_000;

impl Api<'_> {
    fn instance(name: &str) -> Path {
        Path::new("/1.0/instances").segment(name)
    }

    /// Creates an instance, without a start.
    pub fn create(&self, body: &Creation) -> Result<Reply<Outcome>, Error> {
        let path = self.at_member(self.in_project(Path::new("/1.0/instances")));
        self.operate(&Call::post(&path).json(body)?, CREATE_ROUNDS)
    }

    /// Reads an instance.
    pub fn details(&self, name: &str) -> Result<Reply<Instance>, Error> {
        self.get(&self.in_project(Self::instance(name)))
    }

    /// Reads the usage of an instance.
    pub fn state(&self, name: &str) -> Result<Reply<State>, Error> {
        self.get(&self.in_project(Self::instance(name).segment("state")))
    }

    /// Changes an instance's limits.
    pub fn change(&self, name: &str, body: &Change) -> Result<Reply<()>, Error> {
        let path = self.in_project(Self::instance(name));
        self.send(&Call::patch(&path).json(body)?.timeout_ms(CHANGE_MS))
    }

    /// Notes that an instance's start has ended.
    pub fn note_start(&self, name: &str) -> Result<Reply<()>, Error> {
        let path = self.in_project(Self::instance(name));
        let body = StartDone::default();
        self.send(&Call::patch(&path).json(&body)?.timeout_ms(CHANGE_MS))
    }

    /// Lets the engine choose another range of ids, if the text differs from the present one.
    pub fn choose_ids(&self, name: &str, text: &str) -> Result<Reply<()>, Error> {
        let path = self.in_project(Self::instance(name));
        let body = Isolation::new(text);
        self.send(&Call::patch(&path).json(&body)?.timeout_ms(CHANGE_MS))
    }

    /// Brings a stopped instance from another member to this one.
    pub fn move_here(&self, name: &str) -> Result<Reply<Outcome>, Error> {
        let path = self.at_member(self.in_project(Self::instance(name)));
        let body = Move { migration: true };
        self.operate(&Call::post(&path).json(&body)?, MOVE_ROUNDS)
    }

    /// Starts an instance.
    pub fn start(&self, name: &str) -> Result<Reply<Outcome>, Error> {
        let path = self.in_project(Self::instance(name).segment("state"));
        self.operate(&Call::put(&path).json(&Action::start())?, CHANGE_ROUNDS)
    }

    /// Stops an instance within the grace.
    pub fn stop(&self, name: &str, grace_ms: u32) -> Result<Reply<Outcome>, Error> {
        let path = self.in_project(Self::instance(name).segment("state"));
        let body = Action::stop(grace_ms.div_ceil(1_000));
        let rounds = grace_ms.saturating_add(STOP_MARGIN_MS) / ROUND_MS;
        self.operate(&Call::put(&path).json(&body)?, rounds)
    }

    /// Stops an instance without grace.
    pub fn kill(&self, name: &str) -> Result<Reply<Outcome>, Error> {
        let path = self.in_project(Self::instance(name).segment("state"));
        self.operate(&Call::put(&path).json(&Action::kill())?, CHANGE_ROUNDS)
    }

    /// Removes an instance with its disk.
    pub fn remove(&self, name: &str) -> Result<Reply<Outcome>, Error> {
        let path = self.in_project(Self::instance(name));
        self.operate(&Call::delete(&path), CHANGE_ROUNDS)
    }

    /// Makes a directory in an instance, unless it has the directory. The host adds headers, without
    /// which the request would write a file.
    pub fn make_directory(&self, name: &str, directory: &str) -> Result<Reply<()>, Error> {
        self.send(&Call::post(&self.file_of(name, directory)).timeout_ms(FILE_MS))
    }

    /// Writes a file of an instance. The host adds its owner, its mode and its content.
    pub fn write(&self, name: &str, file: &File) -> Result<Reply<()>, Error> {
        let call = Call::post(&self.file_of(name, &file.path)).file(file);
        self.send(&call.timeout_ms(FILE_MS))
    }

    fn file_of(&self, name: &str, path: &str) -> Path {
        let files = self.in_project(Self::instance(name).segment("files"));
        files.query("path", path)
    }

    /// Reads the metrics of all running instances of this member.
    pub fn metrics(&self) -> Result<Reply<Vec<u8>>, Error> {
        let path = self.in_project(Path::new("/1.0/metrics"));
        let answer = self.accepted(&Call::get(&path))?;
        Ok(answer.map(|answer| answer.body))
    }
}
