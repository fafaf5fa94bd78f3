//! `wharf user`.

use super::ConfigFile;
use crate::operation::user::{EndAccess, InviteUser, LetMove, LimitUser, ListUsers, SwitchUser};
use anyhow::Result;
use clap::{Args, Subcommand};
use wharf_control::{EndedAccess, UserQuota};
use wharf_domain::email::canonical;
use wharf_domain::quota::{Amounts, UserLimit};

/// List users, invite, disable and enable them, and set their limits
#[derive(Args)]
pub struct User {
    #[command(subcommand)]
    command: UserCommand,
}

#[derive(Subcommand)]
enum UserCommand {
    /// List users: e-mail address, usage and limit of each quantity, the ways to sign in, and
    /// `disabled` if it applies
    List {
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Print a link by which a user gets a passkey or a password; it is valid once, for 72 hours
    Invite {
        /// The user's e-mail address; a user who does not exist is created
        email: String,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Refuse a user's keys and sessions; instances go on
    Disable {
        /// The user's e-mail address
        email: String,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Accept a disabled user's keys again
    Enable {
        /// The user's e-mail address
        email: String,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Revoke the keys of a user or of all, end the sessions, and remove passwords, passkeys, identities
    /// and invitations; instances go on
    EndAccess {
        /// The user's e-mail address
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        email: Option<String>,
        /// Do it for all users
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Note that a user permits the drain of a node to stop, move and start running instances
    AllowMoves {
        /// The user's e-mail address
        email: String,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Note that a user's running instances stay on a node that is drained, which is the default
    RefuseMoves {
        /// The user's e-mail address
        email: String,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Set limits of a user and print them: a number, `unlimited`, or `default` for the configuration's
    Limit {
        /// The user's e-mail address
        email: String,
        #[command(flatten)]
        limits: Limits,
        #[command(flatten)]
        config: ConfigFile,
    },
}

#[derive(Args)]
struct Limits {
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
}

impl User {
    pub fn run(self) -> Result<()> {
        match self.command {
            UserCommand::List { config } => {
                for user in config.perform(ListUsers {})? {
                    println!("{}", line(&user));
                }
            }
            UserCommand::Invite { email, config } => {
                let invitation = config.perform(InviteUser { email })?;
                let until = invitation.expires_at.to_rfc3339();
                println!("{}", invitation.url.expose());
                eprintln!("valid once, until {until}; it is a password until then");
            }
            UserCommand::Disable { email, config } => {
                let disabled = true;
                config.perform(SwitchUser { email, disabled })?;
            }
            UserCommand::Enable { email, config } => {
                let disabled = false;
                config.perform(SwitchUser { email, disabled })?;
            }
            UserCommand::EndAccess {
                email,
                all: _,
                config,
            } => {
                for ended in config.perform(EndAccess { email })? {
                    println!("{}", ended_line(&ended));
                }
            }
            UserCommand::AllowMoves { email, config } => {
                let permitted = true;
                config.perform(LetMove { email, permitted })?;
            }
            UserCommand::RefuseMoves { email, config } => {
                let permitted = false;
                config.perform(LetMove { email, permitted })?;
            }
            UserCommand::Limit {
                email,
                limits,
                config,
            } => {
                let limits = Amounts {
                    n_instances: limits.instances,
                    n_vcpus: limits.vcpus,
                    mem_gib: limits.mem_gib,
                    disk_size_gib: limits.disk_gib,
                    n_gpus: limits.gpus,
                    n_ports: limits.ports,
                };
                println!("{}", line(&config.perform(LimitUser { email, limits })?));
            }
        }
        Ok(())
    }
}

/// A line about the access that ended.
pub(super) fn ended_line(ended: &EndedAccess) -> String {
    let counted = [
        ("keys", ended.keys),
        ("sessions", ended.sessions),
        ("passkeys", ended.passkeys),
        ("identities", ended.identities),
        ("password", ended.password.into()),
        ("invitation", ended.invitation.into()),
    ];
    let counted = counted.into_iter().filter(|(_, number)| *number > 0);
    let parts: Vec<_> = counted.map(|(what, n)| format!("{what} {n}")).collect();
    format!("{}\tended: {}", ended.email, parts.join(", "))
}

fn line(user: &UserQuota) -> String {
    let amounts = user.used.zip(user.limits, |used, limit| match limit {
        Some(limit) => format!("{used} of {limit}"),
        None => format!("{used} of unlimited"),
    });
    let fields = amounts
        .fields()
        .map(|(name, text)| format!("\t{name} {text}"));
    let ways = match user.ways.is_empty() {
        true => String::new(),
        false => format!("\tsign-in by {}", user.ways.join(", ")),
    };
    let disabled = if user.disabled { "\tdisabled" } else { "" };
    // An earlier version stored addresses as they were typed.
    let spelling = match canonical(&user.email) {
        Ok(canonical) if canonical == user.email => String::new(),
        Ok(canonical) => format!("\tanother spelling of {canonical}"),
        Err(_) => "\tno valid address".to_owned(),
    };
    format!(
        "{}{}{ways}{spelling}{disabled}",
        user.email,
        fields.concat()
    )
}
