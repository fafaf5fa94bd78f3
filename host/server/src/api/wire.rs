//! Wire types of responses, separate from the domain's types.

use super::render;
use bytes::Bytes;
use serde::Serialize;
use std::net::Ipv4Addr;
use wharf_config::host;
use wharf_domain::capacity;
use wharf_domain::error::Error;
use wharf_domain::money::{NANO, Rate};
use wharf_domain::scope::{Scope, Scopes};
use wharf_instances::InstanceView;

/// Bytes to reserve for one rendered instance; most are a little shorter.
const INSTANCE_BYTES: usize = 896;

/// The part of an instance that a caller sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sight {
    Whole,
    /// The password opens a shell, as a terminal does, so it needs the scope `write`.
    WithoutPassword,
    /// A caller without the scope `read` sees the UUID and the state of an instance that it changes.
    State,
}

impl Sight {
    /// The part that these scopes show.
    pub fn of(scopes: Scopes) -> Self {
        match (scopes.has(Scope::Read), scopes.has(Scope::Write)) {
            (true, true) => Self::Whole,
            (true, false) => Self::WithoutPassword,
            (false, _) => Self::State,
        }
    }
}

/// An instance for a caller without the scope `read`.
#[derive(Serialize)]
struct ChangedInstance<'a> {
    uuid: uuid::Uuid,
    state: &'a str,
}

impl<'a> ChangedInstance<'a> {
    fn render(view: &InstanceView, state: &'a str) -> Result<Bytes, Error> {
        let uuid = view.instance.id.0;
        render(&Self { uuid, state }, 96)
    }
}

/// The instance object: specification 2.3.
#[derive(Serialize)]
struct InstanceWire<'a> {
    uuid: uuid::Uuid,
    name: &'a str,
    lan_ipv4: Ipv4Addr,
    state: &'static str,
    n_vcpus: u32,
    mem_gib: f64,
    disk_size_gib: u32,
    n_gpus: usize,
    gpu_model: Option<&'a str>,
    wan_ssh_port: u16,
    resource_type: &'static str,
    flavor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_email: Option<&'a str>,
    public_ipv4: Option<Ipv4Addr>,
    original_service_password: &'a str,
    created_at: String,
    vcpu_cost_hourly_usd: f64,
    ram_cost_hourly_usd: f64,
    storage_cost_hourly_usd: f64,
    gpu_cost_hourly_usd: f64,
    cpu_tier: &'static str,
    ssh_command: Option<String>,
    webapp_url: Option<&'a str>,
    wan_ports: &'a [u16],
    volumes: Vec<MountedVolumeWire<'a>>,
}

/// A volume of an instance.
#[derive(Serialize)]
struct MountedVolumeWire<'a> {
    volume: uuid::Uuid,
    name: &'a str,
    path: &'a str,
    read_only: bool,
}

fn mounted(view: &InstanceView) -> Vec<MountedVolumeWire<'_>> {
    let volumes = view.volumes.iter();
    let wire = volumes.map(|mounted| MountedVolumeWire {
        volume: mounted.volume.0,
        name: &mounted.name,
        path: &mounted.path,
        read_only: mounted.read_only,
    });
    wire.collect()
}

impl<'a> InstanceWire<'a> {
    fn new(view: &'a InstanceView, owner_email: Option<&'a str>, sight: Sight) -> Self {
        let i = &view.instance;
        Self {
            uuid: i.id.0,
            name: i.name.as_str(),
            lan_ipv4: i.lan_ipv4,
            state: i.state().as_str(),
            n_vcpus: i.size.n_vcpus,
            mem_gib: f64::from(i.size.mem_gib),
            disk_size_gib: i.size.disk_size_gib,
            n_gpus: i.gpus.len(),
            gpu_model: i.gpu_model.as_deref(),
            wan_ssh_port: i.ssh_port,
            resource_type: i.resource_type.as_str(),
            flavor: &i.flavor,
            owner_email,
            public_ipv4: i.public_ipv4,
            original_service_password: match sight {
                Sight::Whole => view.password.expose(),
                Sight::WithoutPassword | Sight::State => "",
            },
            created_at: i.created_at.to_rfc3339(),
            vcpu_cost_hourly_usd: decimal(i.rates.vcpu),
            ram_cost_hourly_usd: decimal(i.rates.mem),
            storage_cost_hourly_usd: decimal(i.rates.disk),
            gpu_cost_hourly_usd: decimal(i.rates.gpu),
            cpu_tier: i.cpu_tier.as_str(),
            ssh_command: i.ssh.then(|| {
                format!(
                    "ssh -p {} {}@{}",
                    i.ssh_port,
                    i.login_user,
                    host::plain(&i.ssh_host)
                )
            }),
            webapp_url: view.web_url.as_deref(),
            wan_ports: &i.wan_ports,
            volumes: mounted(view),
        }
    }
}

/// A size in catalogues.
#[derive(Serialize)]
pub(super) struct SizeWire {
    n_vcpus: u32,
    mem_gib: u32,
    disk_size_gib: u32,
}

impl From<capacity::Size> for SizeWire {
    fn from(size: capacity::Size) -> Self {
        Self {
            n_vcpus: size.n_vcpus,
            mem_gib: size.mem_gib,
            disk_size_gib: size.disk_size_gib,
        }
    }
}

/// A rate in USD.
pub(super) fn decimal(rate: Rate) -> f64 {
    usd(i128::from(rate.0))
}

/// The double nearest to an amount in nano-USD. Its shortest decimal, which is what serde_json writes,
/// is exactly the amount below a million USD: doubles tell all decimals of 15 digits apart.
#[expect(
    clippy::cast_precision_loss,
    reason = "both are integers below 2^53 up to nine million USD"
)]
pub(super) fn usd(nano: i128) -> f64 {
    nano as f64 / NANO as f64
}

/// One instance, for its owner.
pub(super) fn instance(view: &InstanceView, sight: Sight) -> Result<Bytes, Error> {
    if sight == Sight::State {
        return ChangedInstance::render(view, view.instance.state().as_str());
    }
    let instance = InstanceWire::new(view, Some(&view.owner_email), sight);
    render(&instance, INSTANCE_BYTES)
}

/// A list of instances.
pub(super) fn list(views: &[InstanceView], sight: Sight) -> Result<Bytes, Error> {
    struct InstanceListWire<'a>(&'a [InstanceView], Sight);
    impl Serialize for InstanceListWire<'_> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let instances = self.0.iter();
            serializer.collect_seq(instances.map(|view| InstanceWire::new(view, None, self.1)))
        }
    }
    render(
        &InstanceListWire(views, sight),
        2 + views.len() * INSTANCE_BYTES,
    )
}

/// The result of stop and restart: specification 2.6.
pub(super) fn action(
    view: &InstanceView,
    sight: Sight,
    done: &str,
    state: &str,
) -> Result<Bytes, Error> {
    #[derive(Serialize)]
    struct Action<'a> {
        message: String,
        uuid: uuid::Uuid,
        state: &'a str,
    }
    if sight == Sight::State {
        return ChangedInstance::render(view, state);
    }
    let result = Action {
        message: format!("Instance {} {done}.", view.instance.name),
        uuid: view.instance.id.0,
        state,
    };
    render(&result, 256)
}

/// The result of add-port and remove-port: specification 2.6.
pub(super) fn ports(view: &InstanceView, sight: Sight, message: String) -> Result<Bytes, Error> {
    #[derive(Serialize)]
    struct PortsWire<'a> {
        message: String,
        uuid: uuid::Uuid,
        wan_ports: &'a [u16],
    }
    if sight == Sight::State {
        return ChangedInstance::render(view, view.instance.state().as_str());
    }
    let result = PortsWire {
        message,
        uuid: view.instance.id.0,
        wan_ports: &view.instance.wan_ports,
    };
    render(&result, 640)
}

/// The result of attach-volume and detach-volume.
pub(super) fn volumes(view: &InstanceView, sight: Sight, message: String) -> Result<Bytes, Error> {
    #[derive(Serialize)]
    struct VolumesWire<'a> {
        message: String,
        uuid: uuid::Uuid,
        volumes: Vec<MountedVolumeWire<'a>>,
    }
    if sight == Sight::State {
        return ChangedInstance::render(view, view.instance.state().as_str());
    }
    let result = VolumesWire {
        message,
        uuid: view.instance.id.0,
        volumes: mounted(view),
    };
    render(&result, 640)
}

#[cfg(test)]
mod tests;
