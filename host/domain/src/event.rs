//! The event log of an instance, in order of time. The ledger is derived from it.

use super::capacity::Size;
use super::ids::InstanceId;
use super::shortage::Short;
use super::state::InstanceState;
use super::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One entry of the event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Time of the event. It never decreases within one instance.
    pub at: Timestamp,
    pub instance: InstanceId,
    pub what: What,
    /// State after the event.
    pub state: InstanceState,
    /// Size after the event.
    pub size: Size,
}

/// The kind of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// The user requested the instance.
    Created,
    /// The instance became reachable.
    Ready,
    /// Provisioning failed, with the reason for the operator.
    Failed(String),
    /// The user stopped the instance.
    Stopped,
    /// The node was observed to have stopped the instance, and its compute claim was released.
    Released,
    /// The instance ended by itself, with the engine's reason.
    Died(String),
    /// The user restarted the instance.
    Restarted,
    /// A restart failed, with the reason for the operator.
    RestartFailed(String),
    /// The user resized the instance.
    Resized,
    /// The node refused a new size; the old size stays.
    ResizeRefused {
        /// Field that the node refused; `None` if it did not respond.
        field: Option<String>,
        message: String,
    },
    /// The user renamed the instance.
    Renamed,
    /// The user opened or closed a port.
    PortsChanged,
    /// The user deleted the instance.
    Deleted,
    /// The node no longer has the instance, and its claim was released.
    Purged,
    /// The node lacks resources for a restart; the instance stays stopped.
    RestartShort(Vec<Short>),
    /// The node lacks resources for a new size; the old size stays.
    ResizeShort(Vec<Short>),
    /// The operator removed the instance from the books; its node was not asked.
    Forgotten,
    /// The operator corrected the bill by this amount in nano-USD.
    BillCorrected { nano_usd: i128, reason: String },
}
