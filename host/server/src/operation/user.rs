//! Users: their limits, invitations, and state.

use super::Operation;
use serde::{Deserialize, Serialize};
use wharf_control::{Invitation, Operator, UserQuota};
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
