//! `wharf bucket`: backups of instances and volumes in object stores of the user.

use crate::ask_password::of_terminal;
use crate::connection::Connection;
use crate::create::{ACCESS_KEY, Recover, SECRET_KEY};
use crate::failure::Failure;
use crate::names;
use crate::output::Column::{Number, Text, Whole};
use crate::output::{note, or_none, table, time};
use crate::snapshot::{PlanTimes, print_plan};
use crate::wait::{Look, WaitLimit, Words, until};
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use std::env;
use wharf_client::types::{
    Backup, BackupPlanRequest, BackupRequest, BackupState, Bucket, BucketRequest,
};
use wharf_client::{Client, Reply, Secret};

/// The variable with the passphrase of backups.
const PASSPHRASE: &str = "WHARF_BUCKET_PASSPHRASE";

#[derive(Subcommand)]
pub enum BucketCommand {
    /// List your buckets
    #[command(visible_alias = "list")]
    Ls(Connection),
    Add(BucketAdd),
    /// Forget a bucket; the backups in it stay, and `add` with their passphrase finds them again
    Forget {
        /// Name or UUID of the bucket
        #[arg(add = names::buckets())]
        name: String,
        #[command(flatten)]
        connection: Connection,
    },
    Send(Send),
    /// List your backups, the newest first
    Contents {
        /// Only those in this bucket
        #[arg(long, value_name = "BUCKET", add = names::buckets())]
        bucket: Option<String>,
        /// Only those of this instance; of a deleted one, by its UUID
        #[arg(long, value_name = "INSTANCE", add = names::instances())]
        instance: Option<String>,
        /// Only those of this volume; of a deleted one, by its UUID
        #[arg(long, value_name = "VOLUME", add = names::volumes())]
        volume: Option<String>,
        #[command(flatten)]
        connection: Connection,
    },
    Verify(Verify),
    Recover(Box<Recover>),
    /// Make backups of an instance by the clock
    #[command(subcommand)]
    Plan(BackupPlanCommand),
    /// Delete a backup, or end one that runs
    Discard {
        /// UUID of the backup
        #[arg(add = names::backups())]
        backup: String,
        #[command(flatten)]
        connection: Connection,
    },
}

/// Add a bucket of an S3-compatible object store, with the backups that are in it
///
/// Its access key is in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and the passphrase of its backups in
/// WHARF_BUCKET_PASSPHRASE; what is not set is asked for. Without the passphrase, no other server can read the backups.
#[derive(Args)]
pub struct BucketAdd {
    /// Name, unique among your buckets
    name: String,
    /// URL of the object store, without a path
    #[arg(long, value_name = "URL")]
    endpoint: String,
    /// Name of the bucket in the object store
    #[arg(long)]
    bucket: String,
    /// Region; default: us-east-1
    #[arg(long)]
    region: Option<String>,
    /// Part before the first slash in the names of all objects; default: wharf
    #[arg(long)]
    prefix: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// Send a backup of an instance to a bucket, without its volumes, or a backup of a volume
#[derive(Args)]
pub struct Send {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// Name or UUID of the bucket
    #[arg(add = names::buckets())]
    bucket: String,
    /// The name is that of a volume
    #[arg(long)]
    volume: bool,
    #[command(flatten)]
    wait: BackupWait,
    #[command(flatten)]
    connection: Connection,
}

/// Read a backup back from its bucket, and compare it with what was sent
#[derive(Args)]
pub struct Verify {
    /// UUID of the backup
    #[arg(add = names::backups())]
    backup: String,
    #[command(flatten)]
    wait: BackupWait,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Subcommand)]
pub enum BackupPlanCommand {
    /// Show the plan of an instance or a volume
    Show(PlanOf),
    Set(BackupPlanSet),
    /// End the plan of an instance or a volume; its backups stay
    #[command(visible_alias = "delete")]
    Rm(PlanOf),
}

/// The instance or the volume of a plan.
#[derive(Args)]
pub struct PlanOf {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// The name is that of a volume
    #[arg(long)]
    volume: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Set the plan of an instance or a volume, in place of an earlier one
///
/// The plan deletes its oldest backups, and only after a newer one is done. Those that you send yourself stay.
#[derive(Args)]
pub struct BackupPlanSet {
    #[command(flatten)]
    of: PlanOf,
    /// Name or UUID of the bucket
    #[arg(add = names::buckets())]
    bucket: String,
    #[command(flatten)]
    times: PlanTimes,
}

#[derive(Args)]
struct BackupWait {
    /// Wait for the end
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    limit: WaitLimit,
}

impl BucketCommand {
    pub async fn run(self) -> Result<()> {
        match self {
            Self::Ls(connection) => {
                let buckets = connection.client()?.list_buckets().send().await?;
                connection.print(&buckets, |buckets| print_buckets(&buckets))
            }
            Self::Add(add) => add.run().await,
            Self::Forget { name, connection } => {
                connection.client()?.forget_bucket(&name).send().await?;
                note(&format!("{name} is forgotten; its backups stay in it."));
                Ok(())
            }
            Self::Send(send) => send.run().await,
            Self::Contents {
                bucket,
                instance,
                volume,
                connection,
            } => {
                let client = connection.client()?;
                let of = [instance, volume, bucket];
                let [instance, volume, bucket] = of.each_ref().map(Option::as_deref);
                let listed = client.list_backups(instance, volume, bucket);
                connection.print(&listed.send().await?, |backups| print(&backups))
            }
            Self::Verify(verify) => verify.run().await,
            Self::Recover(recover) => recover.run().await,
            Self::Plan(plan) => plan.run().await,
            Self::Discard { backup, connection } => {
                connection.client()?.delete_backup(&backup).send().await?;
                note(&format!("{backup} is deleted."));
                Ok(())
            }
        }
    }
}

impl BackupPlanCommand {
    async fn run(self) -> Result<()> {
        match self {
            Self::Show(of) => {
                let client = of.connection.client()?;
                let plan = if of.volume {
                    client.get_volume_backup_plan(&of.name).send().await?
                } else {
                    client.get_backup_plan(&of.name).send().await?
                };
                of.connection.print(&plan, |_| print_plan(&plan))
            }
            Self::Set(BackupPlanSet { of, bucket, times }) => {
                let mut body = BackupPlanRequest::new(bucket, times.every, times.keep);
                body.keep_days = times.keep_days;
                let client = of.connection.client()?;
                let plan = if of.volume {
                    client
                        .set_volume_backup_plan(&of.name, &body)
                        .send()
                        .await?
                } else {
                    client.set_backup_plan(&of.name, &body).send().await?
                };
                of.connection.print(&plan, |_| print_plan(&plan))
            }
            Self::Rm(of) => {
                let (client, name) = (of.connection.client()?, of.name);
                if of.volume {
                    client.remove_volume_backup_plan(&name).send().await?;
                } else {
                    client.remove_backup_plan(&name).send().await?;
                }
                note(&format!("The plan of {name} has ended; its backups stay."));
                Ok(())
            }
        }
    }
}

impl BucketAdd {
    async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let key = secret(ACCESS_KEY, "Id of the access key: ")?;
        let secret_key = secret(SECRET_KEY, "Secret of the access key: ")?;
        let passphrase = secret(PASSPHRASE, "Passphrase of the backups: ")?;
        if variable(PASSPHRASE).is_none()
            && of_terminal("The passphrase once more: ")? != passphrase.expose()
        {
            return Err(Failure::Usage("the passphrases differ".to_owned()).into());
        }
        let (endpoint, name) = (self.endpoint, self.name);
        let mut body = BucketRequest::new(key, self.bucket, endpoint, name, passphrase, secret_key);
        body.region = self.region;
        body.prefix = self.prefix;
        let added = client.add_bucket(&body).send().await?;
        self.connection
            .print(&added, |added| print_buckets(&[added]))
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// A secret from a variable, or else from the terminal.
fn secret(name: &str, prompt: &str) -> Result<Secret> {
    let text = variable(name).map_or_else(|| of_terminal(prompt), Ok)?;
    Ok(text.into())
}

impl Send {
    async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let body = BackupRequest::new(self.bucket);
        let begun = if self.volume {
            client
                .create_volume_backup(&self.name, &body)
                .send()
                .await?
        } else {
            client.create_backup(&self.name, &body).send().await?
        };
        ended(&client, begun, &self.wait, &self.connection).await
    }
}

impl Verify {
    async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let begun = client.verify_backup(&self.backup).send().await?;
        ended(&client, begun, &self.wait, &self.connection).await
    }
}

/// Prints a backup, after the end of its work if told to wait.
async fn ended(
    client: &Client,
    begun: Reply<Backup>,
    waiting: &BackupWait,
    connection: &Connection,
) -> Result<()> {
    if !waiting.wait {
        return connection.print(&begun, |backup| print(&[backup]));
    }
    let Backup { id, verifying, .. } = begun.body()?;
    let mut words = Words::new(&format!("Waiting for the end of {}", *id));
    let done = until(&id, "done", waiting.limit, async || {
        let reply = client.get_backup(&id).send().await?;
        let now = reply.body()?;
        let why = now.reason.as_ref();
        match now.state {
            BackupState::Failed => bail!("{} has failed: {}", *id, or_none(why)),
            // The reason of a verification that goes on is that of its last attempt.
            BackupState::Done if !now.verifying => match why.filter(|_| verifying) {
                Some(why) => bail!("{} is not verified: {why}", *id),
                None => return Ok(Look::Done(reply)),
            },
            _ => {}
        }
        if let Some(shown) = now.progress.as_ref().or(why) {
            words.show(shown);
        }
        Ok(Look::Not(now.state.to_string()))
    });
    let done = done.await?;
    connection.print(&done, |backup| print(&[backup]))
}

fn print_buckets(buckets: &[Bucket]) -> Result<()> {
    let columns = [
        Text("NAME"),
        Text("BUCKET"),
        Text("PREFIX"),
        Text("ENDPOINT"),
        Number("BACKUPS"),
    ];
    let row = |bucket: &Bucket| {
        [
            bucket.name.clone(),
            bucket.bucket.clone(),
            bucket.prefix.clone(),
            bucket.endpoint.clone(),
            bucket.n_backups.to_string(),
        ]
    };
    table(columns, buckets.iter().map(row))
}

fn print(backups: &[Backup]) -> Result<()> {
    let columns = [
        Text("ID"),
        Whole("STATE"),
        Text("OF"),
        Text("BUCKET"),
        Number("SIZE"),
        Text("TAKEN"),
        Text("BY"),
        Text("VERIFIED"),
        Text("REASON"),
    ];
    let row = |backup: &Backup| {
        let volume = backup.volume_name.as_ref();
        let volume = volume.map(|name| format!("volume {name}"));
        let mib = backup.object_bytes.map(|bytes| bytes.div_ceil(1 << 20));
        [
            backup.id.to_string(),
            backup.state.to_string(),
            or_none(volume.or_else(|| backup.instance_name.clone())),
            backup.bucket_name.clone(),
            or_none(mib.map(|mib| format!("{mib} MiB"))),
            time(Some(&backup.created_at)),
            if backup.planned { "plan" } else { "hand" }.to_owned(),
            time(backup.verified_at.as_ref()),
            or_none(backup.reason.as_ref().or(backup.progress.as_ref())),
        ]
    };
    table(columns, backups.iter().map(row))
}
