//! The driver under test, with instances of its own.

use crate::options::{Options, node};
use anyhow::{Context, Result, bail, ensure};
use ipnet::Ipv4Net;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use wharf_config::Config;
use wharf_domain::blueprint::Blueprint;
use wharf_domain::capacity::Size;
use wharf_domain::driver::{
    DriverReport, DriverTarget, InstanceNetwork, NodeHealth, Phase, PluginError, PublishedPort,
    Spec, Tag,
};
use wharf_domain::flavor::{BlueprintRequest, Flavor, WebAuth};
use wharf_domain::ids::{Generation, InstanceId, NodeId};
use wharf_domain::instance::ResourceType;
use wharf_domain::secret::{InstanceSecrets, SecretKind, SecretText};
use wharf_plugin::{NodeDriver, OwnFlavor, Plugins};

/// Grace of a stop.
pub const GRACE: Duration = Duration::from_secs(10);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// Repetitions of `ensure` after a lack of resources, about two seconds in all.
const REPETITIONS: usize = 20;
/// The size of an instance, which its flavor may exceed.
const SIZE: Size = Size {
    n_vcpus: 1,
    mem_gib: 1,
    disk_size_gib: 10,
};
/// Ports of an instance.
const SSH_PORT: u16 = 22;

/// The driver of one node.
pub struct Subject {
    pub driver: NodeDriver,
    /// The driver of another node of the cluster, if the configuration has one.
    pub peer: Option<NodeDriver>,
    /// The driver for another installation on the engine.
    pub other: NodeDriver,
    pub health: NodeHealth,
    pub options: Options,
    config: Config,
    subnet: Ipv4Net,
    secrets: InstanceSecrets,
    made: AtomicU16,
}

/// The drivers of the node and of the other one of its cluster.
async fn drivers(config: &Config, installation: &str) -> Result<(NodeDriver, Option<NodeDriver>)> {
    let (_plugins, drivers): (Plugins, _) =
        wharf::drivers::drivers_for_check(config, installation).await?;
    let mut all = config.node.iter().map(|node| {
        let driver = drivers.get(&NodeId(node.name.clone())).cloned();
        driver.context("the node has no driver")
    });
    let own = all.next().context("no node")??;
    Ok((own, all.next().transpose()?))
}

fn installation() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    format!("sanity-{}", id.get(..8).unwrap_or(&id))
}

impl Subject {
    /// Loads the driver and probes the engine. A subnet at the end of the node's network is used, as
    /// servers begin at its start.
    pub async fn open(options: Options) -> Result<Self> {
        let config = options.load()?;
        let (driver, peer) = drivers(&config, &installation()).await?;
        let (other, _) = drivers(&config, &installation()).await?;
        let health = driver.probe().await.context("probe")?;
        let node = node(&config)?;
        let subnet = node.lan_cidr.subnets(node.lan_subnet_prefix)?.last();
        Ok(Self {
            driver,
            peer,
            other,
            health,
            options,
            subnet: subnet.context("the node's lan_cidr has no subnet")?,
            secrets: InstanceSecrets(vec![(
                SecretKind::Password,
                SecretText::new(uuid::Uuid::new_v4().simple().to_string()),
            )]),
            made: AtomicU16::new(0),
            config,
        })
    }

    pub fn name(&self) -> &str {
        &self.driver.name().0
    }

    pub fn wants(&self, rule: &str) -> bool {
        let filter = self.options.filter.as_ref();
        filter.is_none_or(|text| rule.contains(text.as_str()))
    }

    /// The driver of a node whose engine is not there.
    pub async fn without_engine(&self) -> Result<NodeDriver> {
        let mut config = self.config.clone();
        for node in &mut config.node {
            node.endpoint = "unix:///nonexistent/engine.sock".to_owned();
            node.tls = None;
        }
        Ok(drivers(&config, &installation()).await?.0)
    }

    /// The specification of a new instance, with an address and a port of its own.
    pub fn spec(&self) -> Result<Spec> {
        let n = self.made.fetch_add(1, Ordering::Relaxed);
        let hosts = self.subnet.hosts().collect::<Vec<Ipv4Addr>>();
        let mut hosts = hosts.into_iter();
        let gateway = hosts.next().context("an empty subnet")?;
        let address = hosts.nth(usize::from(n)).context("the subnet is full")?;
        let (last, instance_port) = match self.options.web_port {
            Some(port) => (self.config.web.to, port),
            None => (self.config.ssh_ports.to, SSH_PORT),
        };
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
                    subnet: self.subnet,
                    gateway,
                    address,
                },
                public_network: None,
                wan_ports: Vec::new(),
            },
            hostname: format!("sanity-{n}"),
            published: vec![PublishedPort {
                node_port: last.checked_sub(n).context("no port is left")?,
                instance_port,
                private: false,
            }],
            private_address: None,
            gpu_devices: Vec::new(),
            may_exist: false,
            blueprint: self.blueprint(),
        })
    }

    fn blueprint(&self) -> Arc<Blueprint> {
        let Options {
            image,
            web_port,
            web_path,
            ssh,
            ..
        } = &self.options;
        let flavor = Flavor {
            name: "sanity".to_owned(),
            description: String::new(),
            resource_types: vec![ResourceType::Container],
            ssh: *ssh,
            web: web_port.is_some(),
            web_auth: WebAuth::None,
            s3_prefill: false,
            ai: false,
            gpu_aware: false,
            minimum: SIZE,
        };
        let own = OwnFlavor {
            flavor: flavor.clone(),
            image: image.clone(),
            ssh: *ssh,
            web: web_port.map(|port| (port, web_path.clone())),
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
        };
        own.blueprint(std::iter::once(self.driver.engine_kind()), &request)
    }

    /// Repeats a call while the driver asks for a retry, as the host does.
    pub async fn retried<T>(
        &self,
        call: impl AsyncFn() -> Result<T, PluginError>,
    ) -> Result<T, PluginError> {
        let begin = Instant::now();
        loop {
            match call().await {
                Err(PluginError::RetryLater(pause))
                    if begin.elapsed() < self.options.deadline() =>
                {
                    tokio::time::sleep(pause).await;
                }
                result => return result,
            }
        }
    }

    /// Calls `ensure`, and repeats it after a lack of resources, as the host does. The engine frees those of a
    /// removed instance late.
    pub async fn ensure(&self, spec: &Spec) -> Result<DriverReport, PluginError> {
        let ensure = async || self.driver.ensure(spec, &self.secrets).await;
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
                begin.elapsed() < self.options.deadline(),
                "not ready within {:?}: {:?}",
                self.options.deadline(),
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
        let report = self.driver.inspect(tag, Generation(9)).await;
        Ok(report.context("inspect")?.phase)
    }

    /// Waits until an instance has a phase.
    pub async fn wait_for(&self, tag: Tag, wanted: fn(&Phase) -> bool) -> Result<()> {
        let begin = Instant::now();
        loop {
            let phase = self.phase(tag).await?;
            if wanted(&phase) {
                return Ok(());
            }
            let waited = begin.elapsed() < self.options.deadline();
            ensure!(waited, "still {phase:?} after {:?}", begin.elapsed());
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Stops an instance, which must be stopped then.
    pub async fn stop(&self, target: &DriverTarget) -> Result<()> {
        let stop = async || self.driver.stop(target, GRACE).await;
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
        self.retried(async || self.driver.start(target).await).await
    }

    /// Changes the sizes of an instance.
    pub async fn resize(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        self.retried(async || self.driver.resize(target).await)
            .await
    }

    /// Calls `delete` until the instance is absent.
    pub async fn remove(&self, target: &DriverTarget) -> Result<()> {
        let begin = Instant::now();
        loop {
            let delete = async || self.driver.delete(target).await;
            let report = self.retried(delete).await.context("delete")?;
            ensure!(report.generation == target.generation, "{report:?}");
            if report.phase == Phase::Absent {
                return Ok(());
            }
            let waited = begin.elapsed() < self.options.deadline();
            ensure!(waited, "delete still reports {:?}", report.phase);
            tokio::time::sleep(report.again.unwrap_or(PAUSE)).await;
        }
    }

    /// The tags in the driver's list.
    pub async fn listed(&self) -> Result<Vec<(Tag, Phase)>> {
        let list = self.driver.list().await.context("list")?;
        Ok(list.into_iter().map(|row| (row.tag, row.phase)).collect())
    }

    /// Removes every instance of both installations, also those of failed rules.
    pub async fn remove_all(&self) -> Result<()> {
        for driver in [&self.driver, &self.other] {
            for row in driver.list().await? {
                let target = DriverTarget::orphan(row.tag);
                self.retried(async || driver.delete(&target).await).await?;
            }
        }
        Ok(())
    }
}
