//! Conversion of drivers' arguments and results.

use super::{
    blueprint, clean, nonsense, resource_type_to_guest, short, size_to_guest, snapshots, volumes,
};
use crate::bindings::{driver_types as wit, survey};
use std::time::Duration;
use tracing::warn;
use wharf_domain::capacity::{GpuDevice, Size};
use wharf_domain::driver::{
    DiskGrow, DriverReport, DriverTarget, EngineNetwork, Features, InstanceNetwork, NodeHealth,
    Observed, Phase, PluginError, ResourceUsage, Spec, StoreMark, Surroundings, Tag,
};
use wharf_domain::ids::{Generation, InstanceId, NodeId};

/// Longest version or boot id, bytes.
const MAX_NAME: usize = 200;
/// Most GPUs of a node.
const MAX_GPUS: usize = 1024;
/// Most contents of images of a node.
const MAX_CONTENTS: usize = 64;
/// Longest content of an image, characters.
const MAX_CONTENT: usize = 100;
/// Longest text in the probe cache, bytes.
const MAX_PROBE_CACHE: usize = 1024;
/// Most rows of a list of a node.
const MAX_ROWS: usize = 100_000;
/// A larger total is invalid.
const MAX_TOTAL: u32 = 10_000_000;
/// Shortest and longest time after which a driver can ask for the next call.
const AGAIN: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(600));

/// To a guest.
pub fn tag(tag: Tag) -> wit::Tag {
    wit::Tag {
        instance: tag.instance.to_string(),
        incarnation: tag.incarnation,
    }
}

/// To a guest.
pub fn spec(spec: &Spec) -> wit::Spec {
    let target = &spec.target;
    wit::Spec {
        tag: tag(target.tag),
        generation: target.generation.0,
        resource_type: resource_type_to_guest(target.resource_type),
        hostname: spec.hostname.clone(),
        size: size_to_guest(target.size),
        network: network(&target.network),
        published: spec
            .published
            .iter()
            .map(|port| wit::PublishedPort {
                node_port: port.node_port,
                instance_port: port.instance_port,
                private: port.private,
            })
            .collect(),
        public_network: target.public_network.as_ref().map(network),
        wan_ports: target.wan_ports.clone(),
        volumes: target.volumes.iter().map(volumes::mount).collect(),
        gpu_devices: spec.gpu_devices.clone(),
        source: spec.source.map(snapshots::source),
        fetched: spec.fetched,
        may_exist: spec.may_exist,
        blueprint: blueprint::to_guest(&spec.blueprint),
    }
}

/// To a guest.
pub fn target(target: &DriverTarget) -> wit::Target {
    wit::Target {
        tag: tag(target.tag),
        generation: target.generation.0,
        resource_type: resource_type_to_guest(target.resource_type),
        size: size_to_guest(target.size),
        network: network(&target.network),
        public_network: target.public_network.as_ref().map(network),
        wan_ports: target.wan_ports.clone(),
        volumes: target.volumes.iter().map(volumes::mount).collect(),
    }
}

fn network(network: &InstanceNetwork) -> wit::Network {
    wit::Network {
        id: network.id.clone(),
        subnet: network.subnet.to_string(),
        gateway: network.gateway.to_string(),
        address: network.address.to_string(),
    }
}

/// From a guest. A report for another generation is invalid.
pub fn report(report: wit::Report, asked: Generation) -> Result<DriverReport, PluginError> {
    if report.generation != asked.0 {
        return Err(nonsense(format!(
            "a report for generation {}, asked for {}",
            report.generation, asked.0
        )));
    }
    Ok(DriverReport {
        generation: asked,
        phase: phase(report.phase),
        again: again(report.again_ms),
    })
}

/// The delay before a further call, within its bounds.
pub fn again(ms: Option<u32>) -> Option<Duration> {
    ms.map(|ms| Duration::from_millis(ms.into()).clamp(AGAIN.0, AGAIN.1))
}

fn phase(phase: wit::Phase) -> Phase {
    match phase {
        wit::Phase::Absent => Phase::Absent,
        wit::Phase::Pulling(progress) => Phase::Pulling(short(&progress)),
        wit::Phase::Creating => Phase::Creating,
        wit::Phase::Booting => Phase::Booting,
        wit::Phase::Ready => Phase::Ready,
        wit::Phase::Stopped(why) => Phase::Stopped(why.map(|why| short(&why))),
        wit::Phase::Failed(why) => Phase::Failed(short(&why)),
        wit::Phase::Growing(progress) => Phase::Growing(short(&progress)),
        wit::Phase::Elsewhere(place) => Phase::Elsewhere(short(&place)),
    }
}

/// From a guest. An invalid id is skipped: foreign labels on the engine must not hide our objects.
pub fn list(list: Vec<wit::Observed>, node: &NodeId) -> Result<Vec<Observed>, PluginError> {
    rows(list, "instances", node, |row| {
        Some(Observed {
            tag: tag_from_guest(&row.tag)?,
            phase: phase(row.phase),
        })
    })
}

/// From a guest; none if the id is not valid.
pub fn tag_from_guest(tag: &wit::Tag) -> Option<Tag> {
    Some(Tag {
        instance: InstanceId::parse(&tag.instance)?,
        incarnation: tag.incarnation,
    })
}

/// A list of a guest, without the rows that `read` does not accept.
pub fn rows<G, T>(
    list: Vec<G>,
    what: &str,
    node: &NodeId,
    read: impl FnMut(G) -> Option<T>,
) -> Result<Vec<T>, PluginError> {
    let given = list.len();
    if given > MAX_ROWS {
        return Err(nonsense(format!(
            "a list of {given} {what}; at most {MAX_ROWS}"
        )));
    }
    let known: Vec<_> = list.into_iter().filter_map(read).collect();
    if known.len() < given {
        warn!(%node, rows = given - known.len(), "the driver's list of {what} has rows without valid ids; they are ignored");
    }
    Ok(known)
}

/// From a guest.
pub fn health(health: wit::Health) -> Result<NodeHealth, PluginError> {
    let totals = Size {
        n_vcpus: health.n_vcpus,
        mem_gib: health.mem_gib,
        disk_size_gib: health.disk_size_gib,
    };
    if [totals.n_vcpus, totals.mem_gib, totals.disk_size_gib]
        .iter()
        .any(|total| *total > MAX_TOTAL)
    {
        return Err(nonsense(format!("a node of {totals:?}")));
    }
    if health.gpus.len() > MAX_GPUS {
        return Err(nonsense(format!("a node of {} GPUs", health.gpus.len())));
    }
    let features = health.features;
    Ok(NodeHealth {
        version: clean(&health.version, MAX_NAME),
        features: Features {
            containers: features.containers,
            vms: features.vms,
            live_resize: features.live_resize,
            disk_grow: match features.disk_grow {
                wit::DiskGrow::No => DiskGrow::No,
                wit::DiskGrow::Stopped => DiskGrow::Stopped,
                wit::DiskGrow::Running => DiskGrow::Running,
            },
            disk_limit: features.disk_limit,
            gpus: features.gpus,
            stats: features.stats,
            network: features.network,
            kvm: features.kvm,
            volumes: features.volumes,
            late_attach: features.late_attach,
            snapshots: snapshots::kind(features.snapshots),
            content: features.content,
            volume_content: volumes::content(features.volume_content),
        },
        totals,
        gpus: health
            .gpus
            .into_iter()
            .map(|gpu| GpuDevice {
                model: clean(&gpu.model, MAX_NAME),
                device: clean(&gpu.device, MAX_NAME),
            })
            .collect(),
        boot_id: clean(&health.boot_id, MAX_NAME),
    })
}

/// From a guest. A mark that the host cannot have made is invalid.
pub fn mark(read: Result<Option<String>, PluginError>) -> Result<StoreMark, PluginError> {
    match read {
        Ok(None) => Ok(StoreMark::Missing),
        Ok(Some(mark)) if StoreMark::is_valid(&mark) => Ok(StoreMark::Is(mark)),
        Ok(Some(mark)) => Err(nonsense(format!("a mark of {} bytes", mark.len()))),
        Err(PluginError::Unsupported(_)) => Ok(StoreMark::Unsupported),
        Err(error) => Err(error),
    }
}

/// From a guest. Ranges that are not of IPv4 do not matter to the configuration.
pub fn surroundings(found: survey::Surroundings) -> Surroundings {
    let network = |network: survey::EngineNetwork| EngineNetwork {
        subnets: network
            .subnets
            .iter()
            .filter_map(|text| text.parse().ok())
            .collect(),
        name: clean(&network.name, MAX_NAME),
        installation: network.installation.map(|id| clean(&id, MAX_NAME)),
    };
    let names = |given: Vec<String>| given.iter().map(|name| clean(name, MAX_NAME)).collect();
    let contents = found.image_contents.into_iter().map(|image| {
        let text = clean(&image.content, image.content.len());
        let text: String = text.trim().chars().take(MAX_CONTENT).collect();
        (clean(&image.image, MAX_NAME), text)
    });
    let contents = contents.filter(|(_, text)| !text.is_empty());
    Surroundings {
        networks: found.networks.into_iter().map(network).collect(),
        missing_images: names(found.missing_images),
        images_without_ssh: names(found.images_without_ssh),
        image_contents: contents.take(MAX_CONTENTS).collect(),
        own_view: found.own_view,
        machine: found.machine.map(|name| clean(&name, MAX_NAME)),
    }
}

/// From a guest, for the probe cache; unchanged.
pub fn probe_cache(health: &mut wit::Health) -> Result<String, PluginError> {
    let cache = std::mem::take(&mut health.hint);
    if cache.len() > MAX_PROBE_CACHE {
        let bytes = cache.len();
        return Err(nonsense(format!(
            "a probe cache of {bytes} bytes; at most {MAX_PROBE_CACHE}"
        )));
    }
    Ok(cache)
}

/// The host's clock, for an engine that tells no time with its figures.
fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// From a guest.
pub fn usage(usage: wit::Usage) -> ResourceUsage {
    ResourceUsage {
        cpu_ns: usage.cpu_ns,
        at_ns: match usage.at_ns {
            0 => now_ns(),
            at_ns => at_ns,
        },
        mem_used_bytes: usage.mem_used_bytes,
        disk_used_bytes: usage.disk_used_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_report_is_a_fault() {
        let given = wit::Report {
            generation: 3,
            phase: wit::Phase::Ready,
            again_ms: Some(0),
        };
        let fresh = report(given.clone(), Generation(3)).unwrap();
        assert_eq!(fresh.phase, Phase::Ready);
        assert_eq!(fresh.again, Some(AGAIN.0));
        assert!(matches!(
            report(given, Generation(4)),
            Err(PluginError::Fault(_))
        ));
    }

    #[test]
    fn a_list_has_a_bound() {
        let row = wit::Observed {
            tag: wit::Tag {
                instance: String::new(),
                incarnation: 1,
            },
            phase: wit::Phase::Ready,
        };
        let node = NodeId("n".into());
        assert!(list(vec![row.clone(); MAX_ROWS], &node).is_ok());
        let endless = list(vec![row; MAX_ROWS + 1], &node);
        assert!(matches!(endless, Err(PluginError::Fault(_))));
    }

    #[test]
    fn contents_of_images_are_plain_short_and_few() {
        let content = |image: &str, content: &str| survey::ImageContent {
            image: image.into(),
            content: content.into(),
        };
        let contents = |image_contents| {
            let found = survey::Surroundings {
                networks: Vec::new(),
                missing_images: Vec::new(),
                images_without_ssh: Vec::new(),
                image_contents,
                own_view: None,
                machine: None,
            };
            surroundings(found).image_contents
        };
        let long = "ä".repeat(MAX_CONTENT);
        let found = contents(vec![
            content("a", " RStudio\u{1b}[2J\nServer "),
            content("b", &format!("{long}ä")),
            content("c", ""),
            content("d", "\t"),
        ]);
        let found: Vec<_> = found
            .iter()
            .map(|(image, text)| (&**image, &**text))
            .collect();
        assert_eq!(found, [("a", "RStudio [2J Server"), ("b", &*long)]);
        let many = |n: usize| (0..n).map(|n| content(&n.to_string(), "R")).collect();
        assert_eq!(contents(many(MAX_CONTENTS)).len(), MAX_CONTENTS);
        assert_eq!(contents(many(MAX_CONTENTS + 1)).len(), MAX_CONTENTS);
    }

    #[test]
    fn foreign_rows_are_left_out() {
        let row = |instance: &str| wit::Observed {
            tag: wit::Tag {
                instance: instance.into(),
                incarnation: 1,
            },
            phase: wit::Phase::Creating,
        };
        let rows = vec![row("x"), row("0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f")];
        assert_eq!(list(rows, &NodeId("n".into())).unwrap().len(), 1);
    }
}
