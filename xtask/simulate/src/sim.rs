//! A running process of Wharf within a run, and what outlives it.

use crate::disk::SimDisk;
use crate::model::{Ask, Look, Model, Outcome};
use crate::receivers::Received;
use crate::setup::Setup;
use crate::time::SimTime;
use crate::trace::Trace;
use crate::world::World;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use wharf_accounts::Accounts;
use wharf_backups::{BACKUPS, Backups};
use wharf_db::{Db, Read as _, Rows as _};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::instance::{Instance, Intent};
use wharf_ground::caller::Caller;
use wharf_ground::config::SharedConfig;
use wharf_hooks::Webhooks;
use wharf_instances::nodes::NODES;
use wharf_instances::{App, Selector};

/// What outlives a process of Wharf: the disk, the world, the users' knowledge, and the record of the run.
pub struct Outside {
    pub setup: &'static Setup,
    pub seed: u64,
    pub disk: Mutex<SimDisk>,
    /// The file of an earlier moment, and the model then.
    pub copy: Mutex<Option<(SimDisk, Model)>>,
    /// The database in use is a copy with a flipped bit.
    pub is_damaged: Mutex<bool>,
    pub world: World,
    pub model: Mutex<Model>,
    pub trace: Trace,
    pub time: SimTime,
    pub received: Arc<Mutex<Received>>,
    pub failure: Failure,
    pub end: ProcessEnd,
    /// The number of the configuration in use.
    pub config: Mutex<usize>,
    /// The keys of each user.
    pub keys: Mutex<Vec<Vec<UserKey>>>,
    /// The users, who see their own through the use cases.
    pub users: Vec<Caller>,
    /// The nodes whose engine the operator accepts, and whether Wharf has noted that.
    pub accepting: Mutex<BTreeMap<NodeId, bool>>,
    /// The number of asks so far.
    pub asks: Mutex<u64>,
    /// The number of processes that have ended.
    pub processes: Mutex<u64>,
}

/// A key of a user.
#[derive(Debug, Clone)]
pub struct UserKey {
    pub id: String,
    pub text: String,
}

/// The first failure of a run.
#[derive(Debug, Default)]
pub struct Failure {
    text: Mutex<Option<String>>,
    changed: Notify,
}

impl Failure {
    /// Notes a failure, unless there is one.
    pub fn set(&self, text: impl Into<String>) {
        self.text.lock().get_or_insert_with(|| text.into());
        self.changed.notify_one();
    }

    pub fn get(&self) -> Option<String> {
        self.text.lock().clone()
    }

    /// Completes after a failure.
    pub async fn happens(&self) {
        while self.get().is_none() {
            self.changed.notified().await;
        }
    }
}

/// The way in which a process of Wharf ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfProcess {
    /// It is killed. The disk keeps what was written.
    Kill,
    /// The machine loses power. The disk keeps what was synced, and parts of the rest.
    PowerCut,
    /// It stops in order, and starts with another configuration.
    Restart(usize),
    /// It is killed, and starts after so many hours.
    SwitchOff(u64),
    /// It is killed, and its disk has the file of an earlier moment then.
    EarlierFile,
}

/// Tells a process to end.
#[derive(Debug, Default)]
pub struct ProcessEnd {
    asked: Mutex<Option<EndOfProcess>>,
    changed: Notify,
}

impl ProcessEnd {
    pub fn ask(&self, end: EndOfProcess) {
        self.asked.lock().get_or_insert(end);
        self.changed.notify_one();
    }

    /// Completes when the process is to end.
    pub async fn asked(&self) -> EndOfProcess {
        loop {
            if let Some(end) = self.asked.lock().take() {
                return end;
            }
            self.changed.notified().await;
        }
    }
}

/// After so many attempts at a backup, the pause is too long for a run.
pub const OFTEN: u32 = 9;

/// A process of Wharf within a run. Clones share it.
#[derive(Clone)]
pub struct Sim {
    pub app: Arc<App>,
    pub db: Db,
    pub accounts: Arc<Accounts>,
    pub webhooks: Arc<Webhooks>,
    pub backups: Arc<Backups>,
    pub config: SharedConfig,
    pub outside: Arc<Outside>,
}

impl Sim {
    /// Asks something of Wharf, and tells the trace and the model of the question and of its answer. `made` is
    /// the instance that the answer made. An ask that is none of the model's changes no instance.
    pub async fn ask<T>(
        &self,
        who: &str,
        words: String,
        ask: Option<Ask>,
        answer: impl Future<Output = Result<T, Error>>,
        made: impl FnOnce(&T) -> Option<InstanceId>,
    ) -> Option<T> {
        let outside = &self.outside;
        let number = {
            let mut asks = outside.asks.lock();
            *asks += 1;
            *asks
        };
        outside.trace.line(who, &format!("#{number} {words}"));
        let id = ask.map(|ask| outside.model.lock().asked(ask));
        let answer = answer.await;
        let (outcome, words) = match &answer {
            Ok(answer) => (Outcome::Done(made(answer)), "done".to_owned()),
            Err(error) => (Outcome::Refused, format!("refused: {}", error.chain())),
        };
        outside.trace.line(who, &format!("#{number} {words}"));
        if let Outcome::Done(Some(InstanceId(id))) = outcome {
            outside.trace.name(id, &format!("i{number}"));
        }
        // The model sees what the answer acknowledges before it is told of the answer.
        self.check();
        if let Some(id) = id {
            // A database that takes no more writes may have kept this one.
            let is_lost = answer.is_err() && !self.db.takes_writes();
            let outcome = if is_lost { Outcome::Unknown } else { outcome };
            let answered = outside
                .model
                .lock()
                .answered(id, outcome, outside.time.now());
            if let Err(why) = answered {
                outside.failure.set(why);
            }
        }
        answer.ok()
    }

    /// Checks the state after an event.
    pub fn check(&self) {
        let outside = &self.outside;
        if outside.failure.get().is_some() || !self.db.takes_writes() {
            return;
        }
        self.keep_accepted();
        let found = outside.model.lock().look(&self.look());
        if let Err(why) = found {
            outside.failure.set(why);
        }
    }

    /// Makes the stores that engines show their own, once Wharf has acted on the word of the operator.
    fn keep_accepted(&self) {
        let mut accepting = self.outside.accepting.lock();
        accepting.retain(|node, was_noted| {
            let row = self.db.read(|rows| rows.get(&NODES, &*node.0));
            let is_noted = row.ok().flatten().is_some_and(|row| row.accepted);
            let is_done = *was_noted && !is_noted;
            if is_done {
                self.outside.world.keep_shown(node);
            }
            *was_noted = is_noted;
            !is_done
        });
    }

    /// What the model looks at.
    pub fn look(&self) -> Look<'_> {
        Look {
            app: &self.app,
            world: &self.outside.world,
            users: &self.outside.users,
            accounts: &self.accounts,
            webhooks: &self.webhooks,
            received: &self.outside.received,
        }
    }

    /// The caller with a key of a user; none if Wharf refuses the key.
    pub fn caller(&self, user: usize, key: u64) -> Option<Caller> {
        let keys = self.outside.keys.lock();
        let keys = keys.get(user)?;
        let n = usize::try_from(key.checked_rem(keys.len() as u64)?).ok()?;
        let key = keys.get(n)?;
        self.accounts
            .keys
            .authenticate(&key.text, "simulated".into())
    }

    /// The longest pause before the next attempt at a backup, unless it is very long. None if there is nothing to do.
    pub fn pause_of_backups(&self) -> Option<Duration> {
        let now = self.app.clock().now();
        let read = self.db.read(|rows| {
            let mut longest = None;
            for row in rows.all(&BACKUPS)? {
                let (.., backup) = row?;
                let work = backup.work.filter(|work| work.failed < OFTEN);
                let pause = work.map(|work| Duration::from_millis(work.due.millis_since(now)));
                longest = longest.max(pause);
            }
            Ok(longest)
        });
        read.unwrap_or_default()
    }

    /// The instances of all users, in the order of their ids.
    pub fn all_instances(&self) -> Vec<Instance> {
        let mut instances = Vec::new();
        let read = self
            .db
            .read(|rows| rows.each_instance(|row| instances.push(row)));
        if read.is_err() {
            instances.clear();
        }
        instances
    }
}

/// The way to name an instance. Another one may have the name of one that is being deleted.
pub fn selector(instance: &Instance, by_name: bool) -> Selector {
    if by_name && instance.intent != Intent::Delete {
        Selector::Name(instance.name.as_str().to_owned())
    } else {
        Selector::Id(instance.id)
    }
}
