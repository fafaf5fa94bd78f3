//! Suspension of instances and users.

use super::Operation;
use serde::{Deserialize, Serialize};
use wharf_control::{Operator, Suspended, SuspensionLine};
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;

/// Suspends an instance, or all instances of a user.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    pub of: Suspended,
    /// Words for the owner.
    pub reason: String,
}

impl Operation for Suspend {
    const PATH: &'static str = "/suspend";
    /// The instances.
    type Reply = Vec<InstanceId>;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.suspend(self.of, &self.reason).await
    }
}

/// Ends a suspension.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    pub of: Suspended,
}

impl Operation for Resume {
    const PATH: &'static str = "/resume";
    /// The instances.
    type Reply = Vec<InstanceId>;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.resume(self.of).await
    }
}

/// Lists the suspensions.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListSuspensions {}

impl Operation for ListSuspensions {
    const PATH: &'static str = "/suspensions";
    type Reply = Vec<SuspensionLine>;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.suspensions()
    }
}
