//! What a driver answers.

use crate::types::{Error, Health, Node, Observed, Report, Spec, Tag, Target, Usage};

/// A driver for one kind of engine.
///
/// Every function is idempotent and short, and is told everything it needs: a guest lives for one
/// call. The promises of each function stand in `wit/v0.1/driver.wit`.
pub trait Driver {
    /// The kind of engine spoken to, such as `docker`. Pure.
    fn engine_kind() -> String;

    /// Asks the engine what it is and can do. Changes nothing.
    fn probe(node: &Node) -> Result<Health, Error>;

    /// Moves an instance towards existing and running as specified, as far as it gets without
    /// waiting.
    fn ensure(node: &Node, spec: &Spec) -> Result<Report, Error>;

    /// Starts an instance that exists, applying its size.
    fn start(node: &Node, target: &Target) -> Result<Report, Error>;

    /// Gives an instance that does not run a larger disk with the content of the old one. Only called
    /// where `start` answers `growing`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] unless a driver has it.
    fn grow(node: &Node, _: &Spec) -> Result<Report, Error> {
        Err(Error::Unsupported(format!(
            "disks of node {} keep their size",
            node.name
        )))
    }

    /// Stops gracefully within `grace_ms`, then hard. Stopped or absent already: success.
    fn stop(node: &Node, target: &Target, grace_ms: u32) -> Result<Report, Error>;

    /// Applies `target.size`, all or nothing.
    fn resize(node: &Node, target: &Target) -> Result<Report, Error>;

    /// Removes the instance with its storage. Absent already: success.
    fn delete(node: &Node, target: &Target) -> Result<Report, Error>;

    /// Where one instance is. Changes nothing.
    fn inspect(node: &Node, tag: &Tag) -> Result<Report, Error>;

    /// All of the installation's instances on the node. Changes nothing.
    fn list(node: &Node) -> Result<Vec<Observed>, Error>;

    /// Live usage of a running instance; that of its disk only if asked. Changes nothing.
    fn stats(node: &Node, tag: &Tag, disk: bool) -> Result<Usage, Error>;
}

/// Public ports of virtual machines, for a driver that has them.
pub trait Ports: Driver {
    /// Makes exactly `target.wan_ports` open on the public address. Idempotent.
    fn set_ports(node: &Node, target: &Target) -> Result<(), Error>;
}
