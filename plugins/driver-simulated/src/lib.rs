//! The driver for the host's simulated engine, and a small example of a driver. It keeps no state
//! and turns each call into one or more requests, as a driver for a real engine does.

mod answer;
mod body;

use answer::{accepted, list_page, mark, report, usage};
use body::{create, resize};
use wharf_guest::{
    Call, DiskGrow, Driver, Engine, Error, Features, Gpu, Health, HostEngine, Identity, Moves,
    Node, Observed, Path, Ports, Report, Spec, Surroundings, Survey, Tag, Target, Usage,
};

/// The kind of engine and of its images.
const KIND: &str = "simulated";
/// Maximum rows per page of a list.
const PAGE: &str = "20000";

/// The driver that the host loads.
#[derive(Debug)]
pub struct Simulated;

impl Driver for Simulated {
    fn engine_kind() -> String {
        KIND.to_owned()
    }

    fn probe(_: &Node) -> Result<Health, Error> {
        probe(&HostEngine)
    }

    fn ensure(node: &Node, spec: &Spec) -> Result<Report, Error> {
        let call = Call::put(&instance(&spec.tag)).json(&create(node, spec)?)?;
        report(&call.send(&HostEngine)?, spec.generation)
    }

    fn start(_: &Node, target: &Target) -> Result<Report, Error> {
        let call = Call::post(&of(&target.tag, Some("start"))).json(&resize(target.size))?;
        report(&call.send(&HostEngine)?, target.generation)
    }

    fn grow(_: &Node, spec: &Spec) -> Result<Report, Error> {
        let call = Call::post(&of(&spec.tag, Some("grow"))).json(&resize(spec.size))?;
        report(&call.send(&HostEngine)?, spec.generation)
    }

    fn stop(_: &Node, target: &Target, grace_ms: u32) -> Result<Report, Error> {
        let path = of(&target.tag, Some("stop")).query("grace-ms", &grace_ms.to_string());
        report(&Call::post(&path).send(&HostEngine)?, target.generation)
    }

    fn resize(_: &Node, target: &Target) -> Result<Report, Error> {
        let call = Call::patch(&of(&target.tag, None)).json(&resize(target.size))?;
        report(&call.send(&HostEngine)?, target.generation)
    }

    fn delete(_: &Node, target: &Target) -> Result<Report, Error> {
        let call = Call::delete(&of(&target.tag, None));
        report(&call.send(&HostEngine)?, target.generation)
    }

    fn inspect(_: &Node, tag: &Tag) -> Result<Report, Error> {
        report(&Call::get(&of(tag, None)).send(&HostEngine)?, 0)
    }

    fn list(node: &Node) -> Result<Vec<Observed>, Error> {
        list(&HostEngine, node)
    }

    fn stats(_: &Node, tag: &Tag, _: bool) -> Result<Usage, Error> {
        usage(&Call::get(&of(tag, Some("usage"))).send(&HostEngine)?)
    }
}

impl Ports for Simulated {
    fn set_ports(_: &Node, target: &Target) -> Result<(), Error> {
        let path = of(&target.tag, Some("ports"));
        accepted(
            &Call::put(&path)
                .json(&target.wan_ports)?
                .send(&HostEngine)?,
        )
    }
}

impl Moves for Simulated {
    fn move_here(node: &Node, spec: &Spec) -> Result<Report, Error> {
        let path = instance(&spec.tag).segment("move-here");
        let call = Call::post(&path).json(&create(node, spec)?)?;
        report(&call.send(&HostEngine)?, spec.generation)
    }
}

impl Identity for Simulated {
    fn identify(node: &Node) -> Result<Option<String>, Error> {
        mark(&Call::get(&marks(node)).send(&HostEngine)?)
    }

    fn mark(node: &Node, mark: &str) -> Result<(), Error> {
        accepted(&Call::put(&marks(node)).json(&mark)?.send(&HostEngine)?)
    }
}

impl Survey for Simulated {
    fn look(_: &Node, images: &[String]) -> Result<Surroundings, Error> {
        let info = info(&HostEngine)?;
        let mut missing_images = info.missing_images;
        missing_images.retain(|missing| images.contains(missing));
        Ok(Surroundings {
            networks: Vec::new(),
            missing_images,
            own_view: None,
            machine: None,
        })
    }
}

wharf_guest::export!(Simulated: Driver + Ports + Identity + Survey + Moves);

fn info(engine: &dyn Engine) -> Result<answer::Info, Error> {
    answer::body(&Call::get(&Path::new("/info")).send(engine)?)
}

fn probe(engine: &dyn Engine) -> Result<Health, Error> {
    let info = info(engine)?;
    Ok(Health {
        version: info.version,
        features: Features {
            containers: true,
            vms: true,
            live_resize: info.live_resize,
            disk_grow: match info.disk_grow.as_str() {
                "running" => DiskGrow::Running,
                "stopped" => DiskGrow::Stopped,
                _ => DiskGrow::No,
            },
            disk_limit: true,
            gpus: true,
            stats: true,
            network: false,
            kvm: false,
        },
        n_vcpus: info.n_vcpus,
        mem_gib: info.mem_gib,
        disk_size_gib: info.disk_size_gib,
        gpus: info
            .gpus
            .into_iter()
            .map(|gpu| Gpu {
                model: gpu.model,
                device: gpu.device,
            })
            .collect(),
        boot_id: info.boot_id,
        hint: String::new(),
    })
}

/// Lists page by page: a node may have more instances than one answer can contain.
fn list(engine: &dyn Engine, node: &Node) -> Result<Vec<Observed>, Error> {
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let mut path = Path::new("/instances")
            .query("installation", &node.installation)
            .query("limit", PAGE);
        if let Some(after) = &after {
            path = path.query("after", after);
        }
        let (rows, next) = list_page(&Call::get(&path).send(engine)?)?;
        all.extend(rows);
        match next {
            Some(next) if after.as_ref() != Some(&next) => after = Some(next),
            _ => return Ok(all),
        }
    }
}

fn marks(node: &Node) -> Path {
    Path::new("/marks").segment(&node.installation)
}

fn instance(tag: &Tag) -> Path {
    Path::new("/instances").segment(&tag.instance)
}

/// Only the tag's incarnation is read, started, stopped or deleted.
fn of(tag: &Tag, verb: Option<&str>) -> Path {
    let path = match verb {
        Some(verb) => instance(tag).segment(verb),
        None => instance(tag),
    };
    path.query("incarnation", &tag.incarnation.to_string())
}
