//! Wharf's driver for engines that speak the Docker Engine API: dockerd from 20.10 on, and Podman
//! through its Docker interface.
//!
//! Each instance is one container, named after the instance's UUID, on a bridge network per owner.
//! A virtual machine runs inside its container ([`vm`]).
//!
//! `requests.toml` has the requests, and [`api`] names them. Reading order: [`names`] (the objects on
//! the engine), [`ensure`] (their creation), [`lifecycle`], [`grow`], [`content`], [`snapshots`], [`ports`], [`delete`],
//! then the queries: [`inspect`], [`stats`], [`probe`], [`identity`], [`survey`].
//!
//! Paths carry no version unless the setting `api_version` names one, so engines use their newest.
//! No single version suits all engines: Podman supports 1.41, and Docker 29 nothing below 1.44. The
//! requests of the driver have equal meaning in all supported versions.

pub mod api;
pub mod content;
pub mod context;
pub mod delete;
pub mod digest;
pub mod disk_limit;
pub mod ensure;
pub mod found;
pub mod gpu;
pub mod grow;
pub mod identity;
pub mod inspect;
pub mod libpod;
pub mod lifecycle;
pub mod lxcfs;
pub mod names;
pub mod network;
pub mod phase;
pub mod ports;
pub mod probe;
pub mod product;
pub mod pull;
pub mod resize;
pub mod settings;
pub mod snapshots;
pub mod start;
pub mod stats;
pub mod survey;
pub mod vm;
pub mod volumes;

use context::Context;
use wharf_guest::HostEngine;
use wharf_guest::{
    ContentMoves, Driver, Error, Health, Identity, Limits, Node, Observed, ObservedSnapshot,
    ObservedVolume, Ports, Report, SnapshotReport, Snapshots, Spec, Surroundings, Survey, Tag,
    Target, Usage, Volume, VolumeReport, Volumes,
};

/// The kind of engine, in blueprints and in `requests.toml`.
pub const ENGINE_KIND: &str = "docker";

/// The driver that the host loads.
pub struct Docker;

impl Driver for Docker {
    fn engine_kind() -> String {
        ENGINE_KIND.into()
    }

    fn probe(node: &Node) -> Result<Health, Error> {
        probe::probe(&Context::new(node, &HostEngine)?)
    }

    fn ensure(node: &Node, spec: &Spec) -> Result<Report, Error> {
        ensure::ensure(&Context::new(node, &HostEngine)?, spec)
    }

    fn start(node: &Node, target: &Target) -> Result<Report, Error> {
        lifecycle::start(&Context::new(node, &HostEngine)?, target)
    }

    fn grow(node: &Node, spec: &Spec) -> Result<Report, Error> {
        grow::grow(&Context::new(node, &HostEngine)?, spec)
    }

    fn stop(node: &Node, target: &Target, grace_ms: u32) -> Result<Report, Error> {
        lifecycle::stop(&Context::new(node, &HostEngine)?, target, grace_ms)
    }

    fn resize(node: &Node, target: &Target) -> Result<Report, Error> {
        resize::resize(&Context::new(node, &HostEngine)?, target)
    }

    fn delete(node: &Node, target: &Target) -> Result<Report, Error> {
        delete::delete(&Context::new(node, &HostEngine)?, target)
    }

    fn inspect(node: &Node, tag: &Tag) -> Result<Report, Error> {
        inspect::inspect(&Context::new(node, &HostEngine)?, tag)
    }

    fn list(node: &Node) -> Result<Vec<Observed>, Error> {
        inspect::list(&Context::new(node, &HostEngine)?)
    }

    fn stats(node: &Node, tag: &Tag, disk: bool) -> Result<Usage, Error> {
        stats::stats(&Context::new(node, &HostEngine)?, tag, disk)
    }
}

impl Ports for Docker {
    fn set_ports(node: &Node, target: &Target) -> Result<(), Error> {
        ports::set(&Context::new(node, &HostEngine)?, target)
    }
}

impl Identity for Docker {
    fn identify(node: &Node) -> Result<Option<String>, Error> {
        identity::identify(&Context::new(node, &HostEngine)?)
    }

    fn mark(node: &Node, _: &str) -> Result<(), Error> {
        identity::mark(&Context::new(node, &HostEngine)?)
    }
}

impl Survey for Docker {
    fn look(node: &Node, images: &[String]) -> Result<Surroundings, Error> {
        survey::look(&Context::new(node, &HostEngine)?, images)
    }
}

impl ContentMoves for Docker {
    fn offer(node: &Node, target: &Target) -> Result<Report, Error> {
        content::offer(&Context::new(node, &HostEngine)?, target)
    }

    fn fetch(node: &Node, spec: &Spec) -> Result<Report, Error> {
        content::fetch(&Context::new(node, &HostEngine)?, spec)
    }

    fn send(node: &Node, _: &Tag, _: &str) -> Result<SnapshotReport, Error> {
        content::send(&Context::new(node, &HostEngine)?)
    }
}

impl Volumes for Docker {
    fn make(node: &Node, volume: &Volume, images: &[String]) -> Result<VolumeReport, Error> {
        volumes::make(&Context::new(node, &HostEngine)?, volume, images)
    }

    fn unmake(node: &Node, _: &str) -> Result<VolumeReport, Error> {
        volumes::unmake(&Context::new(node, &HostEngine)?)
    }

    fn list_volumes(node: &Node) -> Result<Vec<ObservedVolume>, Error> {
        volumes::list(&Context::new(node, &HostEngine)?)
    }

    fn send_volume(node: &Node, _: &str) -> Result<VolumeReport, Error> {
        volumes::send(&Context::new(node, &HostEngine)?)
    }

    fn prove_limits(node: &Node, _: &str, images: &[String]) -> Result<Limits, Error> {
        volumes::prove(&Context::new(node, &HostEngine)?, images)
    }
}

impl Snapshots for Docker {
    fn take(node: &Node, target: &Target, _: &str) -> Result<SnapshotReport, Error> {
        snapshots::take(&Context::new(node, &HostEngine)?, target)
    }

    fn drop(node: &Node, instance: &Tag, _: &str) -> Result<SnapshotReport, Error> {
        snapshots::drop(&Context::new(node, &HostEngine)?, instance)
    }

    fn restore(node: &Node, spec: &Spec, snapshot: &str) -> Result<Report, Error> {
        snapshots::restore(&Context::new(node, &HostEngine)?, spec, snapshot)
    }

    fn list_snapshots(node: &Node) -> Result<Vec<ObservedSnapshot>, Error> {
        snapshots::list(&Context::new(node, &HostEngine)?)
    }
}

wharf_guest::export!(Docker: Driver + Ports + Identity + Survey + ContentMoves + Volumes + Snapshots);
