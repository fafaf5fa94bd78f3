//! Acts of users on the snapshots of their instances.

use super::instance::{SIZES, Target, is_stopped, made_by, runs, target};
use crate::act::Args;
use crate::acts;
use crate::model::Ask;
use crate::sim::{Sim, selector};
use std::time::Duration;
use tokio::time::sleep;
use wharf_db::{Rows as _, SNAPSHOTS};
use wharf_domain::instance::{Instance, ResourceType};
use wharf_domain::kept::KeptStatus;
use wharf_domain::name::Name;
use wharf_domain::request::CreateRequest;
use wharf_domain::secret::InstanceSecrets;
use wharf_domain::snapshot::{OfSnapshot, PlanRequest, Snapshot};
use wharf_ground::caller::Caller;
use wharf_instances::snapshots::SnapshotPlans;
use wharf_instances::{Condition, IdempotencyKey, InstanceCondition};

acts![
    take_snapshot 10,
    delete_snapshot 3,
    restore_snapshot 10,
    clone_snapshot 8,
    plan_snapshots 6,
    end_plan 1,
];

/// Names that users give. They are few, so that names are taken.
const NAMES: [&str; 2] = ["before", "after"];

/// The pause between two looks at a snapshot that is being taken, and the number of looks.
pub const PAUSE: Duration = Duration::from_millis(500);
pub const TRIES: u32 = 8;

fn is_ready(row: &Snapshot) -> bool {
    row.status() == KeptStatus::Ready
}

fn is_container(instance: &Instance) -> bool {
    instance.resource_type == ResourceType::Container
}

/// A container that runs or is stopped, in most cases.
pub fn container(sim: &Sim, args: Args) -> Option<Target> {
    target(sim, args, |one| {
        is_container(one) && (runs(one) || is_stopped(one))
    })
}

/// A snapshot of its owner, who acts. Three of four are ready, if there are any.
struct Own {
    who: &'static str,
    caller: Caller,
    snapshot: Snapshot,
    named: String,
}

impl Own {
    fn of(sim: &Sim, args: Args) -> Option<Self> {
        let found = sim.db.read(|rows| {
            let mut found = Vec::new();
            for row in rows.all(&SNAPSHOTS)? {
                let (_, (), row) = row?;
                found.extend(Some(row).filter(|row| !row.deleted));
            }
            Ok(found)
        });
        let mut found = found.unwrap_or_default();
        if found.iter().any(is_ready) && !args.is_one_in(0, 4) {
            found.retain(is_ready);
        }
        let n = args.number(1, found.len() as u64);
        let snapshot = found.into_iter().nth(usize::try_from(n).ok()?)?;
        let (who, caller) = args.user_with(sim, snapshot.owner)?;
        Some(Self {
            who,
            caller,
            named: snapshot.id.to_string(),
            snapshot,
        })
    }

    /// A snapshot as above. If there is none, one is taken before.
    async fn ready(sim: &Sim, args: Args) -> Option<Self> {
        if let Some(own) = Self::of(sim, args) {
            return Some(own);
        }
        take(sim, &container(sim, args)?, None, None).await;
        for _ in 0..TRIES {
            sleep(PAUSE).await;
            if let Some(own) = Self::of(sim, args).filter(|own| is_ready(&own.snapshot)) {
                return Some(own);
            }
        }
        Self::of(sim, args)
    }

    fn words(&self, what: &str) -> String {
        let Snapshot { id, name, of, .. } = &self.snapshot;
        format!("{what} snapshot {id} ({name}) of {}", of.instance)
    }
}

async fn take_snapshot(sim: Sim, args: Args) {
    let Some(of) = container(&sim, args) else {
        return;
    };
    let name = args.is_one_in(2, 2).then(|| args.of(2, &NAMES)).flatten();
    let name = name.and_then(|name| Name::parse(name).ok());
    // One of two keys, so that requests are repeated.
    let key = args.is_one_in(3, 3).then(|| {
        let key = format!("snapshot-{}", args.number(3, 2));
        IdempotencyKey::new(&key, of.instance.id.0.as_bytes())
    });
    take(&sim, &of, name, key).await;
}

async fn take(sim: &Sim, of: &Target, name: Option<Name>, key: Option<IdempotencyKey>) {
    let words = format!("{} named {name:?}", of.words("takes a snapshot of"));
    let taken = sim.app.take_snapshot(&of.caller, &of.selector, name, key);
    let ask = Ask::TakeSnapshot(of.instance.id);
    sim.ask(of.who, words, Some(ask), taken, |_| None).await;
}

async fn delete_snapshot(sim: Sim, args: Args) {
    let Some(own) = Own::of(&sim, args) else {
        return;
    };
    let condition = Condition::default();
    let deleted = sim
        .app
        .delete_kept::<OfSnapshot>(&own.caller, &own.named, &condition);
    let ask = Ask::DeleteSnapshot(own.snapshot.id);
    sim.ask(own.who, own.words("deletes"), Some(ask), deleted, |()| None)
        .await;
}

async fn restore_snapshot(sim: Sim, args: Args) {
    let Some(own) = Own::ready(&sim, args).await else {
        return;
    };
    let all = sim.all_instances().into_iter();
    let mut running = all.filter(|one| one.id == own.snapshot.of.instance && runs(one));
    if let Some(instance) = running.next().filter(|_| !args.is_one_in(1, 4)) {
        let (id, condition) = (instance.id, InstanceCondition::default());
        let selector = selector(&instance, false);
        let stopped = sim.app.stop(&own.caller, &selector, &condition);
        let words = format!("stops {id}");
        sim.ask(own.who, words, Some(Ask::Stop(id)), stopped, |_| None)
            .await;
    }
    let first = args.is_one_in(2, 3);
    let words = format!("{}, taking one before: {first}", own.words("restores"));
    let restored = sim.app.restore(&own.caller, &own.named, first);
    let id = own.snapshot.of.instance;
    let ask = Ask::Restore { id, first };
    sim.ask(own.who, words, Some(ask), restored, |_| None).await;
}

async fn clone_snapshot(sim: Sim, args: Args) {
    let (Some(own), Some(mut size)) = (Own::ready(&sim, args).await, args.of(2, &SIZES)) else {
        return;
    };
    let flavors = &sim.outside.setup.flavors;
    let flavor = flavors
        .iter()
        .find(|flavor| flavor.name == own.snapshot.of.flavor);
    let Some(flavor) = flavor.cloned() else {
        return;
    };
    let least = own.snapshot.of.disk_size_gib;
    size.disk_size_gib = size.disk_size_gib.max(least);
    let request = CreateRequest {
        name: None,
        resource_type: ResourceType::Container,
        size,
        cpu_tier: own.snapshot.cpu_tier,
        flavor,
        gpu_model: None,
        public_key: None,
        secrets: InstanceSecrets::default(),
        volumes: Vec::new(),
        content: None,
        source: Some(own.snapshot.id),
    };
    let ask = Ask::Create {
        owner: own.caller.user,
        size,
    };
    let created = sim.app.create(&own.caller, request, None);
    let made = made_by(&sim);
    sim.ask(own.who, own.words("clones"), Some(ask), created, made)
        .await;
}

async fn plan_snapshots(sim: Sim, args: Args) {
    let Some(of) = container(&sim, args) else {
        return;
    };
    let keep = args.of(3, &[1, 2]).unwrap_or(1);
    let request = PlanRequest {
        every_h: 1,
        keep,
        keep_days: None,
    };
    let words = format!("{} that keeps {keep}", of.words("sets a plan of"));
    let planned = sim.app.plan_snapshots(&of.caller, &of.selector, request);
    let ask = Ask::Plan(of.instance.id, Some(keep as usize));
    sim.ask(of.who, words, Some(ask), planned, |_| None).await;
}

async fn end_plan(sim: Sim, args: Args) {
    let Some(of) = container(&sim, args) else {
        return;
    };
    let ended = sim.app.end_plan::<SnapshotPlans>(&of.caller, &of.selector);
    let ask = Ask::Plan(of.instance.id, None);
    sim.ask(
        of.who,
        of.words("ends the plan of"),
        Some(ask),
        ended,
        |()| None,
    )
    .await;
}
