//! The traits of a driver.

use crate::types::{
    Error, Health, Limits, Node, Observed, ObservedSnapshot, ObservedVolume, Report,
    SnapshotReport, Spec, Surroundings, Tag, Target, Usage, Volume, VolumeReport,
};

/// A driver for one kind of engine.
///
/// Every function is idempotent and short. A guest lives for one call, so all input comes with the
/// call. `wit/v0.1/driver.wit` documents each function.
pub trait Driver {
    /// Returns the kind of engine, such as `docker`. Pure.
    fn engine_kind() -> String;

    /// Reads the engine's version and capabilities. Changes nothing.
    fn probe(node: &Node) -> Result<Health, Error>;

    /// Moves an instance towards existing and running as specified, as far as possible without
    /// waiting.
    fn ensure(node: &Node, spec: &Spec) -> Result<Report, Error>;

    /// Starts an existing instance with its current size.
    fn start(node: &Node, target: &Target) -> Result<Report, Error>;

    /// Gives an instance that does not run a larger disk with the content of the old one. The host
    /// calls it only after `start` answers `growing`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] in the default implementation.
    fn grow(node: &Node, _: &Spec) -> Result<Report, Error> {
        Err(Error::Unsupported(format!(
            "disks of node {} keep their size",
            node.name
        )))
    }

    /// Stops gracefully within `grace_ms`, then by force. Success if stopped already, or absent.
    fn stop(node: &Node, target: &Target, grace_ms: u32) -> Result<Report, Error>;

    /// Applies `target.size`, all or nothing.
    fn resize(node: &Node, target: &Target) -> Result<Report, Error>;

    /// Removes the instance with its storage. Success if absent already.
    fn delete(node: &Node, target: &Target) -> Result<Report, Error>;

    /// Reports the phase of one instance. Changes nothing.
    fn inspect(node: &Node, tag: &Tag) -> Result<Report, Error>;

    /// Lists all of the installation's instances on the node. Changes nothing.
    fn list(node: &Node) -> Result<Vec<Observed>, Error>;

    /// Reads the usage of a running instance; that of its disk only with `disk`. Changes nothing.
    fn stats(node: &Node, tag: &Tag, disk: bool) -> Result<Usage, Error>;
}

/// The identity of an engine's store, for drivers that can keep a mark in it.
pub trait Identity: Driver {
    /// Reads the mark of the store; none if it has none. Changes nothing.
    fn identify(node: &Node) -> Result<Option<String>, Error>;

    /// Marks the store. A store that has a mark keeps it.
    fn mark(node: &Node, mark: &str) -> Result<(), Error>;
}

/// The surroundings of a node's instances, for drivers that can see them.
pub trait Survey: Driver {
    /// Reads the networks of the engine, and which of the images it lacks. Changes nothing.
    fn look(node: &Node, images: &[String]) -> Result<Surroundings, Error>;
}

/// Moves between the nodes of a cluster, for drivers that support them.
pub trait Moves: Driver {
    /// Brings an instance that does not run to this node, with the addresses, ports and GPUs of the
    /// specification.
    fn move_here(node: &Node, spec: &Spec) -> Result<Report, Error>;
}

/// Moves of content between nodes without a common cluster, and backups, for drivers that read and write all content of a
/// container.
pub trait ContentMoves: Driver {
    /// Offers the content of a container that does not run.
    fn offer(node: &Node, target: &Target) -> Result<Report, Error>;

    /// Makes a container that does not run and has the offered content.
    fn fetch(node: &Node, spec: &Spec) -> Result<Report, Error>;

    /// Sends the content of a snapshot to the host.
    fn send(node: &Node, instance: &Tag, snapshot: &str) -> Result<SnapshotReport, Error>;
}

/// Public ports of virtual machines, for drivers that support them.
pub trait Ports: Driver {
    /// Opens exactly `target.wan_ports` on the public address. Idempotent.
    fn set_ports(node: &Node, target: &Target) -> Result<(), Error>;
}

/// Volumes: disks of a fixed size that outlive instances, for drivers that make them.
pub trait Volumes: Driver {
    /// Moves a volume towards `ready`, as far as possible without waiting.
    fn make(node: &Node, volume: &Volume, images: &[String]) -> Result<VolumeReport, Error>;

    /// Removes a volume with its content. Success if absent already.
    fn unmake(node: &Node, id: &str) -> Result<VolumeReport, Error>;

    /// Lists all of the installation's volumes on the node. Changes nothing.
    fn list_volumes(node: &Node) -> Result<Vec<ObservedVolume>, Error>;

    /// Sends the content of a volume to the host.
    ///
    /// # Errors
    /// [`Error::Unsupported`] in the default implementation.
    fn send_volume(node: &Node, _: &str) -> Result<VolumeReport, Error> {
        Err(Error::Unsupported(format!(
            "backups of the volumes of node {}",
            node.name
        )))
    }

    /// Gives an existing instance exactly `target.volumes`. Idempotent.
    ///
    /// # Errors
    /// [`Error::Unsupported`] in the default implementation.
    fn set_volumes(node: &Node, _: &Target) -> Result<(), Error> {
        Err(Error::Unsupported(format!(
            "existing instances of node {} keep their volumes",
            node.name
        )))
    }

    /// Proves that the engine holds sizes, by writing beyond one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] in the default implementation.
    fn prove_limits(node: &Node, _: &str, _: &[String]) -> Result<Limits, Error> {
        Err(Error::Unsupported(format!(
            "proofs of the limits of node {}",
            node.name
        )))
    }
}

/// Snapshots: copies of instances' disks, for drivers that take them.
pub trait Snapshots: Driver {
    /// Takes a snapshot of an instance, as far as possible without waiting.
    fn take(node: &Node, target: &Target, snapshot: &str) -> Result<SnapshotReport, Error>;

    /// Removes a snapshot. Success if absent already.
    fn drop(node: &Node, instance: &Tag, snapshot: &str) -> Result<SnapshotReport, Error>;

    /// Gives an instance that does not run the disk of a snapshot of it.
    fn restore(node: &Node, spec: &Spec, snapshot: &str) -> Result<Report, Error>;

    /// Lists all of the installation's snapshots on the node. Changes nothing.
    fn list_snapshots(node: &Node) -> Result<Vec<ObservedSnapshot>, Error>;
}
