//! `wharf share`.

use crate::connection::Connection;
use crate::names;
use crate::output::Column::Text;
use crate::output::{joined, line, note, table, time};
use anyhow::Result;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use clap::{ArgGroup, Args, Subcommand};
use std::time::SystemTime;
use wharf_client::types::{
    Share as Shared, ShareAccess, ShareOrId, ShareRequest, ShareRequestAccess,
};

#[derive(Subcommand)]
pub enum ShareCommand {
    /// List the shares of an instance
    Ls {
        /// Name or UUID of the instance
        #[arg(add = names::instances())]
        name: String,
        #[command(flatten)]
        connection: Connection,
    },
    Add(ShareAdd),
    /// Withdraw a share; open connections end
    Rm {
        /// Name or UUID of the instance
        #[arg(add = names::instances())]
        name: String,
        /// The shared port. Default: the page of the flavor
        #[arg(long)]
        port: Option<u16>,
        #[command(flatten)]
        connection: Connection,
    },
}

/// Share the page of an instance, or a port inside it
///
/// A visitor of the page of a flavor, such as a notebook, may run programs as you. Without visitors, a port
/// opens for you alone.
#[derive(Args)]
#[command(group = ArgGroup::new("visitors"))]
pub struct ShareAdd {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// A port inside the instance. Default: the page of the flavor
    #[arg(long)]
    port: Option<u16>,
    /// E-mail addresses of the visitors, separated by commas
    #[arg(long, value_name = "EMAIL", value_delimiter = ',', group = "visitors")]
    with: Vec<String>,
    /// Let all users of the service in
    #[arg(long, group = "visitors")]
    signed_in: bool,
    /// Let everyone in, without an account; for ports only
    #[arg(long, group = "visitors")]
    public: bool,
    /// The end of the share: a time from now such as 12h or 7d, or an ISO 8601 time
    #[arg(long, value_name = "TIME", value_parser = end)]
    expires: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

impl ShareCommand {
    pub async fn run(self) -> Result<()> {
        match self {
            Self::Ls { name, connection } => {
                let shares = connection.client()?.list_shares(&name).send().await?;
                connection.print(&shares, |shares| print(&shares))
            }
            Self::Add(add) => add.run().await,
            Self::Rm {
                name,
                port,
                connection,
            } => {
                let id = id(port);
                connection.client()?.delete_share(&name, &id).send().await?;
                note(&format!(
                    "The share of {} of {name} is withdrawn.",
                    what(port)
                ));
                Ok(())
            }
        }
    }
}

impl ShareAdd {
    async fn run(self) -> Result<()> {
        let mut body = ShareRequest::new(if self.public {
            ShareRequestAccess::Public
        } else if self.signed_in {
            ShareRequestAccess::SignedIn
        } else if self.with.is_empty() {
            ShareRequestAccess::Owner
        } else {
            ShareRequestAccess::Users
        });
        body.port = self.port;
        body.users = self.with;
        body.expires_at = self.expires;
        let client = self.connection.client()?;
        let shared = client.create_share(&self.name, &body).send().await?;
        self.connection.print(&shared, |shared| match shared {
            ShareOrId::Share(shared) => print(&[shared]),
            // The key has no scope `read`, and sees no more.
            ShareOrId::ChangedShare(_) => {
                let what = what(self.port);
                line(&format!("The share of {what} of {} is made.", self.name))
            }
        })
    }
}

/// The id of the share of a port, or of the page of the flavor.
fn id(port: Option<u16>) -> String {
    port.map_or_else(|| "page".to_owned(), |port| port.to_string())
}

/// The end that a text names: a number of minutes, hours or days from now, or a time that the server reads.
fn end(text: &str) -> Result<String, String> {
    let rule = "must be a time from now such as 12h or 7d, or an ISO 8601 time";
    let Some(unit) = text.chars().last().filter(|unit| "mhd".contains(*unit)) else {
        return Ok(text.to_owned());
    };
    let number: i64 = (text.trim_end_matches(unit).parse()).map_err(|_| rule.to_owned())?;
    let span = match unit {
        'm' => TimeDelta::try_minutes(number),
        'h' => TimeDelta::try_hours(number),
        _ => TimeDelta::try_days(number),
    };
    let now = DateTime::<Utc>::from(SystemTime::now());
    let end = span.and_then(|span| now.checked_add_signed(span));
    let end = end.ok_or_else(|| rule.to_owned())?;
    Ok(end.to_rfc3339_opts(SecondsFormat::Millis, true))
}

fn what(port: Option<u16>) -> String {
    port.map_or_else(|| "the page".to_owned(), |port| format!("port {port}"))
}

fn print(shares: &[Shared]) -> Result<()> {
    let columns = ["PORT", "VISITORS", "EXPIRES", "URL"].map(Text);
    let row = |share: &Shared| {
        let visitors = match share.access {
            ShareAccess::Owner => "you alone".to_owned(),
            ShareAccess::Users => joined(&share.users),
            ShareAccess::SignedIn => "all users".to_owned(),
            ShareAccess::Public => "everyone".to_owned(),
            ref other => other.to_string(),
        };
        [
            share.id.clone(),
            visitors,
            time(share.expires_at.as_ref()),
            share.url.clone().unwrap_or_default(),
        ]
    };
    table(columns, shares.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::end;

    #[test]
    fn an_end_is_a_time_from_now_or_one_for_the_server() {
        assert_eq!(end("2027-01-01").as_deref(), Ok("2027-01-01"));
        let [minute, hour, day] = ["1m", "1h", "7d"].map(|text| end(text).unwrap());
        assert!(minute < hour && hour < day, "{minute} {hour} {day}");
        assert!(day.ends_with('Z'), "{day}");
        for wrong in ["d", "xh", "1.5h", "99999999999999999h"] {
            assert!(end(wrong).is_err(), "{wrong}");
        }
    }
}
