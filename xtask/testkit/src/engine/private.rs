//! The life of a private engine of any kind: it is written once, and a kind adds its own steps.

use super::docker::{self, PrivateEngine};
use super::layout::{Layout, Note, abandoned};
use super::lxcfs::Lxcfs;
use super::mounts;
use super::rules::NodeRules;
use crate::incus::Members;
use crate::process::{Shield, is_root};
use crate::progress;
use anyhow::{Context, Result, ensure};
use std::fmt::Debug;
use std::fs::{self, File};
use std::path::Path;
use std::process::ExitStatus;

/// Fails unless this process is root's.
pub(crate) fn needs_root() -> Result<()> {
    ensure!(is_root(), "a private engine needs root");
    Ok(())
}

/// A kind of private engine: the steps of its life that are its own.
pub trait Engine: Debug {
    /// Ends the processes of an earlier run that was killed, as far as the next start needs it.
    fn end_earlier(&mut self) -> Result<()>;
    /// The rules of the node, in force while the engine runs.
    fn rules(&self) -> Result<Option<NodeRules>>;
    /// Makes the storage and starts the processes.
    fn start(&mut self) -> Result<()>;
    /// The exit status of a process that has ended by itself.
    fn ended(&mut self) -> Option<ExitStatus>;
    /// Starts the processes again that have ended by themselves. Instances went on.
    fn revive(&mut self) -> Result<()>;
    /// Stops the instances, which keep their disks.
    fn stop_instances(&mut self) -> Result<()>;
    /// Ends all processes, and removes mounts and interfaces.
    fn clear(&mut self) -> Result<()>;
}

/// A running private engine. Dropping it stops it.
#[derive(Debug)]
pub struct Private<E: Engine> {
    pub(crate) engine: E,
    layout: Layout,
    disposable: bool,
    rules: Option<NodeRules>,
    lxcfs: Option<Lxcfs>,
    has_started: bool,
    has_ended: bool,
    _lock: Option<File>,
}

impl<E: Engine> Private<E> {
    /// Starts an engine, after cleaning up an earlier run in its directory. Needs root.
    pub(crate) fn begin(layout: Layout, note: &Note, engine: E) -> Result<Self> {
        let lock = layout.lock()?;
        // If a later step fails, dropping this value undoes the earlier ones.
        let mut private = Self {
            engine,
            layout,
            disposable: note.disposable,
            rules: None,
            lxcfs: None,
            has_started: false,
            has_ended: false,
            _lock: Some(lock),
        };
        private.engine.end_earlier()?;
        private.layout.note(note)?;
        let _ = fs::remove_file(private.layout.log());
        // Engines look for it when they start.
        private.lxcfs = Lxcfs::share();
        private.rules = private.engine.rules()?;
        private.has_started = true;
        private.engine.start()?;
        Ok(private)
    }

    /// Stops instances and engine, and removes all that it has on the machine. The data of a disposable
    /// engine are removed; other data stay for the next start.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.has_ended, true) {
            return Ok(());
        }
        let _shield = Shield::raise();
        // An engine that has not started has no rules, and must not start without them.
        if self.has_started
            && let Err(error) = self.engine.stop_instances()
        {
            progress::note(&format!(
                "Killing the engine's instances, which did not stop: {error:#}"
            ));
        }
        self.engine.clear()?;
        self.lxcfs = None;
        self.rules.take().map_or(Ok(()), |rules| rules.remove())?;
        let Layout { run, dir, .. } = &self.layout;
        // Mounted content does not belong to the engine, and must not be removed.
        let mounted = mounts::below(run)?;
        ensure!(mounted.is_empty(), "{mounted:?} are still mounted");
        let condemned = [(run, true), (dir, self.disposable)];
        for (path, _) in condemned.iter().filter(|(path, go)| *go && path.is_dir()) {
            fs::remove_dir_all(path).with_context(|| format!("{}", path.display()))?;
        }
        Ok(())
    }
}

impl<E: Engine> Drop for Private<E> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            progress::note(&format!(
                "The private engine did not stop cleanly: {error:#}"
            ));
        }
    }
}

/// A private engine of any kind, for its keeper.
pub trait Running {
    /// The exit status of a process of the engine that has ended by itself.
    fn ended(&mut self) -> Option<ExitStatus>;
    /// Starts processes again that have ended by themselves. Instances went on.
    fn revive(&mut self) -> Result<()>;
    /// See [`Private::stop`].
    fn stop(self: Box<Self>) -> Result<()>;
}

impl<E: Engine> Running for Private<E> {
    fn ended(&mut self) -> Option<ExitStatus> {
        self.engine.ended()
    }

    fn revive(&mut self) -> Result<()> {
        self.engine.revive()
    }

    fn stop(self: Box<Self>) -> Result<()> {
        Private::stop(*self)
    }
}

/// Ends what killed runs of other directories than `own` left behind on this machine: engines with their
/// instances, bridges and rules. Data stay, except those of disposable engines.
pub fn end_abandoned(own: Option<&Path>) {
    for found in abandoned(own) {
        let (kind, dir) = (&found.note.kind, found.layout.dir.display());
        progress::note(&format!(
            "Ending what a killed run left: the {kind} in {dir}."
        ));
        let run = found.layout.run.clone();
        let ended = match docker::options_of(&found) {
            // Only a running engine knows its networks.
            Some(options) => {
                drop(found);
                PrivateEngine::start(options).and_then(Private::stop)
            }
            None => Private {
                engine: Members::of_killed_run(&found.layout),
                rules: Some(NodeRules::of_killed_run(&found.layout.id)),
                layout: found.layout,
                disposable: found.note.disposable,
                lxcfs: None,
                has_started: false,
                has_ended: false,
                _lock: found.lock,
            }
            .stop(),
        };
        match ended {
            // The directory may have moved, and with it the id.
            Ok(()) => drop(fs::remove_dir_all(run)),
            Err(error) => progress::note(&format!("It does not end: {error:#}")),
        }
        Lxcfs::end_unused();
    }
}
