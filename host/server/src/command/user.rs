//! `wharf user`.

use super::operator::{Perform, operator_commands};
use crate::operation::Operation;
use anyhow::Result;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wharf_accounts::end_access::EndedAccess;
use wharf_accounts::invite::Invitation;
use wharf_cli::output::{line, note};
use wharf_domain::email::canonical;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::quota::{Amounts, UserLimit};
use wharf_operations::Operator;
use wharf_operations::users::UserQuota;

operator_commands! {
    pub enum User {
        List(Perform<ListUsers>),
        Invite(Perform<InviteUser>),
        /// Refuse a user's keys and sessions; instances go on
        Disable(Perform<SwitchUser<true>>),
        /// Accept a disabled user's keys again
        Enable(Perform<SwitchUser<false>>),
        EndAccess(Perform<EndAccess>),
        /// Note that a user permits the drain of a node to stop, move and start running instances
        AllowMoves(Perform<LetMove<true>>),
        /// Note that a user's running instances stay on a node that is drained, which is the default
        RefuseMoves(Perform<LetMove<false>>),
        Limit(Perform<LimitUser>),
    }
}

/// List users: e-mail address, usage and limit of each quantity, the methods to sign in, and `disabled` if it
/// applies
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListUsers {}

impl Operation for ListUsers {
    const PATH: &'static str = "/users/list";
    type Reply = Vec<UserQuota>;

    async fn run(&self, operator: Operator<'_>) -> Result<Vec<UserQuota>, Error> {
        operator.users()
    }

    fn print(&self, users: &Vec<UserQuota>) -> Result<()> {
        users.iter().try_for_each(|user| line(&line_of(user)))
    }
}

/// Print a link by which a user gets a passkey or a password; it is valid once, for 72 hours
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InviteUser {
    /// The user's e-mail address; a user who does not exist is created
    email: String,
}

impl Operation for InviteUser {
    const PATH: &'static str = "/users/invite";
    type Reply = Invitation;

    async fn run(&self, operator: Operator<'_>) -> Result<Invitation, Error> {
        operator.accounts.invite(&self.email).await
    }

    fn print(&self, invitation: &Invitation) -> Result<()> {
        let until = invitation.expires_at.to_rfc3339();
        line(invitation.url.expose())?;
        note(&format!(
            "valid once, until {until}; it is a password until then"
        ));
        Ok(())
    }
}

/// Disables or enables a user.
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchUser<const DISABLED: bool> {
    /// The user's e-mail address
    email: String,
}

impl<const DISABLED: bool> Operation for SwitchUser<DISABLED> {
    const PATH: &'static str = if DISABLED {
        "/users/disable"
    } else {
        "/users/enable"
    };
    type Reply = ();

    async fn run(&self, operator: Operator<'_>) -> Result<(), Error> {
        operator.accounts.set_disabled(&self.email, DISABLED).await
    }
}

/// Revoke the keys of a user or of all, end the sessions, and remove passwords, passkeys, identities and
/// invitations; instances go on
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndAccess {
    /// The user's e-mail address
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    email: Option<String>,
    /// Do it for all users
    #[arg(long)]
    pub all: bool,
}

impl Operation for EndAccess {
    const PATH: &'static str = "/users/end-access";
    /// Each user is a write.
    const TIMEOUT: Duration = Duration::from_mins(10);
    type Reply = Vec<EndedAccess>;

    async fn run(&self, operator: Operator<'_>) -> Result<Vec<EndedAccess>, Error> {
        if self.email.is_some() == self.all {
            return Err(FieldErrors::one("email", "name a user, or all").into());
        }
        operator.accounts.end_access(self.email.as_deref()).await
    }

    fn print(&self, users: &Vec<EndedAccess>) -> Result<()> {
        users.iter().try_for_each(|user| line(&ended(user)))
    }
}

impl EndAccess {
    /// Ends the access of all users.
    pub const ALL: Self = Self {
        email: None,
        all: true,
    };
}

/// Notes whether a user's running instances may be moved.
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LetMove<const PERMITTED: bool> {
    /// The user's e-mail address
    email: String,
}

impl<const PERMITTED: bool> Operation for LetMove<PERMITTED> {
    const PATH: &'static str = if PERMITTED {
        "/users/allow-moves"
    } else {
        "/users/refuse-moves"
    };
    type Reply = ();

    async fn run(&self, operator: Operator<'_>) -> Result<(), Error> {
        operator.let_move(&self.email, PERMITTED).await
    }
}

/// Set limits of a user and print them: a number, `unlimited`, or `default` for the configuration's
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitUser {
    /// The user's e-mail address
    email: String,
    /// Instances
    #[arg(long, value_name = "LIMIT")]
    instances: Option<UserLimit>,
    /// vCPUs of instances that are not stopped
    #[arg(long, value_name = "LIMIT")]
    vcpus: Option<UserLimit>,
    /// RAM in GiB of instances that are not stopped
    #[arg(long, value_name = "LIMIT")]
    mem_gib: Option<UserLimit>,
    /// Disk in GiB
    #[arg(long, value_name = "LIMIT")]
    disk_gib: Option<UserLimit>,
    /// GPUs of instances that are not stopped
    #[arg(long, value_name = "LIMIT")]
    gpus: Option<UserLimit>,
    /// SSH ports, ports of web pages, and open ports of VMs
    #[arg(long, value_name = "LIMIT")]
    ports: Option<UserLimit>,
    /// Volumes
    #[arg(long, value_name = "LIMIT")]
    volumes: Option<UserLimit>,
    /// Sizes of volumes in GiB
    #[arg(long, value_name = "LIMIT")]
    volume_gib: Option<UserLimit>,
    /// Snapshots
    #[arg(long, value_name = "LIMIT")]
    snapshots: Option<UserLimit>,
    /// Sizes of snapshots in GiB
    #[arg(long, value_name = "LIMIT")]
    snapshot_gib: Option<UserLimit>,
}

impl Operation for LimitUser {
    const PATH: &'static str = "/users/limit";
    type Reply = UserQuota;

    async fn run(&self, operator: Operator<'_>) -> Result<UserQuota, Error> {
        let limits = Amounts {
            n_instances: self.instances,
            n_vcpus: self.vcpus,
            mem_gib: self.mem_gib,
            disk_size_gib: self.disk_gib,
            n_gpus: self.gpus,
            n_ports: self.ports,
            n_volumes: self.volumes,
            volume_gib: self.volume_gib,
            n_snapshots: self.snapshots,
            snapshot_gib: self.snapshot_gib,
        };
        operator.limit_user(&self.email, limits).await
    }

    fn print(&self, user: &UserQuota) -> Result<()> {
        line(&line_of(user))
    }
}

/// A line about the access that ended.
fn ended(user: &EndedAccess) -> String {
    let counted = [
        ("keys", user.keys),
        ("sessions", user.sessions),
        ("passkeys", user.passkeys),
        ("identities", user.identities),
        ("password", user.password.into()),
        ("invitation", user.invitation.into()),
    ];
    let counted = counted.into_iter().filter(|(_, number)| *number > 0);
    let parts: Vec<_> = counted.map(|(what, n)| format!("{what} {n}")).collect();
    format!("{}\tended: {}", user.email, parts.join(", "))
}

fn line_of(user: &UserQuota) -> String {
    let amounts = user.used.zip(user.limits, |used, limit| match limit {
        Some(limit) => format!("{used} of {limit}"),
        None => format!("{used} of unlimited"),
    });
    let fields = amounts
        .fields()
        .map(|(name, text)| format!("\t{name} {text}"));
    let methods = if user.sign_in_methods.is_empty() {
        String::new()
    } else {
        format!("\tsign-in by {}", user.sign_in_methods.join(", "))
    };
    let disabled = if user.disabled { "\tdisabled" } else { "" };
    // An earlier version stored addresses as they were typed.
    let spelling = match canonical(&user.email) {
        Ok(canonical) if canonical == user.email => String::new(),
        Ok(canonical) => format!("\tanother spelling of {canonical}"),
        Err(_) => "\tno valid address".to_owned(),
    };
    format!(
        "{}{}{methods}{spelling}{disabled}",
        user.email,
        fields.concat()
    )
}
