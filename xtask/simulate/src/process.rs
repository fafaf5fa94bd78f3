//! One process of Wharf: it opens the database on the simulated disk, starts the reconciler and all that a server
//! has beside it, and lives until something ends it.

use crate::dice::Dice;
use crate::disk::SimDisk;
use crate::model::Ask;
use crate::receivers::SimReceivers;
use crate::script::Step;
use crate::setup::USERS;
use crate::sim::{EndOfProcess, Outside, Sim, UserKey};
use crate::world::{SimReach, WorldDriver};
use anyhow::{Context, Result, anyhow};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;
use wharf_accounts::Accounts;
use wharf_accounts::key::KeyRequest;
use wharf_backups::Backups;
use wharf_config::Config;
use wharf_db::{BatchWriter, Db, DbBounds, Read as _, Rows as _, VOLUMES_ON};
use wharf_domain::audit::Origin;
use wharf_domain::error::Error;
use wharf_domain::ids::NodeId;
use wharf_domain::scope::Scopes;
use wharf_ground::clock::Clock;
use wharf_ground::clock_watch;
use wharf_ground::config::SharedConfig;
use wharf_ground::random::Random;
use wharf_ground::vault::Vault;
use wharf_hooks::Webhooks;
use wharf_instances::nodes::NodeState;
use wharf_instances::{App, AppParts, SharedInventory, reconciler, retention};
use wharf_operations::Operator;
use wharf_operations::schema::SCHEMA;
use wharf_plugin::NodeDriver;

/// The time in which everything settles once there are no more faults.
const SETTLES: Duration = Duration::from_secs(5 * 60);

/// The most pauses of backups after that, each before another attempt.
const MAX_PAUSES: u32 = 6;

/// The way in which a process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The script is over, and everything has settled.
    Done,
    /// It ends for this reason, and another one follows.
    By(EndOfProcess),
    /// The database takes no more writes, and another process follows.
    Lost,
}

/// Runs a process from its start to its end.
pub async fn run(outside: &Arc<Outside>, steps: &Mutex<VecDeque<Step>>) -> Result<Ended> {
    let (sim, _stopping) = match start(outside).await {
        Ok(Started::Up(sim, stopping)) => (*sim, stopping),
        Ok(Started::Refused) => {
            outside.trace.line(
                "wharf",
                "refuses to start without a node that has instances or volumes",
            );
            return Ok(Ended::By(EndOfProcess::Restart(0)));
        }
        Err(_) if outside.disk.lock().has_failed() => return Ok(Ended::Lost),
        Err(error) => return Err(error),
    };
    outside.trace.line("wharf", "is ready");
    sim.check();
    let script = async {
        // A step whose pause the process does not outlive is one of the next process.
        while let Some(step) = first(steps) {
            sleep(step.pause).await;
            steps.lock().pop_front();
            tokio::spawn((step.act.run)(sim.clone(), step.args));
        }
        settle(&sim).await;
    };
    tokio::select! {
        biased;
        () = outside.failure.happens() => Ok(Ended::Done),
        () = outside.world.crashes() => Ok(Ended::By(EndOfProcess::Kill)),
        end = outside.end.asked() => Ok(Ended::By(end)),
        () = sim.db.lost() => Ok(Ended::Lost),
        () = script => Ok(Ended::Done),
    }
}

fn first(steps: &Mutex<VecDeque<Step>>) -> Option<Step> {
    steps.lock().front().copied()
}

/// Ends all faults, and waits until everything has settled.
async fn settle(sim: &Sim) {
    let outside = &sim.outside;
    sleep(Duration::from_secs(60)).await;
    outside.trace.line("world", "has no more faults");
    outside.disk.lock().strike(None);
    outside.received.lock().is_calm = true;
    let operator = Operator::of(&sim.app, &sim.accounts);
    let pinned = pinned(&sim.db);
    let mut replaced = outside.world.calm(&pinned);
    // The operator accepts an engine once it is within reach.
    sleep(Duration::from_secs(30)).await;
    // A store that the engine showed before Wharf knew a mark is gone.
    let nodes = sim.outside.setup.nodes().into_iter().map(|node| node.name);
    replaced.extend(nodes.filter(|node| {
        let state = sim.app.nodes().state(node);
        !pinned.contains_key(node) && matches!(state, NodeState::Outage(_))
    }));
    for node in replaced {
        let words = format!("accepts the engine of {node}");
        let ask = Ask::Accept(node.clone());
        let accepted = operator.accept_node(&node.0);
        sim.ask("operator", words, Some(ask), accepted, |()| None)
            .await;
    }
    sleep(SETTLES).await;
    for _ in 0..MAX_PAUSES {
        let Some(pause) = sim.pause_of_backups() else {
            break;
        };
        sleep(pause + Duration::from_secs(30)).await;
    }
    sim.check();
    let settled = outside.model.lock().settled(&sim.look());
    if let Err(why) = settled {
        outside.failure.set(format!("after the faults: {why}"));
    }
}

/// The mark of each node's store that Wharf knows.
fn pinned(db: &Db) -> BTreeMap<NodeId, String> {
    use wharf_instances::nodes::NODES;
    let read = db.read(|rows| {
        let mut pinned = BTreeMap::new();
        for row in rows.all(&NODES)? {
            let (node, (), row) = row?;
            pinned.extend(row.mark.map(|mark| (NodeId(node), mark)));
        }
        Ok(pinned)
    });
    read.unwrap_or_default()
}

/// The result of a start.
enum Started {
    /// The sender ends the tasks when it is dropped.
    Up(Box<Sim>, watch::Sender<bool>),
    /// The configuration lacks a node with instances or volumes.
    Refused,
}

/// Whether a configuration lacks a node with instances or volumes. A server refuses to start with it.
fn lacks_nodes(config: &Config, db: &Db) -> Result<bool, Error> {
    let has = |name: &str| config.node.iter().any(|node| node.name == name);
    db.read(|rows| {
        let mut lacks = false;
        rows.each_claim(|_, claim| lacks |= !has(&claim.node.0))?;
        for row in rows.all(&VOLUMES_ON)? {
            let (node, ..) = row?;
            lacks |= !has(&node);
        }
        Ok(lacks)
    })
}

/// An open database, and what it needs.
pub struct Opened {
    pub db: Db,
    batches: BatchWriter,
    config: &'static Arc<Config>,
    inventory: SharedInventory,
    clock: Clock,
}

/// Opens the database on a disk, with the configuration in use.
pub fn open(outside: &Outside, disk: SimDisk) -> Result<Opened> {
    let number = *outside.config.lock();
    let config = outside.setup.configs.get(number);
    let config = config.context("no such configuration")?;
    let inventory = SharedInventory::of(config);
    let time = outside.time.clone();
    let clock = Clock::of(&config.clock, &time.boot_id(), move || time.reading());
    let db_clock = clock.clone();
    let (db, batches) = Db::open_on(
        disk,
        &SCHEMA,
        Box::new(inventory.clone()),
        Box::new(move || db_clock.times()),
        DbBounds::default(),
    )
    .map_err(|error| anyhow!(error.chain()))?;
    Ok(Opened {
        db,
        batches,
        config,
        inventory,
        clock,
    })
}

/// Starts everything that a server has behind its interface.
async fn start(outside: &Arc<Outside>) -> Result<Started> {
    let setup = outside.setup;
    let disk = outside.disk.lock().clone();
    let Opened {
        db,
        batches,
        config,
        inventory,
        clock,
    } = open(outside, disk)?;
    let shared = SharedConfig::new(Arc::clone(config));
    if lacks_nodes(config, &db).map_err(failed)? {
        return Ok(Started::Refused);
    }
    clock.resume(&db).map_err(failed)?;
    let writing = Arc::new(Mutex::new(None));
    tokio::spawn(write(batches, Arc::clone(&writing)));
    let accounts = Accounts::load(db.clone(), clock.clone(), shared.clone()).map_err(failed)?;
    let vault = Vault::open(setup.data_dir(), &db).await?;
    // Content on its way ends with its process.
    let plugins = setup.plugins.without_offers();
    let drivers = config.node.iter().map(|node| {
        let node = NodeId(node.name.clone());
        let driver = WorldDriver::new(&outside.world, node.clone(), plugins.offers());
        (node, NodeDriver::new(driver))
    });
    let process = *outside.processes.lock();
    let random = |part| random(Dice::of_part(outside.seed, &format!("{part} {process}")));
    let accounts = Arc::new(accounts);
    let webhooks = Arc::new(Webhooks::new(
        shared.clone(),
        db.clone(),
        clock.clone(),
        random("webhooks"),
        vault.clone(),
        Arc::clone(&accounts),
    ));
    let (app, nudged) = App::new(AppParts {
        config: shared.clone(),
        db: db.clone(),
        inventory,
        clock: clock.clone(),
        random: random("random"),
        drivers: drivers.collect(),
        plugins,
        vault,
        installation: "simulation".to_owned(),
        guests: tokio::runtime::Handle::current(),
    });
    let backups = Backups::new(
        Arc::clone(&app),
        random("backups"),
        Arc::clone(&accounts),
        Arc::new(SimReach(outside.world.clone())),
    );
    let sim = Sim {
        app: Arc::clone(&app),
        backups: Arc::clone(&backups),
        db: db.clone(),
        accounts,
        webhooks: Arc::clone(&webhooks),
        config: shared,
        outside: Arc::clone(outside),
    };
    if outside.keys.lock().is_empty() {
        make_users(&sim).await?;
    }
    *writing.lock() = Some(sim.clone());
    let (stopping, stopped) = watch::channel(false);
    tokio::spawn(reconciler::run(Arc::clone(&app), nudged, stopped.clone()));
    tokio::spawn(retention::run(Arc::clone(&app), stopped.clone()));
    tokio::spawn(wharf_backups::run(backups, stopped.clone()));
    let receivers = Arc::new(SimReceivers::new(outside, clock.clone()));
    tokio::spawn(wharf_hooks::run_with(webhooks, receivers, stopped.clone()));
    tokio::spawn(clock_watch::run(db, clock, stopped));
    Ok(Started::Up(Box::new(sim), stopping))
}

/// Random bytes by dice.
fn random(dice: Dice) -> Random {
    let dice = Mutex::new(dice);
    Random::of(move |bytes| {
        let mut dice = dice.lock();
        for part in bytes.chunks_mut(8) {
            part.iter_mut()
                .zip(dice.roll().to_le_bytes())
                .for_each(|(to, from)| *to = from);
        }
        Ok(())
    })
}

fn failed(error: Error) -> anyhow::Error {
    anyhow!(error.chain().to_string())
}

/// Commits the batches of the database, and looks after each commit.
async fn write(mut batches: BatchWriter, sim: Arc<Mutex<Option<Sim>>>) {
    while batches.step().await {
        let sim = sim.lock().clone();
        if let Some(sim) = sim {
            sim.check();
        }
    }
}

/// Gives each user two keys, of which the first may be disabled.
async fn make_users(sim: &Sim) -> Result<()> {
    for email in USERS {
        let mut keys = Vec::new();
        for name in ["one", "two"] {
            let request = KeyRequest {
                email: email.to_owned(),
                name: name.to_owned(),
                scopes: Scopes::OF_USERS,
                expires_at: None,
            };
            let made = sim
                .accounts
                .keys
                .new_key(request, &Origin::operator())
                .await;
            let made = made.map_err(failed)?;
            keys.push(UserKey {
                id: made.id,
                text: made.key.expose().to_owned(),
            });
        }
        sim.outside.keys.lock().push(keys);
    }
    Ok(())
}
