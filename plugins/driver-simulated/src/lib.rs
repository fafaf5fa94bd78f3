//! The driver for the host's simulated engine, and a small example of a driver. It keeps no state
//! and names one or more requests of `requests.toml` in each call, as a driver for a real engine does.

mod answer;

use answer::{accepted, list_page, mark, report, usage};
use wharf_guest::{
    ContentMoves, DiskGrow, Driver, EngineAnswer, Error, Features, Gpu, Health, Identity,
    ImageContent, Limits, Moves, Node, Observed, ObservedSnapshot, ObservedVolume, Phase, Ports,
    Report, SnapshotKind, SnapshotReport, SnapshotState, Snapshots, Spec, Surroundings, Survey,
    Tag, Target, Usage, Volume, VolumeContent, VolumeReport, VolumeState, Volumes,
};
use wharf_guest::{Engine, HostEngine, Moving, NamedRequest};

/// Delay while content is on its way, ms.
const OFFERED_AGAIN_MS: u32 = 20;

/// The driver that the host loads.
#[derive(Debug)]
pub struct Simulated;

impl Driver for Simulated {
    fn engine_kind() -> String {
        "simulated".to_owned()
    }

    fn probe(_: &Node) -> Result<Health, Error> {
        probe()
    }

    fn ensure(_: &Node, spec: &Spec) -> Result<Report, Error> {
        if spec.fetched && matches!(report(&send("read")?, 0)?.phase, Phase::Absent) {
            return Err(Error::NotFound);
        }
        report(&send("create")?, spec.generation)
    }

    fn start(_: &Node, target: &Target) -> Result<Report, Error> {
        report(&send("start")?, target.generation)
    }

    fn grow(_: &Node, spec: &Spec) -> Result<Report, Error> {
        report(&send("grow")?, spec.generation)
    }

    fn stop(_: &Node, target: &Target, grace_ms: u32) -> Result<Report, Error> {
        let request = NamedRequest::new("stop").with("grace-ms", grace_ms);
        report(&request.send(&HostEngine)?, target.generation)
    }

    fn resize(_: &Node, target: &Target) -> Result<Report, Error> {
        report(&send("resize")?, target.generation)
    }

    fn delete(_: &Node, target: &Target) -> Result<Report, Error> {
        report(&send("delete")?, target.generation)
    }

    fn inspect(_: &Node, _: &Tag) -> Result<Report, Error> {
        report(&send("read")?, 0)
    }

    fn list(_: &Node) -> Result<Vec<Observed>, Error> {
        list()
    }

    fn stats(_: &Node, _: &Tag, _: bool) -> Result<Usage, Error> {
        usage(&send("usage")?)
    }
}

impl Ports for Simulated {
    fn set_ports(_: &Node, _: &Target) -> Result<(), Error> {
        accepted(&send("ports")?)
    }
}

impl Moves for Simulated {
    fn move_here(_: &Node, spec: &Spec) -> Result<Report, Error> {
        report(&send("move-here")?, spec.generation)
    }
}

impl ContentMoves for Simulated {
    fn offer(_: &Node, target: &Target) -> Result<Report, Error> {
        let found = report(&send("read")?, target.generation)?;
        if matches!(found.phase, Phase::Stopped(_)) {
            begin("offer")?;
        }
        if matches!(found.phase, Phase::Absent) {
            return Err(Error::NotFound);
        }
        Ok(found)
    }

    fn fetch(_: &Node, spec: &Spec) -> Result<Report, Error> {
        let found = report(&send("fetch")?, spec.generation)?;
        if !matches!(found.phase, Phase::Elsewhere(_)) {
            return Ok(found);
        }
        has_ended("receive")?;
        Ok(found)
    }

    fn send(_: &Node, _: &Tag, _: &str) -> Result<SnapshotReport, Error> {
        let found = answer::snapshot(&send("read-snapshot")?)?;
        let is_whole = matches!(found.state, SnapshotState::Ready(_));
        if !is_whole || has_ended("send")? {
            return Ok(found);
        }
        Ok(SnapshotReport {
            state: SnapshotState::Copying(String::new()),
            again_ms: Some(OFFERED_AGAIN_MS),
        })
    }
}

impl Identity for Simulated {
    fn identify(_: &Node) -> Result<Option<String>, Error> {
        mark(&send("read-mark")?)
    }

    fn mark(_: &Node, _: &str) -> Result<(), Error> {
        accepted(&send("write-mark")?)
    }
}

impl Survey for Simulated {
    fn look(_: &Node, images: &[String]) -> Result<Surroundings, Error> {
        let info = info()?;
        let asked = |mut found: Vec<String>| {
            found.retain(|image| images.contains(image));
            found
        };
        let contents = info.image_contents.into_iter();
        let contents = contents.filter(|(image, _)| images.contains(image));
        Ok(Surroundings {
            networks: Vec::new(),
            missing_images: asked(info.missing_images),
            images_without_ssh: asked(info.images_without_ssh),
            image_contents: contents
                .map(|(image, content)| ImageContent { image, content })
                .collect(),
            own_view: None,
            machine: None,
        })
    }
}

impl Snapshots for Simulated {
    fn take(_: &Node, _: &Target, _: &str) -> Result<SnapshotReport, Error> {
        answer::snapshot(&send("take-snapshot")?)
    }

    fn drop(_: &Node, _: &Tag, _: &str) -> Result<SnapshotReport, Error> {
        HostEngine.end_transfer()?;
        answer::snapshot(&send("drop-snapshot")?)
    }

    fn restore(_: &Node, spec: &Spec, _: &str) -> Result<Report, Error> {
        report(&send("restore")?, spec.generation)
    }

    fn list_snapshots(_: &Node) -> Result<Vec<ObservedSnapshot>, Error> {
        answer::snapshots(&send("list-snapshots")?)
    }
}

impl Volumes for Simulated {
    fn make(_: &Node, volume: &Volume, _: &[String]) -> Result<VolumeReport, Error> {
        if !volume.fetched {
            return answer::volume(&send("make-volume")?);
        }
        let found = answer::volume(&send("fetch-volume")?)?;
        if matches!(found.state, VolumeState::Making(_)) {
            has_ended("receive-volume")?;
        }
        Ok(found)
    }

    fn send_volume(_: &Node, _: &str) -> Result<VolumeReport, Error> {
        let found = answer::volume(&send("read-volume")?)?;
        if !matches!(found.state, VolumeState::Ready) || has_ended("send-volume")? {
            return Ok(found);
        }
        Ok(VolumeReport {
            state: VolumeState::Making(String::new()),
            again_ms: Some(OFFERED_AGAIN_MS),
        })
    }

    fn unmake(_: &Node, _: &str) -> Result<VolumeReport, Error> {
        HostEngine.end_transfer()?;
        answer::volume(&send("unmake-volume")?)
    }

    fn list_volumes(_: &Node) -> Result<Vec<ObservedVolume>, Error> {
        answer::volumes(&send("list-volumes")?)
    }

    fn set_volumes(_: &Node, _: &Target) -> Result<(), Error> {
        accepted(&send("set-volumes")?)
    }

    fn prove_limits(_: &Node, _: &str, _: &[String]) -> Result<Limits, Error> {
        answer::limits(&send("prove-limits")?)
    }
}

wharf_guest::export!(Simulated: Driver + Ports + Identity + Survey + Moves + ContentMoves + Volumes + Snapshots);

/// Begins a transfer, unless there is one. Returns whether it has ended.
fn has_ended(transfer: &str) -> Result<bool, Error> {
    match Moving::state(&HostEngine, |answer| accepted(&answer))? {
        Moving::Nothing => begin(transfer).map(|()| false),
        Moving::Under(_) => Ok(false),
        Moving::Ended(accepted) => accepted.map(|()| true),
    }
}

/// Begins a transfer. The other end may not be there yet.
fn begin(transfer: &str) -> Result<(), Error> {
    NamedRequest::new(transfer).transfer(&HostEngine, OFFERED_AGAIN_MS)
}

/// Sends a request of the request file that has no arguments.
fn send(name: &str) -> Result<EngineAnswer, Error> {
    Ok(NamedRequest::new(name).send(&HostEngine)?)
}

fn info() -> Result<answer::Info, Error> {
    answer::body(&send("info")?)
}

fn probe() -> Result<Health, Error> {
    let info = info()?;
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
            volumes: info.volumes,
            late_attach: info.late_attach,
            content: info.content,
            volume_content: match info.volume_content.as_str() {
                "at_rest" => VolumeContent::AtRest,
                "at_any_time" => VolumeContent::AtAnyTime,
                _ => VolumeContent::None,
            },
            snapshots: match info.snapshots.as_str() {
                "shared" => SnapshotKind::Shared,
                "copied" => SnapshotKind::Copied,
                _ => SnapshotKind::None,
            },
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
fn list() -> Result<Vec<Observed>, Error> {
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let request = NamedRequest::new("list").with_some("after", after.as_ref());
        let (rows, next) = list_page(&request.send(&HostEngine)?)?;
        all.extend(rows);
        match next {
            Some(next) if after.as_ref() != Some(&next) => after = Some(next),
            _ => return Ok(all),
        }
    }
}
