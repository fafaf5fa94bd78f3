//! The driver under test, with instances of its own.

use anyhow::{Context, Result, bail, ensure};
use ipnet::Ipv4Net;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wharf_domain::blueprint::Blueprint;
use wharf_domain::capacity::Size;
use wharf_domain::driver::{
    DriverReport, DriverTarget, InstanceNetwork, NodeHealth, Phase, PluginError, PublishedPort,
    Source, Spec, Tag,
};
use wharf_domain::flavor::{BlueprintRequest, Flavor, WebAuth};
use wharf_domain::ids::{Generation, InstanceId, SnapshotId};
use wharf_domain::instance::ResourceType;
use wharf_domain::secret::{InstanceSecrets, SecretKind, SecretText};
use wharf_plugin::{NodeDriver, OwnFlavor};

/// Grace of a stop.
pub const GRACE: Duration = Duration::from_secs(10);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// Repetitions of `ensure` after a lack of resources, about two seconds in all.
const REPETITIONS: usize = 20;
/// Calls of a proof that are repeated because their answers are late.
const LATE: usize = 3;
/// The size of an instance, which its flavor may exceed.
const SIZE: Size = Size {
    n_vcpus: 1,
    mem_gib: 1,
    disk_size_gib: 10,
};
/// Ports of an instance.
const SSH_PORT: u16 = 22;

/// The drivers under test.
pub struct Drivers {
    /// The driver of the node.
    pub own: NodeDriver,
    /// The driver of another node of the cluster, if the configuration has one.
    pub peer: Option<NodeDriver>,
    /// The driver of the node for another installation.
    pub other: NodeDriver,
    /// The driver of a node whose engine is not there; a simulated engine always is.
    pub without_engine: Option<NodeDriver>,
}

/// The instances that the suite makes.
pub struct SampleInstances {
    /// Their image, in the engine's syntax.
    pub image: String,
    /// Port and path of their web page; without one, they have SSH on port 22.
    pub web: Option<(u16, String)>,
    /// Their network.
    pub subnet: Ipv4Net,
    /// The address at which published ports of the node are reached.
    pub connect: String,
    /// The highest port of the node to publish.
    pub last_port: u16,
    /// Longest time until an instance is up.
    pub deadline: Duration,
}

/// The driver of one node, with instances of its own.
pub struct Subject {
    pub drivers: Drivers,
    pub sample: SampleInstances,
    pub health: NodeHealth,
    secrets: InstanceSecrets,
    made: AtomicU16,
    /// Calls without an answer.
    late: AtomicUsize,
}

/// The name of a new installation.
pub fn new_installation() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    format!("sanity-{}", id.get(..8).unwrap_or(&id))
}

impl Subject {
    /// Probes the engine.
    pub async fn open(drivers: Drivers, sample: SampleInstances) -> Result<Self, PluginError> {
        Ok(Self {
            health: drivers.own.probe().await?,
            drivers,
            sample,
            secrets: InstanceSecrets(vec![(
                SecretKind::Password,
                SecretText::new(uuid::Uuid::new_v4().simple().to_string()),
            )]),
            made: AtomicU16::new(0),
            late: AtomicUsize::new(0),
        })
    }

    pub fn driver(&self) -> &NodeDriver {
        &self.drivers.own
    }

    /// The specification of a new instance, with an address and a port of its own.
    pub fn spec(&self) -> Result<Spec> {
        let n = self.made.fetch_add(1, Ordering::Relaxed);
        let sample = &self.sample;
        let mut hosts = sample.subnet.hosts();
        let gateway = hosts.next().context("an empty subnet")?;
        let address = hosts.nth(usize::from(n)).context("the subnet is full")?;
        let web_port = sample.web.as_ref().map(|(port, _)| *port);
        Ok(Spec {
            target: DriverTarget {
                tag: Tag {
                    instance: InstanceId(uuid::Uuid::new_v4()),
                    incarnation: 1,
                },
                generation: Generation(7),
                resource_type: ResourceType::Container,
                size: SIZE,
                network: InstanceNetwork {
                    id: "sanity".to_owned(),
                    subnet: sample.subnet,
                    gateway,
                    address,
                },
                public_network: None,
                wan_ports: Vec::new(),
                volumes: Vec::new(),
            },
            hostname: format!("sanity-{n}"),
            published: vec![PublishedPort {
                node_port: sample.last_port.checked_sub(n).context("no port is left")?,
                instance_port: web_port.unwrap_or(SSH_PORT),
                private: false,
            }],
            private_address: None,
            gpu_devices: Vec::new(),
            source: None,
            fetched: false,
            may_exist: false,
            image_is_trusted: false,
            blueprint: self.blueprint(),
        })
    }

    fn blueprint(&self) -> Arc<Blueprint> {
        let SampleInstances { image, web, .. } = &self.sample;
        let ssh = web.is_none();
        let flavor = Flavor {
            name: "sanity".to_owned(),
            description: String::new(),
            resource_types: vec![ResourceType::Container],
            ssh,
            web: web.is_some(),
            web_auth: WebAuth::None,
            s3_prefill: false,
            ai: false,
            gpu_aware: false,
            minimum: SIZE,
        };
        let own = OwnFlavor {
            flavor: flavor.clone(),
            image: image.clone(),
            ssh,
            web: web.clone(),
            command: Vec::new(),
        };
        let request = BlueprintRequest {
            flavor: Arc::new(flavor),
            resource_type: ResourceType::Container,
            size: SIZE,
            n_gpus: 0,
            login_user: "user".to_owned(),
            public_key: None,
            s3_prefill: false,
            ai: false,
            private_page: false,
        };
        own.blueprint(std::iter::once(self.driver().engine_kind()), &request)
    }

    /// Repeats a call while the driver asks for a retry, as the host does. A few calls of the whole proof may go
    /// without an answer: a busy engine answers late, and one of a wrong driver never does.
    pub async fn retried<T>(
        &self,
        call: impl AsyncFn() -> Result<T, PluginError>,
    ) -> Result<T, PluginError> {
        let begin = Instant::now();
        loop {
            match call().await {
                Err(PluginError::RetryLater(pause)) if begin.elapsed() < self.sample.deadline => {
                    tokio::time::sleep(pause).await;
                }
                Err(PluginError::Unreachable(_))
                    if self.late.fetch_add(1, Ordering::Relaxed) < LATE =>
                {
                    tokio::time::sleep(PAUSE).await;
                }
                result => return result,
            }
        }
    }

    /// Calls `ensure`, and repeats it after a lack of resources, as the host does. The engine frees those of a
    /// removed instance late.
    pub async fn ensure(&self, spec: &Spec) -> Result<DriverReport, PluginError> {
        let ensure = async || self.driver().ensure(spec, &self.secrets).await;
        for _ in 0..REPETITIONS {
            match self.retried(ensure).await {
                Err(PluginError::Insufficient(_)) => tokio::time::sleep(PAUSE).await,
                result => return result,
            }
        }
        self.retried(ensure).await
    }

    /// Calls `ensure` as the host does, until the instance is ready.
    pub async fn bring_up(&self, spec: &Spec) -> Result<()> {
        let mut spec = spec.clone();
        let begin = Instant::now();
        loop {
            let report = self.ensure(&spec).await.context("ensure")?;
            spec.may_exist = true;
            ensure!(report.generation == spec.target.generation, "{report:?}");
            match report.phase {
                Phase::Ready => return Ok(()),
                Phase::Pulling(_) | Phase::Creating | Phase::Booting => {}
                other => bail!("ensure reported {other:?}"),
            }
            ensure!(
                begin.elapsed() < self.sample.deadline,
                "not ready within {:?}: {:?}",
                self.sample.deadline,
                report.phase
            );
            tokio::time::sleep(report.again.unwrap_or(PAUSE)).await;
        }
    }

    /// Makes a new instance that is ready.
    pub async fn up(&self) -> Result<Spec> {
        let spec = self.spec()?;
        self.bring_up(&spec).await?;
        Ok(spec)
    }

    /// The phase of an instance.
    pub async fn phase(&self, tag: Tag) -> Result<Phase> {
        let inspect = async || self.driver().inspect(tag, Generation(9)).await;
        Ok(self.retried(inspect).await.context("inspect")?.phase)
    }

    /// Waits until an instance has a phase.
    pub async fn wait_for(&self, tag: Tag, wanted: fn(&Phase) -> bool) -> Result<()> {
        let begin = Instant::now();
        loop {
            let phase = self.phase(tag).await?;
            if wanted(&phase) {
                return Ok(());
            }
            let waited = begin.elapsed() < self.sample.deadline;
            ensure!(waited, "still {phase:?} after {:?}", begin.elapsed());
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Stops an instance, which must be stopped then.
    pub async fn stop(&self, target: &DriverTarget) -> Result<()> {
        let stop = async || self.driver().stop(target, GRACE).await;
        let report = self.retried(stop).await.context("stop")?;
        ensure!(report.generation == target.generation, "{report:?}");
        ensure!(
            matches!(report.phase, Phase::Stopped(_)),
            "stop reported {:?}",
            report.phase
        );
        Ok(())
    }

    /// Starts an instance.
    pub async fn start(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        self.retried(async || self.driver().start(target).await)
            .await
    }

    /// Starts an instance until it is ready, as the host does: the engine may carry out a stop meanwhile whose call was
    /// abandoned.
    pub async fn start_until_ready(&self, target: &DriverTarget) -> Result<()> {
        let begin = Instant::now();
        loop {
            let report = self.start(target).await.context("start")?;
            let phase = self.phase(target.tag).await?;
            if phase == Phase::Ready {
                return Ok(());
            }
            let waited = begin.elapsed() < self.sample.deadline;
            ensure!(waited, "still {phase:?} after {:?}", begin.elapsed());
            tokio::time::sleep(report.again.unwrap_or(PAUSE)).await;
        }
    }

    /// Changes the sizes of an instance. The host repeats no resize without an answer: its user gets the error.
    pub async fn resize(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        let begin = Instant::now();
        loop {
            match self.driver().resize(target).await {
                Err(PluginError::RetryLater(pause)) if begin.elapsed() < self.sample.deadline => {
                    tokio::time::sleep(pause).await;
                }
                result => return result,
            }
        }
    }

    /// Restores a snapshot, as far as one call gets.
    pub async fn restore(
        &self,
        spec: &Spec,
        snapshot: SnapshotId,
    ) -> Result<DriverReport, PluginError> {
        let restore = async || {
            let driver = self.driver();
            driver.restore_snapshot(spec, snapshot).await
        };
        self.retried(restore).await
    }

    /// Calls `delete` until the instance is absent.
    pub async fn remove(&self, target: &DriverTarget) -> Result<()> {
        let begin = Instant::now();
        loop {
            let delete = async || self.driver().delete(target).await;
            let report = self.retried(delete).await.context("delete")?;
            ensure!(report.generation == target.generation, "{report:?}");
            if report.phase == Phase::Absent {
                return Ok(());
            }
            let waited = begin.elapsed() < self.sample.deadline;
            ensure!(waited, "delete still reports {:?}", report.phase);
            tokio::time::sleep(report.again.unwrap_or(PAUSE)).await;
        }
    }

    /// The tags in the driver's list.
    pub async fn listed(&self) -> Result<Vec<(Tag, Phase)>> {
        let list = async || self.driver().list().await;
        let list = self.retried(list).await.context("list")?;
        Ok(list.into_iter().map(|row| (row.tag, row.phase)).collect())
    }

    /// Removes every instance of both installations, also those of broken promises.
    pub async fn remove_all(&self) -> Result<()> {
        let Drivers {
            own, peer, other, ..
        } = &self.drivers;
        for driver in [own, other].into_iter().chain(peer) {
            for row in driver.list().await? {
                let target = DriverTarget::orphan(row.tag);
                self.retried(async || driver.delete(&target).await).await?;
            }
            for row in driver.list_volumes().await? {
                self.retried(async || driver.unmake_volume(row.volume).await)
                    .await?;
            }
            for row in driver.list_snapshots().await? {
                let of = Source {
                    snapshot: row.snapshot,
                    instance: row.instance,
                };
                self.retried(async || driver.drop_snapshot(of).await)
                    .await?;
            }
        }
        Ok(())
    }
}
