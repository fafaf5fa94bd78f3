//! Private engines with Docker's API: dockerd and Podman.

use super::daemon::Daemon;
use super::kind::Kind;
use super::layout::{Abandoned, Layout, Note};
use super::objects::{self, Objects};
use super::podman::netavark::Networks;
use super::private::{Engine, Private, needs_root};
use super::rules::{Allowed, NodeRules};
use super::storage::{self, Quotas, Storage};
use super::{dockerd, mounts, podman, processes, userns};
use crate::http::{Endpoint, HttpClient};
use crate::progress;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

/// The time in which the daemon of an earlier run ends.
const EARLIER_LIMIT: Duration = Duration::from_secs(20);

/// The options of a private engine.
#[derive(Debug, Clone)]
pub struct DockerOptions {
    /// The kind of engine.
    pub kind: Kind,
    /// The directory of data and log, for one engine.
    pub dir: PathBuf,
    /// The size of the storage for instances and images, a sparse file. Without it the storage is on the
    /// file system of `dir`, where disk sizes are not enforced.
    pub disk_gib: Option<u64>,
    /// Whether the engine starts empty and removes its data at the end.
    pub disposable: bool,
    /// Private destinations that instances may reach.
    pub allowed: Allowed,
    /// A second address of the engine, for dockerd only.
    pub tls: Option<TlsListener>,
}

/// A port of this machine on which dockerd accepts clients with certificates.
#[derive(Debug, Clone)]
pub struct TlsListener {
    /// The port on 127.0.0.1.
    pub port: u16,
    /// The file of the issuer of the clients' certificates.
    pub ca: PathBuf,
    /// The file of dockerd's certificate.
    pub cert: PathBuf,
    /// The file of its private key.
    pub key: PathBuf,
}

/// A running private dockerd or Podman. Dropping it stops it.
pub type PrivateEngine = Private<Docker>;

/// A dockerd or a Podman.
#[derive(Debug)]
pub struct Docker {
    options: DockerOptions,
    layout: Layout,
    storage: Storage,
    daemon: Option<Daemon>,
    /// The bridges of dockerd's networks, known when instances have stopped.
    bridges: Vec<String>,
}

/// The options for the engine of a killed run, unless it is of another kind.
pub(super) fn options_of(found: &Abandoned) -> Option<DockerOptions> {
    let mut kinds = Kind::ALL.into_iter();
    Some(DockerOptions {
        kind: kinds.find(|kind| kind.name() == found.note.kind)?,
        dir: found.layout.dir.clone(),
        disk_gib: found.note.disk_gib,
        disposable: found.note.disposable,
        allowed: Allowed::default(),
        tls: None,
    })
}

impl PrivateEngine {
    /// Starts an engine, after cleaning up an earlier run in its directory. Needs root; installs missing
    /// programs.
    pub fn start(options: DockerOptions) -> Result<Self> {
        needs_root()?;
        super::install(options.kind)?;
        let layout = Layout::at(&options.dir, "wharf-")?;
        let note = Note {
            kind: options.kind.name().to_owned(),
            disk_gib: options.disk_gib,
            disposable: options.disposable,
        };
        let engine = Docker {
            options,
            layout: layout.clone(),
            storage: Storage::Directory,
            daemon: None,
            bridges: Vec::new(),
        };
        Self::begin(layout, &note, engine)
    }

    /// See [`super::end_abandoned`].
    pub fn end_abandoned(own: Option<&Path>) {
        super::end_abandoned(own);
    }

    /// The socket of the engine.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Unix(self.engine.layout.socket())
    }

    /// A client of the engine.
    pub fn client(&self) -> HttpClient {
        self.engine.client()
    }

    /// The kind of engine.
    pub fn kind(&self) -> Kind {
        self.engine.options.kind
    }

    /// Whether a container's disk size is enforced.
    pub fn enforces_disk_size(&self) -> bool {
        self.engine.storage != Storage::Directory
    }

    /// The driver settings of a node with this engine, each followed by a comma.
    pub fn settings(&self) -> String {
        let userns = match self.kind() {
            Kind::Dockerd | Kind::Podman4 => "",
            Kind::Podman5 => "userns = \"auto\", ",
        };
        let quotas = match self.engine.storage {
            Storage::Btrfs(Quotas::Simple) => "btrfs_quotas = \"simple\", ",
            Storage::Btrfs(Quotas::Full) | Storage::Directory => "",
        };
        format!("{userns}{quotas}")
    }

    /// The engine's store: its containers, volumes and images.
    pub fn store(&self) -> PathBuf {
        let name = match self.kind() {
            Kind::Dockerd => "docker",
            Kind::Podman4 | Kind::Podman5 => "podman",
        };
        self.engine.layout.data().join(name)
    }

    /// Enables the quotas of the storage, if they are off.
    pub fn enable_quotas(&self) -> Result<()> {
        Quotas::of(&self.engine.layout.data()).map(drop)
    }

    /// The engine's own directory of the Container Device Interface, if it has one.
    pub fn device_files(&self) -> Option<PathBuf> {
        self.kind()
            .is_podman()
            .then(|| self.engine.layout.run.join("cdi"))
    }

    /// Waits until the storage has cleaned up, because that would slow down the next measurement.
    pub fn settle(&self) -> Result<()> {
        match self.engine.storage {
            Storage::Btrfs(_) => storage::settle(&self.engine.layout),
            Storage::Directory => Ok(()),
        }
    }

    /// Ends the engine's process; its containers go on running.
    pub fn pause(&mut self) {
        self.engine.pause();
    }

    /// Kills the engine's process, as a crash would; its containers go on running.
    pub fn kill(&mut self) -> Result<()> {
        let daemon = self.engine.daemon.take();
        daemon.map_or(Ok(()), Daemon::kill)?;
        processes::end_containerd(&self.engine.layout);
        Ok(())
    }

    /// Starts the process again after [`Self::pause`] or [`Self::kill`].
    pub fn resume(&mut self) -> Result<()> {
        self.engine.resume()
    }
}

impl Docker {
    fn client(&self) -> HttpClient {
        HttpClient::new(Endpoint::Unix(self.layout.socket()))
    }

    fn pause(&mut self) {
        self.daemon = None;
        processes::end_containerd(&self.layout);
    }

    fn resume(&mut self) -> Result<()> {
        if self.daemon.is_some() {
            return Ok(());
        }
        let (kind, layout) = (self.options.kind, &self.layout);
        let command = match kind {
            Kind::Dockerd => dockerd::start(layout, self.storage, self.options.tls.as_ref())?,
            Kind::Podman4 | Kind::Podman5 => podman::start(kind, layout, self.storage)?,
        };
        let mut daemon = Daemon::start(command, &layout.log())?;
        fs::write(layout.pidfile(), daemon.id().to_string())?;
        daemon.await_answer(&self.client(), "/_ping")?;
        self.daemon = Some(daemon);
        Ok(())
    }

    /// Removes Podman's rules for networks without containers.
    fn forget_rules_of(&self, networks: &Networks) -> Result<()> {
        if self.options.kind.is_podman() {
            podman::netavark::forget(networks)
        } else {
            Ok(())
        }
    }
}

impl Engine for Docker {
    fn end_earlier(&mut self) -> Result<()> {
        let account = if self.options.kind.is_podman() {
            &userns::PODMAN
        } else {
            &userns::DOCKERD
        };
        userns::ensure(account)?;
        if let Some(pid) = processes::old_daemon(&self.layout) {
            progress::note(&format!("Taking over from an earlier engine (pid {pid})."));
            processes::end(pid, EARLIER_LIMIT);
        }
        processes::end_containerd(&self.layout);
        let _ = fs::remove_file(self.layout.pidfile());
        Ok(())
    }

    fn rules(&self) -> Result<Option<NodeRules>> {
        let (id, allowed) = (&self.layout.id, &self.options.allowed);
        let rules = if self.options.kind.is_podman() {
            NodeRules::for_private_podman(id, allowed)
        } else {
            NodeRules::for_private_engine(id, allowed)
        };
        rules.map(Some)
    }

    fn start(&mut self) -> Result<()> {
        self.storage = storage::mount(&self.layout, self.options.disk_gib)?;
        let left = podman::networks(&self.layout);
        self.resume()?;
        if self.options.disposable {
            Objects::all(self.client()).remove()?;
            self.forget_rules_of(&left)?;
        }
        Ok(())
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.daemon.as_mut()?.ended()
    }

    fn revive(&mut self) -> Result<()> {
        self.pause();
        self.resume()
    }

    fn stop_instances(&mut self) -> Result<()> {
        if !mounts::is_at(&self.layout.data())? {
            return Ok(());
        }
        // Only a running dockerd names its bridges.
        if self.ended().is_some() {
            self.pause();
        }
        self.resume()?;
        let client = self.client();
        if !self.options.kind.is_podman() {
            self.bridges = objects::bridges(&client)?;
        }
        // A disposable file system is removed as a whole: removing single containers takes minutes on
        // btrfs with quotas.
        let grace = if self.options.disposable {
            0
        } else {
            objects::GRACE_S
        };
        Objects::all(client).stop(grace)
    }

    fn clear(&mut self) -> Result<()> {
        // Read before the storage goes.
        let networks = podman::networks(&self.layout);
        self.pause();
        processes::end_all(&self.layout.run, &self.layout.exec_root());
        mounts::unmount_all(&self.layout.run)?;
        objects::remove_bridges(&self.bridges);
        objects::remove_bridges(networks.bridges());
        self.forget_rules_of(&networks)
    }
}
