//! The containers and networks of one installation. Engines may be the user's own: containers are
//! stopped when Wharf ends, and everything is removed after a check.

use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use wharf_testkit::engine::{GRACE_S, Objects};
use wharf_testkit::http::{Endpoint, HttpClient};
use wharf_testkit::incus::Project;
use wharf_testkit::process::wait_until;
use wharf_testkit::progress;

/// The time until the engine has removed a deleted instance.
const REMOVAL_LIMIT: Duration = Duration::from_secs(120);

/// Everything of an installation in its engines.
pub(super) struct Footprint {
    engines: Vec<HttpClient>,
    label: String,
    /// A project of a private Incus, which has no other installation.
    incus: Option<(Project, HttpClient)>,
}

impl Footprint {
    /// The footprint of the installation with this name.
    pub fn of(engines: &[Endpoint], installation: &str) -> Self {
        Self {
            engines: engines.iter().cloned().map(HttpClient::new).collect(),
            label: format!("io.wharf.installation={installation}"),
            incus: None,
        }
    }

    /// The footprint in a project.
    pub fn in_incus(project: Project, client: HttpClient) -> Self {
        Self {
            engines: Vec::new(),
            label: String::new(),
            incus: Some((project, client)),
        }
    }

    /// Stops the instances; their disks stay.
    pub fn stop(&self) -> Result<()> {
        self.in_each(|objects| objects.stop(GRACE_S))
    }

    /// Waits until Wharf has removed everything.
    pub fn wait_until_gone(&self) -> Result<()> {
        let gone = wait_until(REMOVAL_LIMIT, || self.are_none().unwrap_or(false));
        ensure!(
            gone,
            "after {REMOVAL_LIMIT:?} an engine still has a container or a network of this installation"
        );
        Ok(())
    }

    /// Removes what remains after Wharf has ended. Looks again until `deadline` is over, because the engine
    /// may still have been creating a container.
    pub fn remove(&self, deadline: Duration) -> Result<()> {
        let start = Instant::now();
        loop {
            if !self.are_none()? {
                progress::note("Removing what remains in the engine.");
                self.in_each(Objects::remove)?;
            }
            if start.elapsed() >= deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(250));
        }
        // The volume that marks the engine's store.
        self.in_each(Objects::remove_volumes)?;
        ensure!(
            self.are_none()?,
            "an engine still has a container or a network with the label {}",
            self.label
        );
        Ok(())
    }

    /// Whether an engine has the container of an instance.
    pub fn has(&self, uuid: &str) -> Result<bool> {
        if let Some((project, client)) = &self.incus {
            let names = project.instances(client)?;
            return Ok(names.iter().any(|name| name.contains(uuid)));
        }
        let label = format!("io.wharf.instance={uuid}");
        Ok(!self.with(&label).try_fold(true, is_empty_too)?)
    }

    fn are_none(&self) -> Result<bool> {
        if let Some((project, client)) = &self.incus {
            return Ok(project.instances(client)?.is_empty());
        }
        self.with(&self.label).try_fold(true, is_empty_too)
    }

    fn in_each(&self, work: impl Fn(&Objects) -> Result<()>) -> Result<()> {
        self.with(&self.label)
            .try_for_each(|objects| work(&objects))
    }

    fn with(&self, label: &str) -> impl Iterator<Item = Objects> {
        let engines = self.engines.iter().cloned();
        engines.map(move |engine| Objects::labelled(engine, label.to_owned()))
    }
}

fn is_empty_too(others: bool, objects: Objects) -> Result<bool> {
    Ok(others && objects.is_empty()?)
}
