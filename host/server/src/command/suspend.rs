//! `wharf suspend` and `wharf resume`.

use crate::operation::Operation;
use anyhow::Result;
use clap::Args;
use serde::{Deserialize, Serialize};
use wharf_cli::output::line;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::InstanceId;
use wharf_operations::Operator;
use wharf_operations::suspend::{Suspended, SuspensionLine};

/// Stop an instance or all of a user, and keep the owner from starting them; or list suspensions
///
/// The data stays, storage is billed, and the owner may delete them. Without arguments: list the
/// suspensions.
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    /// The UUID or the name of an instance
    #[arg(conflicts_with = "user", requires = "reason")]
    instance: Option<String>,
    /// The e-mail address of a user: all instances stop, and the user can create none
    #[arg(long, value_name = "EMAIL", requires = "reason")]
    user: Option<String>,
    /// Words that the owner reads
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The instances that are suspended now, or all suspensions.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub enum SuspendReply {
    Suspended(Vec<InstanceId>),
    All(Vec<SuspensionLine>),
}

impl Operation for Suspend {
    const PATH: &'static str = "/suspend";
    type Reply = SuspendReply;

    async fn run(&self, operator: Operator<'_>) -> Result<SuspendReply, Error> {
        let of = named(self.instance.as_ref(), self.user.as_ref());
        let (Some(of), Some(reason)) = (of, &self.reason) else {
            return Ok(SuspendReply::All(operator.suspensions()?));
        };
        Ok(SuspendReply::Suspended(operator.suspend(of, reason).await?))
    }

    fn print(&self, reply: &SuspendReply) -> Result<()> {
        match reply {
            SuspendReply::Suspended(ids) => ids
                .iter()
                .try_for_each(|id| line(&format!("{id} is suspended"))),
            SuspendReply::All(all) => all.iter().try_for_each(|suspension| {
                let (Suspended::Instance(of) | Suspended::User(of)) = &suspension.of;
                line(&format!(
                    "{of}\t{}\t{}",
                    suspension.since, suspension.reason
                ))
            }),
        }
    }
}

/// End the suspension of an instance or a user
///
/// Instances stay stopped until their owner starts them.
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// The UUID or the name of an instance
    #[arg(conflicts_with = "user", required_unless_present = "user")]
    instance: Option<String>,
    /// The e-mail address of a user
    #[arg(long, value_name = "EMAIL")]
    user: Option<String>,
}

impl Operation for Resume {
    const PATH: &'static str = "/resume";
    type Reply = Vec<InstanceId>;

    async fn run(&self, operator: Operator<'_>) -> Result<Vec<InstanceId>, Error> {
        let of = named(self.instance.as_ref(), self.user.as_ref());
        let of = of.ok_or_else(|| FieldErrors::one("instance", "is required"))?;
        operator.resume(of).await
    }

    fn print(&self, ids: &Vec<InstanceId>) -> Result<()> {
        ids.iter()
            .try_for_each(|id| line(&format!("{id} may be started again")))
    }
}

fn named(instance: Option<&String>, user: Option<&String>) -> Option<Suspended> {
    let instance = instance.cloned().map(Suspended::Instance);
    instance.or_else(|| user.cloned().map(Suspended::User))
}
