//! What one Wharf installation has in the engines, which may be a user's own: stopped when Wharf ends,
//! and nothing once a check is over.

use crate::engine::{Contents, GRACE_S};
use crate::http::{Client, Endpoint};
use crate::process::wait_until;
use crate::say;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// Deleted for its user at once, an instance is removed from its engine after that.
const REMOVAL_LIMIT: Duration = Duration::from_secs(120);

/// Everything that has an installation's label.
pub(super) struct Traces {
    engines: Vec<Client>,
    label: String,
}

impl Traces {
    /// Of the installation with this name.
    pub fn of(engines: &[Endpoint], installation: &str) -> Self {
        Self {
            engines: engines.iter().cloned().map(Client::new).collect(),
            label: format!("io.wharf.installation={installation}"),
        }
    }

    /// Stops its instances; their disks stay.
    pub fn stop(&self) -> Result<()> {
        self.in_each(|contents| contents.stop(GRACE_S))
    }

    /// Waits until Wharf has removed everything.
    pub fn wait_until_gone(&self) -> Result<()> {
        let gone = wait_until(REMOVAL_LIMIT, || self.are_none().unwrap_or(false));
        ensure!(
            gone,
            "after {REMOVAL_LIMIT:?} an engine still has a container or a network with the label {}",
            self.label
        );
        Ok(())
    }

    /// Removes what Wharf, which has ended, has left; and for so long also what the engine was just
    /// making.
    pub fn remove(&self, patience: Duration) -> Result<()> {
        let start = Instant::now();
        loop {
            if !self.are_none()? {
                say::note("Removing what Wharf has left in the engine.");
                self.in_each(Contents::remove)?;
            }
            if start.elapsed() >= patience {
                break;
            }
            std::thread::sleep(Duration::from_millis(250));
        }
        ensure!(
            self.are_none()?,
            "an engine still has a container or a network with the label {}",
            self.label
        );
        Ok(())
    }

    /// Whether an engine has the container of an instance.
    pub fn have(&self, uuid: &str) -> Result<bool> {
        let label = format!("io.wharf.instance={uuid}");
        Ok(!self.with(&label).try_fold(true, is_empty_too)?)
    }

    fn are_none(&self) -> Result<bool> {
        self.with(&self.label).try_fold(true, is_empty_too)
    }

    fn in_each(&self, work: impl Fn(&Contents) -> Result<()>) -> Result<()> {
        self.with(&self.label)
            .try_for_each(|contents| work(&contents))
    }

    fn with(&self, label: &str) -> impl Iterator<Item = Contents> {
        let engines = self.engines.iter().cloned();
        engines.map(move |engine| Contents::labelled(engine, label.to_owned()))
    }
}

fn is_empty_too(others: bool, contents: Contents) -> Result<bool> {
    Ok(others && contents.is_empty()?)
}
