//! Users: their limits, invitations, and state.

use super::Operation;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wharf_control::{EndedAccess, Invitation, Operator, UserQuota};
use wharf_domain::error::Error;
use wharf_domain::quota::{Amounts, UserLimit};

/// Lists all users.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListUsers {}

impl Operation for ListUsers {
    const PATH: &'static str = "/users/list";
    type Reply = Vec<UserQuota>;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.users()
    }
}

/// Changes limits of a user. `None` keeps a limit.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitUser {
    pub email: String,
    pub limits: Amounts<Option<UserLimit>>,
}

impl Operation for LimitUser {
    const PATH: &'static str = "/users/limit";
    type Reply = UserQuota;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.limit_user(&self.email, self.limits).await
    }
}

/// Invites a user, who is created if no user has the address.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InviteUser {
    pub email: String,
}

impl Operation for InviteUser {
    const PATH: &'static str = "/users/invite";
    type Reply = Invitation;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.invite(&self.email).await
    }
}

/// Notes whether a user's running instances may be moved.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LetMove {
    pub email: String,
    pub permitted: bool,
}

impl Operation for LetMove {
    const PATH: &'static str = "/users/moves";
    type Reply = ();

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.let_move(&self.email, self.permitted).await
    }
}

/// Disables or enables a user.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchUser {
    pub email: String,
    pub disabled: bool,
}

impl Operation for SwitchUser {
    const PATH: &'static str = "/users/switch";
    type Reply = ();

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.set_disabled(&self.email, self.disabled).await
    }
}

/// Ends all access of a user, or of all users if none is named.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndAccess {
    pub email: Option<String>,
}

impl Operation for EndAccess {
    const PATH: &'static str = "/users/end-access";
    /// Each user is a write.
    const TIMEOUT: Duration = Duration::from_mins(10);
    type Reply = Vec<EndedAccess>;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.end_access(self.email.as_deref()).await
    }
}
