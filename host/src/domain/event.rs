//! What happened to an instance, in order. The ledger is derived from it.

use super::capacity::Size;
use super::ids::InstanceId;
use super::shortage::Short;
use super::state::InstanceState;
use super::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One entry of the event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, by a clock that never runs backwards within one instance.
    pub at: Timestamp,
    /// To which instance.
    pub instance: InstanceId,
    /// What.
    pub what: What,
    /// The state from then on.
    pub state: InstanceState,
    /// The size from then on.
    pub size: Size,
}

/// Kinds of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// The user asked for it.
    Created,
    /// It became reachable.
    Ready,
    /// It could not be made; why, for the operator.
    Failed(String),
    /// The user stopped it.
    Stopped,
    /// The node was seen to have stopped it, and its compute was released.
    Released,
    /// It ended by itself; what the engine said.
    Died(String),
    /// The user restarted it.
    Restarted,
    /// A restart did not work out; why, for the operator.
    RestartFailed(String),
    /// The user changed its size.
    Resized,
    /// The node did not take a new size; the old one holds.
    ResizeRefused {
        /// The field the node objected to; none if it did not answer.
        field: Option<String>,
        /// Why.
        message: String,
    },
    /// The user renamed it.
    Renamed,
    /// The user opened or closed a port.
    PortsChanged,
    /// The user deleted it.
    Deleted,
    /// The node was seen without it; everything it held is free.
    Purged,
    /// The node has not enough for a restart; the instance stays stopped.
    RestartShort(Vec<Short>),
    /// The node has not enough for a new size; the old one holds.
    ResizeShort(Vec<Short>),
}
