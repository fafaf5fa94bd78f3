//! `wharf audit`.

use super::operator::{OperatorCommand, Perform, operator_commands, timestamp};
use crate::http::AdminRouter;
use crate::operation::Operation;
use anyhow::{Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use wharf_cli::output::{line, or_none};
use wharf_db::AuditHead;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::time::Timestamp;
use wharf_ground::audit::{AuditEntry, page};
use wharf_ground::users::user_of_email;
use wharf_operations::Operator;

/// Show or verify the audit log
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Audit {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    #[command(flatten)]
    list: Perform<ListAudit>,
}

operator_commands! {
    pub enum AuditCommand {
        /// Show records: number, time, actor, peer, request id, user, operation, instance or key, result
        ///
        /// `wharf audit` alone does so too.
        List(Perform<ListAudit>),
        Verify(Perform<VerifyAudit>),
    }
}

impl OperatorCommand for Audit {
    fn run(self) -> Result<()> {
        match self.command {
            Some(command) => command.run(),
            None => self.list.run(),
        }
    }

    fn serve(admin: AdminRouter) -> AdminRouter {
        AuditCommand::serve(admin)
    }
}

/// The most records that one reply is made of.
const PAGE: usize = 10_000;

#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListAudit {
    /// Only records about this user's instances and keys
    #[arg(long, value_name = "EMAIL")]
    user: Option<String>,
    /// Only records from this ISO 8601 date or time on
    #[arg(long, value_parser = timestamp)]
    since: Option<Timestamp>,
    /// The number of the record after which the list begins.
    #[arg(skip)]
    after: u64,
}

/// A part of the log.
#[derive(Serialize, Deserialize)]
pub struct AuditPage {
    records: Vec<AuditLine>,
    /// The number after which the next part begins.
    next: Option<u64>,
}

/// A record and the e-mail address of the user whose data changed.
#[derive(Serialize, Deserialize)]
pub struct AuditLine {
    owner: Option<String>,
    #[serde(flatten)]
    entry: AuditEntry,
}

impl Operation for ListAudit {
    const PATH: &'static str = "/audit/list";
    type Reply = AuditPage;

    async fn run(&self, operator: Operator<'_>) -> Result<AuditPage, Error> {
        if let Some(user) = &self.user
            && operator
                .db
                .read(|rows| user_of_email(rows, user))?
                .is_none()
        {
            let message = format!("no user has the address {user:?}");
            return Err(FieldErrors::one("user", message).into());
        }
        let page = page(operator.db, self.after, PAGE)?;
        let next = page.last().map(|(_, entry)| entry.id);
        let records = page.into_iter().filter(|(owner, entry)| {
            let of_user = self.user.is_none() || *owner == self.user;
            of_user && Timestamp::parse(&entry.time) >= self.since
        });
        let records = records.map(|(owner, entry)| AuditLine { owner, entry });
        Ok(AuditPage {
            records: records.collect(),
            next,
        })
    }

    fn print(&self, page: &AuditPage) -> Result<()> {
        page.records
            .iter()
            .try_for_each(|AuditLine { owner, entry }| {
                let changed = entry.instance.as_ref().or(entry.subject.as_ref());
                line(&format!(
                    "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                    entry.id,
                    entry.time,
                    entry.actor,
                    or_none(entry.peer.as_ref()),
                    or_none(entry.request_id.as_ref()),
                    or_none(owner.as_ref()),
                    entry.operation,
                    or_none(changed),
                    entry.result
                ))
            })
    }

    /// Prints one record in each line, since the log is read in parts.
    fn print_json(&self, page: &AuditPage) -> Result<()> {
        let mut records = page.records.iter();
        records.try_for_each(|record| line(&serde_json::to_string(record)?))
    }

    fn next(&self, page: &AuditPage) -> Option<Self> {
        Some(Self {
            user: self.user.clone(),
            since: self.since,
            after: page.next?,
        })
    }
}

/// Check that no record was changed or removed, and print the end of the log: NUMBER:HASH
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyAudit {
    /// An end that an earlier check printed; the log must still contain it
    #[arg(long, value_name = "NUMBER:HASH")]
    end: Option<String>,
}

/// The result of a check.
#[derive(Serialize, Deserialize)]
pub struct VerifiedAudit {
    /// Number and hash of the last record.
    end: String,
    /// One line for each contradiction.
    wrong: Vec<String>,
}

impl Operation for VerifyAudit {
    const PATH: &'static str = "/audit/verify";
    type Reply = VerifiedAudit;

    async fn run(&self, operator: Operator<'_>) -> Result<VerifiedAudit, Error> {
        let known = self.end.as_deref().map(|end| {
            let message = "must be NUMBER:HASH, as `wharf audit verify` prints it";
            parse(end).ok_or_else(|| FieldErrors::one("end", message))
        });
        let (head, wrong) = operator.db.verify_audit(known.transpose()?)?;
        let hash: String = head.hash.iter().map(|b| format!("{b:02x}")).collect();
        Ok(VerifiedAudit {
            end: format!("{}:{hash}", head.number),
            wrong,
        })
    }

    fn print(&self, verified: &VerifiedAudit) -> Result<()> {
        let lines = verified.wrong.iter().chain([&verified.end]);
        lines.into_iter().try_for_each(|text| line(text))
    }

    fn verdict(&self, verified: &VerifiedAudit) -> Result<()> {
        match verified.wrong.len() {
            0 => Ok(()),
            n => bail!("the audit log has {n} inconsistencies"),
        }
    }
}

fn parse(end: &str) -> Option<AuditHead> {
    let (number, hex) = end.split_once(':')?;
    let mut hash = [0; 32];
    if hex.len() != 2 * hash.len() {
        return None;
    }
    for (n, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * n..2 * n + 2)?, 16).ok()?;
    }
    Some(AuditHead {
        number: number.parse().ok()?,
        hash,
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ends() {
        let hash = "0f".repeat(32);
        let head = parse(&format!("7:{hash}")).unwrap();
        assert_eq!((head.number, head.hash), (7, [15; 32]));
        for wrong in [
            "7",
            &format!("x:{hash}"),
            &format!("7:{}", "zz".repeat(32)),
            "7:0f",
        ] {
            assert_eq!(parse(wrong), None);
        }
    }
}
