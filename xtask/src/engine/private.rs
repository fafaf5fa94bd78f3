//! From nothing to an answering engine, and back to nothing.

use super::contents::{self, Contents};
use super::daemon::Daemon;
use super::kind::Kind;
use super::place::Place;
use super::podman::netavark::Networks;
use super::rules::NodeRules;
use super::storage::{self, Storage};
use super::{dockerd, leftovers, podman, userns};
use crate::http::{Client, Endpoint};
use crate::process::is_root;
use crate::say;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

/// What engine to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which kind.
    pub kind: Kind,
    /// Where its data and log are. One engine per directory.
    pub dir: PathBuf,
    /// Size of the storage that instances and images share; sparse, so it costs what is used. None:
    /// the file system that `dir` is on, where no disk sizes are enforced.
    pub disk_gib: Option<u64>,
    /// Starts empty and leaves nothing. Else data outlives a stop.
    pub disposable: bool,
}

/// A running private engine. Dropping it stops it.
#[derive(Debug)]
pub struct PrivateEngine {
    options: Options,
    place: Place,
    storage: Storage,
    rules: Option<NodeRules>,
    daemon: Option<Daemon>,
    stopped: bool,
    _lock: File,
}

impl PrivateEngine {
    /// Starts one, whatever an earlier run in the same directory left behind. Needs root;
    /// installs what is missing.
    pub fn start(options: Options) -> Result<Self> {
        if !is_root() {
            bail!("an engine of our own needs root");
        }
        super::install(options.kind)?;
        let place = Place::at(&options.dir)?;
        let lock = place.lock()?;
        userns::ensure(match options.kind {
            Kind::Dockerd => &userns::DOCKERD,
            Kind::Podman4 | Kind::Podman5 => &userns::PODMAN,
        })?;
        end_earlier_daemon(&place);
        fs::create_dir_all(&place.run)?;
        // What fails from here on is undone by its end.
        let mut engine = Self {
            options,
            place,
            storage: Storage::Directory,
            rules: None,
            daemon: None,
            stopped: false,
            _lock: lock,
        };
        engine.storage = storage::mount(&engine.place, engine.options.disk_gib)?;
        let id = &engine.place.id;
        engine.rules = Some(match engine.options.kind {
            Kind::Dockerd => NodeRules::for_private_engine(id)?,
            Kind::Podman4 | Kind::Podman5 => NodeRules::for_private_podman(id)?,
        });
        let left = podman::networks(&engine.place);
        engine.resume()?;
        if engine.options.disposable {
            Contents::all(engine.client()).remove()?;
            engine.forget_rules_of(&left)?;
        }
        Ok(engine)
    }

    /// Where it listens.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Unix(self.place.socket())
    }

    /// Speaks to it.
    pub fn client(&self) -> Client {
        Client::new(self.endpoint())
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.options.kind
    }

    /// Whether a container's disk size is enforced.
    pub fn enforces_disk_size(&self) -> bool {
        self.storage == Storage::Btrfs
    }

    /// Where it looks for files of the Container Device Interface that are for it alone, if it knows
    /// such.
    pub fn device_files(&self) -> Option<PathBuf> {
        match self.options.kind {
            Kind::Dockerd => None,
            Kind::Podman4 | Kind::Podman5 => Some(self.place.run.join("cdi")),
        }
    }

    /// Waits until the storage has nothing left to clean up, so that what is measured next is not
    /// slowed down by it.
    pub fn settle(&self) -> Result<()> {
        match self.storage {
            Storage::Btrfs => storage::settle(&self.place),
            Storage::Directory => Ok(()),
        }
    }

    /// Ends the engine's process alone: its socket is dead, its containers go on.
    pub fn pause(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.stop();
        }
        leftovers::end_containerd(&self.place);
    }

    /// Starts it again after [`Self::pause`].
    pub fn resume(&mut self) -> Result<()> {
        if self.daemon.is_none() {
            let (kind, place) = (self.options.kind, &self.place);
            let command = match kind {
                Kind::Dockerd => dockerd::start(place, self.storage)?,
                Kind::Podman4 | Kind::Podman5 => podman::start(kind, place, self.storage)?,
            };
            self.daemon = Some(Daemon::start(command, kind.name(), place)?);
        }
        Ok(())
    }

    /// Stops containers and engine and takes the node's rules back. What is disposable is removed
    /// with everything in it; else the data stays, from which the next start has it all again.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    /// Those of Podman's networks that have no container any more.
    fn forget_rules_of(&self, networks: &Networks) -> Result<()> {
        match self.options.kind {
            Kind::Dockerd => Ok(()),
            Kind::Podman4 | Kind::Podman5 => podman::netavark::forget(networks),
        }
    }

    /// Stops the containers, and gives the bridges of their networks.
    fn still(&mut self, client: &Client) -> Result<Vec<String>> {
        if self.rules.is_none() {
            // It has never come that far; and without the rules nothing is to run.
            return Ok(Vec::new());
        }
        self.resume()?;
        let bridges = contents::bridges(client, self.options.kind);
        // What is disposable goes with the whole file system, which takes no time; its removal piece by
        // piece takes minutes on btrfs with quotas.
        let grace = match self.options.disposable {
            true => 0,
            false => contents::GRACE_S,
        };
        if let Err(error) = Contents::all(client.clone()).stop(grace) {
            say::note(&format!(
                "The engine's containers are ended the hard way: {error:#}"
            ));
        }
        bridges
    }

    fn end(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.stopped, true) {
            return Ok(());
        }
        let client = self.client();
        // Before they are removed: what is left of their rules goes too.
        let networks = podman::networks(&self.place);
        let bridges = self.still(&client).unwrap_or_default();
        self.pause();
        leftovers::end_all(&self.place)?;
        storage::unmount_all(&self.place.run)?;
        contents::remove_bridges(&bridges);
        self.forget_rules_of(&networks)?;
        self.rules.as_ref().map_or(Ok(()), NodeRules::remove)?;
        fs::remove_dir_all(&self.place.run)
            .with_context(|| format!("{}", self.place.run.display()))?;
        if self.options.disposable {
            fs::remove_dir_all(&self.place.dir)?;
        }
        Ok(())
    }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            say::note(&format!(
                "The private engine did not stop cleanly: {error:#}"
            ));
        }
    }
}

fn end_earlier_daemon(place: &Place) {
    if let Some(pid) = leftovers::old_daemon(place) {
        say::note(&format!("Taking over from an earlier engine (pid {pid})."));
        leftovers::end(pid, Duration::from_secs(20));
    }
    leftovers::end_containerd(place);
    let _ = fs::remove_file(place.pidfile());
}
