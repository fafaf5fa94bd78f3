//! The life of a private engine.

use super::daemon::Daemon;
use super::kind::Kind;
use super::layout::Layout;
use super::lxcfs::Lxcfs;
use super::objects::{self, Objects};
use super::podman::netavark::Networks;
use super::rules::{Allowed, NodeRules};
use super::storage::{self, Quotas, Storage};
use super::{dockerd, podman, stale, userns};
use crate::http::{Client, Endpoint};
use crate::process::{Shield, is_root};
use crate::progress;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

/// The options of a private engine.
#[derive(Debug, Clone)]
pub struct Options {
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

/// A running private engine. Dropping it stops it.
#[derive(Debug)]
pub struct PrivateEngine {
    options: Options,
    layout: Layout,
    storage: Storage,
    rules: Option<NodeRules>,
    lxcfs: Option<Lxcfs>,
    daemon: Option<Daemon>,
    stopped: bool,
    _lock: File,
}

impl PrivateEngine {
    /// Starts an engine, after cleaning up an earlier run in its directory. Needs root; installs missing
    /// programs.
    pub fn start(options: Options) -> Result<Self> {
        if !is_root() {
            bail!("a private engine needs root");
        }
        super::install(options.kind)?;
        let layout = Layout::at(&options.dir)?;
        let lock = layout.lock()?;
        userns::ensure(match options.kind {
            Kind::Dockerd => &userns::DOCKERD,
            Kind::Podman4 | Kind::Podman5 => &userns::PODMAN,
        })?;
        end_earlier_daemon(&layout);
        fs::create_dir_all(&layout.run)?;
        super::abandoned::note(&layout, &options)?;
        // If a later step fails, dropping this value undoes the earlier ones.
        let mut engine = Self {
            options,
            layout,
            storage: Storage::Directory,
            rules: None,
            lxcfs: Lxcfs::share(),
            daemon: None,
            stopped: false,
            _lock: lock,
        };
        engine.storage = storage::mount(&engine.layout, engine.options.disk_gib)?;
        let (id, allowed) = (&engine.layout.id, &engine.options.allowed);
        engine.rules = Some(match engine.options.kind {
            Kind::Dockerd => NodeRules::for_private_engine(id, allowed)?,
            Kind::Podman4 | Kind::Podman5 => NodeRules::for_private_podman(id, allowed)?,
        });
        let left = podman::networks(&engine.layout);
        engine.resume()?;
        if engine.options.disposable {
            Objects::all(engine.client()).remove()?;
            engine.forget_rules_of(&left)?;
        }
        Ok(engine)
    }

    /// The socket of the engine.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Unix(self.layout.socket())
    }

    /// A client of the engine.
    pub fn client(&self) -> Client {
        Client::new(self.endpoint())
    }

    /// The kind of engine.
    pub fn kind(&self) -> Kind {
        self.options.kind
    }

    /// Whether a container's disk size is enforced.
    pub fn enforces_disk_size(&self) -> bool {
        self.storage != Storage::Directory
    }

    /// The driver settings of a node with this engine, each followed by a comma.
    pub fn settings(&self) -> String {
        let userns = match self.options.kind {
            Kind::Dockerd | Kind::Podman4 => "",
            Kind::Podman5 => "userns = \"auto\", ",
        };
        let quotas = match self.storage {
            Storage::Btrfs(Quotas::Simple) => "btrfs_quotas = \"simple\", ",
            Storage::Btrfs(Quotas::Full) | Storage::Directory => "",
        };
        format!("{userns}{quotas}")
    }

    /// The engine's store: its containers, volumes and images.
    pub fn store(&self) -> PathBuf {
        let data = self.layout.data();
        match self.options.kind {
            Kind::Dockerd => data.join("docker"),
            Kind::Podman4 | Kind::Podman5 => data.join("podman"),
        }
    }

    /// The engine's own directory of the Container Device Interface, if it has one.
    pub fn device_files(&self) -> Option<PathBuf> {
        match self.options.kind {
            Kind::Dockerd => None,
            Kind::Podman4 | Kind::Podman5 => Some(self.layout.run.join("cdi")),
        }
    }

    /// Waits until the storage has cleaned up, because that would slow down the next measurement.
    pub fn settle(&self) -> Result<()> {
        match self.storage {
            Storage::Btrfs(_) => storage::settle(&self.layout),
            Storage::Directory => Ok(()),
        }
    }

    /// Ends the engine's process; its containers go on running.
    pub fn pause(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.stop();
        }
        stale::end_containerd(&self.layout);
    }

    /// Starts the process again after [`Self::pause`].
    pub fn resume(&mut self) -> Result<()> {
        if self.daemon.is_none() {
            let (kind, layout) = (self.options.kind, &self.layout);
            let command = match kind {
                Kind::Dockerd => dockerd::start(layout, self.storage, self.options.tls.as_ref())?,
                Kind::Podman4 | Kind::Podman5 => podman::start(kind, layout, self.storage)?,
            };
            self.daemon = Some(Daemon::start(command, kind.name(), layout)?);
        }
        Ok(())
    }

    /// The exit status of the engine's process, if it has ended by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.daemon.as_mut()?.ended()
    }

    /// Starts the process again after it has ended by itself. Its containers went on.
    pub fn revive(&mut self) -> Result<()> {
        self.pause();
        self.resume()
    }

    /// Ends what killed runs of other directories left behind on this machine: engines with their containers,
    /// bridges and rules. Data stay, except those of disposable engines.
    pub fn end_abandoned(own: Option<&Path>) {
        crate::incus::Cluster::end_abandoned();
        for (run, options) in super::abandoned::list(own) {
            let dir = options.dir.display().to_string();
            progress::note(&format!(
                "Ending what a killed run left: the engine in {dir}."
            ));
            match Self::start(options).and_then(Self::stop) {
                // The directory may have moved, and with it the id.
                Ok(()) => drop(fs::remove_dir_all(run)),
                Err(error) => progress::note(&format!("It does not end: {error:#}")),
            }
        }
    }

    /// Stops containers and engine, and removes the node's rules. The data of a disposable engine is
    /// removed; other data stays for the next start.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    /// Removes Podman's rules for networks without containers.
    fn forget_rules_of(&self, networks: &Networks) -> Result<()> {
        match self.options.kind {
            Kind::Dockerd => Ok(()),
            Kind::Podman4 | Kind::Podman5 => podman::netavark::forget(networks),
        }
    }

    /// Stops the containers, and returns the bridges of their networks.
    fn stop_containers(&mut self, client: &Client) -> Result<Vec<String>> {
        if self.rules.is_none() {
            // The engine has not started, and must not start without the rules.
            return Ok(Vec::new());
        }
        // Only a running engine names its bridges.
        if self.ended().is_some() {
            self.pause();
        }
        self.resume()?;
        let bridges = objects::bridges(client, self.options.kind);
        // A disposable file system is removed as a whole: removing single containers takes minutes on
        // btrfs with quotas.
        let grace = match self.options.disposable {
            true => 0,
            false => objects::GRACE_S,
        };
        if let Err(error) = Objects::all(client.clone()).stop(grace) {
            progress::note(&format!(
                "Killing the engine's containers, which did not stop: {error:#}"
            ));
        }
        bridges
    }

    fn end(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.stopped, true) {
            return Ok(());
        }
        let _shield = Shield::raise();
        let client = self.client();
        // Read before the networks are removed, for the removal of their rules.
        let networks = podman::networks(&self.layout);
        let bridges = self.stop_containers(&client).unwrap_or_default();
        self.pause();
        stale::end_all(&self.layout.run, &self.layout.exec_root());
        storage::unmount_all(&self.layout.run)?;
        self.lxcfs = None;
        objects::remove_bridges(&bridges);
        self.forget_rules_of(&networks)?;
        self.rules.as_ref().map_or(Ok(()), NodeRules::remove)?;
        fs::remove_dir_all(&self.layout.run)
            .with_context(|| format!("{}", self.layout.run.display()))?;
        if self.options.disposable {
            fs::remove_dir_all(&self.layout.dir)?;
        }
        Ok(())
    }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            progress::note(&format!(
                "The private engine did not stop cleanly: {error:#}"
            ));
        }
    }
}

fn end_earlier_daemon(layout: &Layout) {
    if let Some(pid) = stale::old_daemon(layout) {
        progress::note(&format!("Taking over from an earlier engine (pid {pid})."));
        stale::end(pid, Duration::from_secs(20));
    }
    stale::end_containerd(layout);
    let _ = fs::remove_file(layout.pidfile());
}
