//! Wharf's driver for Incus. A node is one member of a cluster; a single server is a cluster of one.
//!
//! Each instance is one Incus container, whose name has the installation, the instance and the
//! incarnation. All objects are in one project, to which the certificate of Wharf may be restricted.
//!
//! Instances join the bridge of their member, or the network of their owner, which OVN makes:
//! [`settings::Mode`].
//!
//! Reading order: `requests.toml` and [`names`] (the objects on the engine), [`ensure`] (their creation),
//! [`owner_network`] and [`forward`] (those of OVN mode), [`lifecycle`], [`resize`], [`relocate`],
//! [`content`], [`delete`], [`volumes`], [`snapshots`], then the queries: [`inspect`], [`stats`], [`probe`], [`identity`], [`survey`]. Only [`api`]
//! names requests.
//!
//! A request rarely makes a member ask another one, which takes many seconds while that one is out of
//! reach: lists name objects without details, and details are those of the member's own instances. The
//! exceptions are moves, the stop and the removal of an instance that was moved, and the networks and
//! forwards of OVN mode, which all members have.

pub mod api;
pub mod content;
pub mod context;
pub mod delete;
pub mod digest;
pub mod ensure;
pub mod forward;
pub mod found;
pub mod gpu;
pub mod id_range;
pub mod identity;
pub mod inspect;
pub mod lifecycle;
pub mod limits;
pub mod metrics;
pub mod names;
pub mod operators_part;
pub mod owner_network;
pub mod phase;
pub mod probe;
pub mod publish_range;
pub mod relocate;
pub mod resize;
pub mod settings;
pub mod snapshots;
pub mod start;
pub mod stats;
pub mod survey;
pub mod volumes;

use context::Context;
use wharf_guest::HostEngine;
use wharf_guest::{
    ContentMoves, Driver, Error, Health, Identity, Limits, Moves, Node, Observed, ObservedSnapshot,
    ObservedVolume, Report, SnapshotReport, Snapshots, Spec, Surroundings, Survey, Tag, Target,
    Usage, Volume, VolumeReport, Volumes,
};

/// The kind of engine, in blueprints and in `requests.toml`.
pub const ENGINE_KIND: &str = "incus";

/// The driver that the host loads.
pub struct Incus;

impl Driver for Incus {
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

impl Moves for Incus {
    fn move_here(node: &Node, spec: &Spec) -> Result<Report, Error> {
        relocate::move_here(&Context::new(node, &HostEngine)?, spec)
    }
}

impl ContentMoves for Incus {
    fn offer(node: &Node, target: &Target) -> Result<Report, Error> {
        content::offer(&Context::new(node, &HostEngine)?, target)
    }

    fn fetch(node: &Node, spec: &Spec) -> Result<Report, Error> {
        content::fetch(&Context::new(node, &HostEngine)?, spec)
    }

    fn send(node: &Node, _: &Tag, snapshot: &str) -> Result<SnapshotReport, Error> {
        content::send(&Context::new(node, &HostEngine)?, snapshot)
    }
}

impl Identity for Incus {
    fn identify(node: &Node) -> Result<Option<String>, Error> {
        identity::identify(&Context::new(node, &HostEngine)?)
    }

    fn mark(node: &Node, _: &str) -> Result<(), Error> {
        identity::mark(&Context::new(node, &HostEngine)?)
    }
}

impl Survey for Incus {
    fn look(node: &Node, images: &[String]) -> Result<Surroundings, Error> {
        survey::look(&Context::new(node, &HostEngine)?, images)
    }
}

impl Volumes for Incus {
    fn make(node: &Node, volume: &Volume, _: &[String]) -> Result<VolumeReport, Error> {
        volumes::make(&Context::new(node, &HostEngine)?, volume)
    }

    fn unmake(node: &Node, _: &str) -> Result<VolumeReport, Error> {
        volumes::unmake(&Context::new(node, &HostEngine)?)
    }

    fn list_volumes(node: &Node) -> Result<Vec<ObservedVolume>, Error> {
        volumes::list(&Context::new(node, &HostEngine)?)
    }

    fn set_volumes(node: &Node, target: &Target) -> Result<(), Error> {
        volumes::set(&Context::new(node, &HostEngine)?, target)
    }

    fn prove_limits(node: &Node, _: &str, _: &[String]) -> Result<Limits, Error> {
        limits::prove(&Context::new(node, &HostEngine)?)
    }
}

impl Snapshots for Incus {
    fn take(node: &Node, target: &Target, id: &str) -> Result<SnapshotReport, Error> {
        snapshots::take(&Context::new(node, &HostEngine)?, target, id)
    }

    fn drop(node: &Node, _: &Tag, id: &str) -> Result<SnapshotReport, Error> {
        snapshots::drop(&Context::new(node, &HostEngine)?, id)
    }

    fn restore(node: &Node, spec: &Spec, id: &str) -> Result<Report, Error> {
        snapshots::restore(&Context::new(node, &HostEngine)?, spec, id)
    }

    fn list_snapshots(node: &Node) -> Result<Vec<ObservedSnapshot>, Error> {
        snapshots::list(&Context::new(node, &HostEngine)?)
    }
}

wharf_guest::export!(Incus: Driver + Identity + Survey + Moves + ContentMoves + Volumes + Snapshots);
