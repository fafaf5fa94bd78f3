//! `wharf snapshot`.

use crate::connection::{Connection, InstanceArgs};
use crate::create::{Clone, retried};
use crate::failure::Failure;
use crate::lifecycle::is_in;
use crate::names;
use crate::output::Column::{Number, Text, Whole};
use crate::output::{
    fields, hourly_usd, json, line, list as print_list, note, or_none, table, time,
};
use crate::remove::{Confirmation, RemovedKind};
use crate::show::{cost_rows, instance_as, put_first};
use crate::wait::{EndWait, Look, NewestEvent, WaitLimit, Words, until};
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use wharf_client::types::{
    RestoreRequest, Snapshot, SnapshotEstimate, SnapshotOrState, SnapshotPlanRequest,
    SnapshotRequest, SnapshotState,
};
use wharf_client::{Client, Reply};

#[derive(Subcommand)]
pub enum SnapshotCommand {
    /// List your snapshots, each as INSTANCE/NAME
    #[command(visible_alias = "list")]
    Ls {
        /// Name or UUID of an instance; default: all of yours
        #[arg(add = names::instances())]
        instance: Option<String>,
        #[command(flatten)]
        connection: Connection,
    },
    Create(SnapshotCreate),
    /// Show a snapshot with its cost
    Show {
        /// The snapshot, as INSTANCE/NAME or UUID
        #[arg(add = names::snapshots())]
        snapshot: String,
        #[command(flatten)]
        connection: Connection,
    },
    Restore(Restore),
    Clone(Box<Clone>),
    /// Delete snapshots; clones stay
    #[command(visible_alias = "delete")]
    Rm {
        /// The snapshots, each as INSTANCE/NAME or UUID
        #[arg(required = true, add = names::snapshots())]
        snapshots: Vec<String>,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Take snapshots of an instance by the clock
    #[command(subcommand)]
    Plan(SnapshotPlanCommand),
}

/// Take a snapshot of the disk of an instance, without its volumes
///
/// The time that it takes is said before, and whether the instance stands still meanwhile.
#[derive(Args)]
pub struct SnapshotCreate {
    /// Name of the snapshot, unique among those of the instance; default: the time
    #[arg(long = "name", value_name = "SNAPSHOT")]
    snapshot: Option<String>,
    #[command(flatten)]
    wait: EndWait,
    #[command(flatten)]
    of: InstanceArgs,
}

/// Replace the disk of a stopped instance by that of a snapshot of it
///
/// All changes since the snapshot are lost, also that of a password. Volumes stay as they are.
#[derive(Args)]
pub struct Restore {
    /// The snapshot, as INSTANCE/NAME or UUID
    #[arg(add = names::snapshots())]
    snapshot: String,
    /// Take a snapshot of the present disk before; its time and cost are told first
    #[arg(long)]
    snapshot_first: bool,
    #[command(flatten)]
    wait: EndWait,
    #[command(flatten)]
    confirmation: Confirmation,
}

#[derive(Subcommand)]
pub enum SnapshotPlanCommand {
    /// Show the plan of an instance
    Show(InstanceArgs),
    Set(SnapshotPlanSet),
    /// End the plan of an instance; its snapshots stay
    #[command(visible_alias = "delete")]
    Rm(InstanceArgs),
}

/// Set the plan of an instance, in place of an earlier one
///
/// The plan deletes its oldest snapshots, and only after a newer one is ready. Those that you take yourself stay.
#[derive(Args)]
pub struct SnapshotPlanSet {
    #[command(flatten)]
    times: PlanTimes,
    #[command(flatten)]
    of: InstanceArgs,
}

/// The times of a plan, and what it keeps.
#[derive(Args)]
pub struct PlanTimes {
    /// Hours between two runs of the plan
    #[arg(long, value_name = "HOURS")]
    pub every: u16,
    /// Number of those of the plan that are kept
    #[arg(long, value_name = "NUMBER")]
    pub keep: u64,
    /// Days after which one of the plan is deleted, unless it is the newest
    #[arg(long, value_name = "DAYS")]
    pub keep_days: Option<u16>,
}

impl SnapshotCommand {
    pub async fn run(self) -> Result<()> {
        match self {
            Self::Ls {
                instance,
                connection,
            } => {
                let client = connection.client()?;
                let listed = client.list_snapshots(instance.as_deref(), None, None);
                let listed = listed.send().await?;
                connection.print(&listed, |snapshots| print(&snapshots))
            }
            Self::Create(create) => create.run().await,
            Self::Show {
                snapshot,
                connection,
            } => show(&snapshot, &connection).await,
            Self::Restore(restore) => restore.run().await,
            Self::Clone(clone) => clone.run().await,
            Self::Rm {
                snapshots,
                confirmation,
            } => confirmation.remove(RemovedKind::Snapshot, &snapshots).await,
            Self::Plan(plan) => plan.run().await,
        }
    }
}

impl SnapshotCreate {
    async fn run(self) -> Result<()> {
        let InstanceArgs { name, connection } = &self.of;
        let client = connection.client()?;
        let mut body = SnapshotRequest::new();
        body.name = self.snapshot;
        let estimate = client.estimate_snapshot(name).fetch().await?;
        note(&estimated(name, &estimate));
        let created = retried(|| client.create_snapshot(name, &body)).await?;
        match created.body()? {
            SnapshotOrState::Snapshot(snapshot) if !self.wait.no_wait => {
                let ready = wait_until_ready(&client, &snapshot, self.wait.limit).await?;
                connection.print(&ready, |ready| print(&[ready]))
            }
            _ => connection.print(&created, |created| match created {
                SnapshotOrState::Snapshot(snapshot) => print(&[snapshot]),
                // The key has no scope `read`, and sees no more.
                SnapshotOrState::ChangedSnapshot(changed) => {
                    line(&is_in("Snapshot", &changed.id, &changed.state))
                }
            }),
        }
    }
}

/// The words about a snapshot before it is taken.
fn estimated(name: &str, estimate: &SnapshotEstimate) -> String {
    let stands = if estimate.frozen {
        "stands still meanwhile"
    } else {
        "is not interrupted"
    };
    told(estimate, &format!("{name} {stands}"))
}

/// The time and the cost of a snapshot, with its effect.
fn told(estimate: &SnapshotEstimate, effect: &str) -> String {
    format!(
        "The snapshot takes about {} s, and {effect}. Its {} GiB cost about {} USD per hour.",
        estimate.seconds.max(1),
        estimate.size_gib,
        hourly_usd(estimate.hourly_usd)
    )
}

async fn wait_until_ready(
    client: &Client,
    snapshot: &Snapshot,
    limit: WaitLimit,
) -> Result<Reply<Snapshot>> {
    let name = named(snapshot);
    let mut words = Words::new(&format!("Waiting until {name} is ready"));
    until(&name, "ready", limit, async || {
        let reply = client.get_snapshot(&snapshot.id).send().await?;
        let now = reply.body()?;
        match now.state {
            SnapshotState::Ready => return Ok(Look::Done(reply)),
            SnapshotState::Error => bail!("{name} is in error: {}", or_none(now.reason)),
            _ => {}
        }
        if let Some(progress) = &now.progress {
            words.show(progress);
        }
        Ok(Look::Not(now.state.to_string()))
    })
    .await
}

impl Restore {
    async fn run(self) -> Result<()> {
        let connection = &self.confirmation.connection;
        let client = connection.client()?;
        let snapshot = find(&client, &self.snapshot).await?;
        let instance = &snapshot.instance_name;
        let lost = if self.snapshot_first {
            let estimate = client.estimate_snapshot(instance).fetch().await?;
            note(&told(
                &estimate,
                &format!("{instance} starts only after it"),
            ));
            "Its present disk is kept as another snapshot.".to_owned()
        } else {
            let since = time(Some(&snapshot.created_at));
            format!("All changes since {since} are lost.")
        };
        let question = format!("Restore {instance} from {}? {lost}", snapshot.name);
        self.confirmation.ask(&question, instance, "restored")?;
        let mut body = RestoreRequest::new();
        body.snapshot_first = Some(self.snapshot_first);
        let restored = client.restore_snapshot(&snapshot.id, &body).send().await?;
        if self.wait.no_wait {
            return instance_as(connection, &restored);
        }
        wait_until_restored(&client, &snapshot, self.wait.limit).await?;
        note(&format!(
            "{instance} is restored; `wharf restart {instance}` starts it."
        ));
        instance_as(
            connection,
            &client.get_instance(&snapshot.instance).send().await?,
        )
    }
}

async fn wait_until_restored(client: &Client, of: &Snapshot, limit: WaitLimit) -> Result<()> {
    let name = &of.instance_name;
    let mut words = Words::new(&format!("Waiting until {name} is restored"));
    let of_restores = |kind: &str| ["restoring", "restored", "restore-failed"].contains(&kind);
    let mut newest = NewestEvent::new(of_restores);
    until(name, "restored", limit, async || {
        let event = newest.look(client, &of.instance).await?;
        let message = or_none(event.and_then(|event| event.message.as_ref()));
        match event.map(|event| event.type_.as_str()) {
            Some("restored") => return Ok(Look::Done(())),
            Some("restore-failed") => bail!("{name} is not restored: {message}"),
            Some(_) => words.show(&message),
            None => {}
        }
        Ok(Look::Not("being restored".to_owned()))
    })
    .await
}

impl SnapshotPlanCommand {
    async fn run(self) -> Result<()> {
        match self {
            Self::Show(InstanceArgs { name, connection }) => {
                let plan = connection.client()?.get_snapshot_plan(&name).send().await?;
                connection.print(&plan, |_| print_plan(&plan))
            }
            Self::Set(SnapshotPlanSet {
                times,
                of: InstanceArgs { name, connection },
            }) => {
                let mut body = SnapshotPlanRequest::new(times.every, times.keep);
                body.keep_days = times.keep_days;
                let client = connection.client()?;
                let plan = client.set_snapshot_plan(&name, &body).send().await?;
                connection.print(&plan, |_| print_plan(&plan))
            }
            Self::Rm(InstanceArgs { name, connection }) => {
                let client = connection.client()?;
                client.remove_snapshot_plan(&name).send().await?;
                note(&format!(
                    "The plan of {name} has ended; its snapshots stay."
                ));
                Ok(())
            }
        }
    }
}

pub fn print_plan<T>(plan: &Reply<T>) -> Result<()> {
    print_list(&fields(plan).collect::<Vec<_>>())
}

/// The fields that are shown first.
const FIRST: [&str; 4] = ["name", "state", "instance_name", "size_gib"];

async fn show(given: &str, connection: &Connection) -> Result<()> {
    let client = connection.client()?;
    let id = id_of(&client, given).await?;
    let reply = client.get_snapshot(&id).send().await?;
    if connection.is_json() {
        return json(reply.value());
    }
    let usage = client.get_usage(None, None).fetch().await?;
    let cost = usage.snapshots.iter().find(|cost| *cost.id == id);
    let mut rows: Vec<_> = fields(&reply).collect();
    put_first(&mut rows, &FIRST);
    rows.extend(cost_rows(
        cost.map(|cost| (cost.hourly_usd, cost.total_usd)),
    ));
    print_list(&rows)
}

fn print(snapshots: &[Snapshot]) -> Result<()> {
    let columns = [
        Text("NAME"),
        Whole("STATE"),
        Number("SIZE"),
        Text("TAKEN"),
        Text("BY"),
        Text("REASON"),
    ];
    let row = |snapshot: &Snapshot| {
        [
            named(snapshot),
            snapshot.state.to_string(),
            or_none(snapshot.size_gib.map(|size| format!("{size} GiB"))),
            time(Some(&snapshot.created_at)),
            if snapshot.planned { "plan" } else { "hand" }.to_owned(),
            or_none(snapshot.reason.as_ref().or(snapshot.progress.as_ref())),
        ]
    };
    table(columns, snapshots.iter().map(row))
}

/// The name by which the user names a snapshot.
pub fn named(snapshot: &Snapshot) -> String {
    format!("{}/{}", snapshot.instance_name, snapshot.name)
}

/// The snapshot that the user names, as `INSTANCE/NAME` or UUID.
pub async fn find(client: &Client, given: &str) -> Result<Snapshot> {
    let Some((instance, name)) = given.split_once('/') else {
        return Ok(client.get_snapshot(given).fetch().await?);
    };
    let listed = client.list_snapshots(Some(instance), None, None);
    let listed = listed.fetch().await?.0;
    let found = listed.into_iter().find(|snapshot| snapshot.name == name);
    let missing = || Failure::NotFound(format!("{instance} has no snapshot {name}"));
    Ok(found.ok_or_else(missing)?)
}

/// Its UUID.
pub async fn id_of(client: &Client, given: &str) -> Result<String> {
    if given.contains('/') {
        return Ok(find(client, given).await?.id.0);
    }
    Ok(given.to_owned())
}
