//! What must be true. The model remembers what users asked for and what the rows said at the last look. Each
//! difference since then needs a reason: a request, or what happened in the world.

mod backup;
mod change;
mod damage;
mod kept;
mod money;
mod rights;
mod settled;
mod snapshot;
mod volume;
mod webhook;

use crate::receivers::Received;
use crate::world::{Moment, Truth, World};
use money::Meter;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use wharf_accounts::Accounts;
use wharf_db::{CLAIMS, MOVES, MoveRow, Read as _, Rows as _};
use wharf_domain::capacity::{Claim, Size};
use wharf_domain::error::Error;
use wharf_domain::ids::{BackupId, InstanceId, NodeId, SnapshotId, UserId, VolumeId};
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::volume::OfVolume;
use wharf_domain::webhook::WebhookId;
use wharf_ground::caller::Caller;
use wharf_instances::App;
use wharf_instances::nodes::NODES;

/// A contradiction, in words for a person.
pub type Wrong = String;

/// A request of a user or of the operator. It explains changes while it is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    Create {
        owner: UserId,
        size: Size,
    },
    Stop(InstanceId),
    Start(InstanceId),
    Delete(InstanceId),
    Change {
        id: InstanceId,
        size: Option<Size>,
        name: Option<String>,
    },
    Ports(InstanceId),
    Recreate(InstanceId),
    /// The page of an instance, or a port of it, is shared or not any more.
    Share {
        id: InstanceId,
        port: Option<u16>,
        shared: bool,
    },
    CreateVolume {
        owner: UserId,
        size_gib: u32,
    },
    DeleteVolume(VolumeId),
    RenameVolume {
        id: VolumeId,
        name: String,
    },
    /// Another user may attach the volume, to read it.
    ShareVolume {
        id: VolumeId,
        reader: UserId,
    },
    TakeSnapshot(InstanceId),
    DeleteSnapshot(SnapshotId),
    /// The disk becomes that of a snapshot. One of the present disk may be taken before.
    Restore {
        id: InstanceId,
        first: bool,
    },
    /// A plan that keeps a number of snapshots, or none any more.
    Plan(InstanceId, Option<usize>),
    /// A volume is attached to the instance, or detached from it.
    Mounts(InstanceId),
    AddBucket(UserId),
    ForgetBucket(UserId),
    BackUp(InstanceId),
    DeleteBackup(BackupId),
    /// A plan that keeps a number of backups, or none any more.
    PlanBackups(InstanceId, Option<usize>),
    Subscribe {
        owner: UserId,
        url: String,
    },
    Unsubscribe(WebhookId),
    /// The operator's: a suspension and its end.
    Suspend(InstanceId),
    SuspendUser(UserId),
    Resume(InstanceId),
    Forget(InstanceId),
    /// Instances leave the node, as far as their owners permit it.
    Drain(NodeId),
    Lose(NodeId),
    /// The lost instances of the node are made again.
    Rescue(NodeId),
    /// What is absent from the node has ended.
    Accept(NodeId),
}

impl Ask {
    /// The instance of a request about one.
    fn instance(&self) -> Option<InstanceId> {
        match self {
            Self::Stop(id)
            | Self::Start(id)
            | Self::Delete(id)
            | Self::Change { id, .. }
            | Self::Ports(id)
            | Self::Mounts(id)
            | Self::Restore { id, .. }
            | Self::Recreate(id)
            | Self::Share { id, .. }
            | Self::Suspend(id)
            | Self::Resume(id)
            | Self::Forget(id) => Some(*id),
            Self::Create { .. }
            | Self::CreateVolume { .. }
            | Self::DeleteVolume(_)
            | Self::RenameVolume { .. }
            | Self::ShareVolume { .. }
            | Self::TakeSnapshot(_)
            | Self::DeleteSnapshot(_)
            | Self::Plan(..)
            | Self::AddBucket(_)
            | Self::ForgetBucket(_)
            | Self::BackUp(_)
            | Self::DeleteBackup(_)
            | Self::PlanBackups(..)
            | Self::Subscribe { .. }
            | Self::Unsubscribe(_)
            | Self::Drain(_)
            | Self::Lose(_)
            | Self::Rescue(_)
            | Self::Accept(_)
            | Self::SuspendUser(_) => None,
        }
    }

    /// The name of the operation in the audit log, if each success has one record.
    fn operation(&self) -> Option<&'static str> {
        match self {
            Self::Create { .. } => Some("instance.create"),
            Self::Stop(_) => Some("instance.stop"),
            Self::Delete(_) => Some("instance.delete"),
            Self::Recreate(_) => Some("instance.recreate"),
            _ => None,
        }
    }
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was acknowledged, with the instance that it made.
    Done(Option<InstanceId>),
    /// It was refused, and has no effect.
    Refused,
    /// The process ended before the answer.
    Unknown,
}

/// A request that the model was told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskId(u64);

#[derive(Debug, Clone)]
struct Open {
    ask: Ask,
    /// The end of the time in which it may still take effect; `None` while it is under way.
    until: Option<Moment>,
}

/// An instance as the last look found it.
#[derive(Debug, Clone)]
struct Known {
    row: Instance,
    claim: Option<Claim>,
    moving: Option<MoveRow>,
    /// The moment since which it is known to be up.
    up_since: Moment,
}

impl Known {
    fn is_up(&self) -> bool {
        let row = &self.row;
        row.intent == Intent::Run && row.provisioned && row.progress == Progress::Settled
    }
}

/// What the model looks at.
pub struct Look<'a> {
    pub app: &'a App,
    pub world: &'a World,
    pub users: &'a [Caller],
    pub accounts: &'a Accounts,
    pub webhooks: &'a wharf_hooks::Webhooks,
    pub received: &'a Mutex<Received>,
}

/// The model.
#[derive(Debug, Clone, Default)]
pub struct Model {
    instances: BTreeMap<InstanceId, Known>,
    meters: BTreeMap<InstanceId, Meter>,
    open: BTreeMap<AskId, Open>,
    asks: u64,
    /// The last request about each instance.
    last_ask: BTreeMap<InstanceId, AskId>,
    /// Who owns a label for good.
    labels: BTreeMap<String, UserId>,
    /// What is shared, or may be after a request whose end is not known.
    shares: BTreeSet<(InstanceId, Option<u16>)>,
    /// Instances, volumes and snapshots that may have changed since the moment of the file that was brought back.
    aged: BTreeSet<InstanceId>,
    aged_kept: BTreeSet<InstanceId>,
    /// The nodes whose engine the operator has accepted, and on which Wharf has not acted yet.
    accepted: BTreeSet<NodeId>,
    volumes: kept::All<OfVolume>,
    snapshots: kept::All<OfSnapshot>,
    copies: snapshot::Copies,
    backups: backup::Backups,
    mounts: volume::Mounts,
    webhooks: webhook::Webhooks,
    /// The users who could ever read a volume of another user.
    readers: BTreeSet<(VolumeId, UserId)>,
    holdings: BTreeMap<UserId, (rights::Holding, rights::Limits)>,
    /// Acknowledged requests by owner and operation, and those whose end is not known.
    made: BTreeSet<InstanceId>,
    acknowledged: BTreeMap<(UserId, &'static str), (u64, u64)>,
}

/// The time in which a request may still take effect after the process that had it ended.
const AFTERMATH: Moment = Moment::from_secs(120);

fn accepted(look: &Look<'_>) -> Result<BTreeSet<NodeId>, Wrong> {
    let read = look.app.db().read(|rows| {
        let mut accepted = BTreeSet::new();
        for row in rows.all(&NODES)? {
            let (node, (), row) = row?;
            accepted.extend(row.accepted.then_some(NodeId(node)));
        }
        Ok(accepted)
    });
    read.map_err(|error| failed(&error))
}

fn failed(error: &Error) -> Wrong {
    format!("a look failed: {}", error.chain())
}

fn check(holds: bool, wrong: impl FnOnce() -> Wrong) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(wrong()) }
}

impl Model {
    /// Notes a request that is about to be made.
    pub fn asked(&mut self, ask: Ask) -> AskId {
        self.asks += 1;
        let id = AskId(self.asks);
        if let Some(instance) = ask.instance() {
            self.last_ask.insert(instance, id);
        }
        if let Ask::Rescue(_) = &ask {
            for known in self.instances.values() {
                let key = (known.row.owner, "instance.recreate");
                self.acknowledged.entry(key).or_default().1 += 1;
            }
        }
        self.open.insert(id, Open { ask, until: None });
        id
    }

    /// The process has ended. What it was asked for may take effect or not.
    pub fn crashed(&mut self, now: Moment) {
        let open: Vec<_> = self
            .open
            .iter()
            .filter(|(_, open)| open.until.is_none())
            .map(|(id, _)| *id)
            .collect();
        open.into_iter()
            .for_each(|id| drop(self.answered(id, Outcome::Unknown, now)));
    }

    /// Wharf did not run for a while, in which no request took effect.
    pub fn was_off(&mut self, span: Moment) {
        let ends = self
            .open
            .values_mut()
            .filter_map(|open| open.until.as_mut());
        ends.for_each(|until| *until += span);
    }

    /// The file of the moment of this model was brought back. Nodes may have changed what it knows since.
    pub fn is_older(&mut self, truth: &Truth<'_>) {
        self.aged.extend(self.instances.keys());
        let volumes = self.volumes.iter();
        let gone = volumes.filter(|(_, known)| !known.is_there(truth));
        self.aged_kept
            .extend(gone.map(|(id, _)| InstanceId::from(*id)));
        let snapshots = self.snapshots.iter();
        let gone = snapshots.filter(|(_, known)| !known.is_there(truth));
        self.aged_kept
            .extend(gone.map(|(id, _)| InstanceId::from(*id)));
        self.backups.are_older();
    }

    /// Notes the answer to a request. A look that follows the answer must come before.
    pub fn answered(&mut self, id: AskId, outcome: Outcome, now: Moment) -> Result<(), Wrong> {
        let Some(open) = self.open.remove(&id) else {
            return Ok(());
        };
        let ask = open.ask.clone();
        let owner = match &ask {
            Ask::Create { owner, .. } => Some(*owner),
            // The row of an instance that is on no node goes with its deletion.
            other => other
                .instance()
                .and_then(|id| self.meters.get(&id))
                .map(|meter| meter.owner),
        };
        if let Some(key) = owner.zip(ask.operation()) {
            let (done, unknown) = self.acknowledged.entry(key).or_default();
            // A repeated request with one key gets the first answer.
            let is_new = match outcome {
                Outcome::Done(Some(made)) => self.made.insert(made),
                // The instance of a repeated creation may be gone.
                Outcome::Done(None) => !matches!(ask, Ask::Create { .. }),
                Outcome::Refused | Outcome::Unknown => false,
            };
            *done += u64::from(is_new);
            *unknown += u64::from(outcome == Outcome::Unknown);
        }
        if let Ask::Share { id, port, shared } = ask {
            match outcome {
                Outcome::Done(_) if !shared => drop(self.shares.remove(&(id, port))),
                Outcome::Done(_) | Outcome::Unknown if shared => {
                    self.shares.insert((id, port));
                }
                _ => {}
            }
        }
        if let Ask::ShareVolume { id, reader } = ask
            && outcome != Outcome::Refused
        {
            self.readers.insert((id, reader));
        }
        if let (Ask::Unsubscribe(id), Outcome::Done(_)) = (&ask, outcome) {
            self.ended_webhook(*id)?;
        }
        match outcome {
            Outcome::Unknown => {
                let until = Some(now + AFTERMATH);
                self.open.insert(id, Open { until, ..open });
            }
            Outcome::Done(made) => return self.holds(id, &ask, made),
            Outcome::Refused => {}
        }
        Ok(())
    }

    /// Whether an acknowledged request is durable. Another request may have changed the instance since.
    fn holds(&self, number: AskId, ask: &Ask, made: Option<InstanceId>) -> Result<(), Wrong> {
        if let Some(id) = made {
            check(self.instances.contains_key(&id), || {
                format!("{id} was acknowledged and is missing")
            })?;
        }
        if let Ask::DeleteVolume(id) = ask {
            let known = self.volumes.get(id);
            check(known.is_none_or(|known| known.row.deleted), || {
                format!("volume {id}: its deletion was acknowledged and does not hold")
            })?;
        }
        if let Ask::DeleteSnapshot(id) = ask {
            let known = self.snapshots.get(id);
            check(known.is_none_or(|known| known.row.deleted), || {
                format!("snapshot {id}: its deletion was acknowledged and does not hold")
            })?;
        }
        if let Ask::DeleteBackup(id) = ask {
            check(self.backups.is_deleted(*id), || {
                format!("backup {id}: its deletion was acknowledged and does not hold")
            })?;
        }
        let known = ask.instance().map(|id| (id, self.instances.get(&id)));
        // A later request may have changed the instance since, and the operator all instances of a node.
        let is_last = |id: &InstanceId| self.last_ask.get(id).is_none_or(|last| *last <= number);
        let Some((id, known)) =
            known.filter(|(id, _)| is_last(id) && !self.is_asked(|o| o.instance() == Some(*id)))
        else {
            return Ok(());
        };
        let holds = match (ask, known) {
            (Ask::Delete(_), known) => known.is_none_or(|k| k.row.intent == Intent::Delete),
            (Ask::Stop(_), Some(known)) => known.row.intent == Intent::Stop,
            (
                Ask::Change {
                    size: Some(size), ..
                },
                Some(known),
            ) => known.row.size == *size,
            (
                Ask::Change {
                    name: Some(name), ..
                },
                Some(known),
            ) => known.row.name.as_str() == name,
            _ => true,
        };
        check(holds, || {
            format!("{id}: {ask:?} was acknowledged and does not hold")
        })
    }

    /// Whether a request is under way, or may still take effect.
    fn is_asked(&self, fits: impl Fn(&Ask) -> bool) -> bool {
        self.open.values().any(|open| fits(&open.ask))
    }

    /// Looks at everything. To be called after each event, and before time passes.
    pub fn look(&mut self, look: &Look<'_>) -> Result<(), Wrong> {
        let now = look.world.now();
        self.open
            .retain(|_, open| open.until.is_none_or(|until| now < until));
        if let Some(finding) = look.app.db().check().first() {
            return Err(format!("fsck: {}", finding.text));
        }
        let found = self.found(look)?;
        let ids: BTreeSet<_> = self.instances.keys().chain(found.keys()).copied().collect();
        let mut next = BTreeMap::new();
        for id in ids {
            let (before, after) = (self.instances.get(&id), found.get(&id));
            self.explain(id, before, after, look)
                .map_err(|why| format!("{id}: {why}"))?;
            if let Some(after) = after {
                let mut after = after.clone();
                let was_up = before.is_some_and(Known::is_up);
                after.up_since = before.map_or(now, |known| known.up_since);
                if after.is_up() && !was_up {
                    after.up_since = now;
                }
                next.insert(id, after);
            }
        }
        self.instances = next;
        self.look_at_volumes(look)?;
        self.look_at_backups(look)?;
        self.look_at_snapshots(look)?;
        self.look_at_webhooks(look)?;
        self.accepted = accepted(look)?;
        self.check_money(look)?;
        self.check_rights(look)
    }

    fn found(&self, look: &Look<'_>) -> Result<BTreeMap<InstanceId, Known>, Wrong> {
        let read = look.app.db().read(|rows| {
            let mut found = BTreeMap::new();
            rows.each_instance(|row| {
                let known = Known {
                    row,
                    claim: None,
                    moving: None,
                    up_since: Moment::ZERO,
                };
                found.insert(known.row.id, known);
            })?;
            for row in rows.all(&CLAIMS)? {
                let (_, id, claim) = row?;
                found
                    .entry(id)
                    .and_modify(|known| known.claim = Some(claim));
            }
            for row in rows.under(&MOVES, &())? {
                let (id, moving) = row?;
                found
                    .entry(id)
                    .and_modify(|known| known.moving = Some(moving));
            }
            Ok(found)
        });
        read.map_err(|error| failed(&error))
    }
}
