//! `wharf audit`.

use super::ConfigFile;
use super::bill::timestamp;
use crate::operation::audit::{AuditLine, ListAudit, VerifyAudit};
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use wharf_domain::time::Timestamp;

/// Show or verify the audit log
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Audit {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    config: ConfigFile,
}

/// The records of a list.
#[derive(Args)]
struct Filter {
    /// Only records about this user's instances and keys
    #[arg(long, value_name = "EMAIL")]
    user: Option<String>,
    /// Only records from this ISO 8601 date or time on
    #[arg(long, value_parser = timestamp)]
    since: Option<Timestamp>,
}

#[derive(Subcommand)]
enum AuditCommand {
    /// Show records: number, time, actor, peer, request id, user, operation, instance or key, result
    ///
    /// `wharf audit` alone does so too.
    List {
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Check that no record was changed or removed, and print the end of the log: NUMBER:HASH
    Verify {
        /// An end that an earlier check printed; the log must still contain it
        #[arg(long, value_name = "NUMBER:HASH")]
        end: Option<String>,
        #[command(flatten)]
        config: ConfigFile,
    },
}

impl Audit {
    pub fn run(self) -> Result<()> {
        match self.command {
            Some(AuditCommand::List { filter, config }) => list(&filter, &config),
            None => list(&self.filter, &self.config),
            Some(AuditCommand::Verify { end, config }) => {
                let verified = config.perform(VerifyAudit { end })?;
                for line in &verified.wrong {
                    println!("{line}");
                }
                println!("{}", verified.end);
                match verified.wrong.len() {
                    0 => Ok(()),
                    n => bail!("the audit log has {n} inconsistencies"),
                }
            }
        }
    }
}

fn list(filter: &Filter, config: &ConfigFile) -> Result<()> {
    let user = filter.user.as_deref();
    let since = filter.since.unwrap_or_default();
    let (session, mut after) = (config.session()?, 0);
    loop {
        let lines = session.perform(ListAudit {
            after,
            user: filter.user.clone(),
        })?;
        let Some(last) = lines.last() else {
            return Ok(());
        };
        after = last.entry.id;
        for line in &lines {
            let of_user = user.is_none_or(|user| line.owner.as_deref() == Some(user));
            if of_user && Timestamp::parse(&line.entry.time) >= Some(since) {
                print(line);
            }
        }
    }
}

fn print(AuditLine { owner, entry }: &AuditLine) {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let changed = entry.instance.as_ref().or(entry.subject.as_ref()).cloned();
    println!(
        "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
        entry.id,
        entry.time,
        entry.actor,
        or_none(&entry.peer),
        or_none(&entry.request_id),
        or_none(owner),
        entry.operation,
        or_none(&changed),
        entry.result
    );
}
