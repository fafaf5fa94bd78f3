//! The world outside Wharf: nodes with engines, their machines, and the faults of both. It tells the truth to the
//! checks, whatever it told Wharf.

mod bucket;
mod calls;
mod cluster;
mod content;
mod driver;
mod fault;
mod machine;
mod node;
mod request;
mod snapshot;
mod truth;
mod volume;

pub use bucket::SimReach;
pub use driver::WorldDriver;
pub use fault::{CALL_BOUND, CrashAt, Fault, FaultPlan, LATE, VERY_LATE};
use machine::Store;
pub use machine::{Machine, MachineKey, MachineState, Moment, Unique, key};
pub use node::{BOOTED, Node, NodeSetup};
pub use request::{Answer, Request};
pub use snapshot::{Disk, StoredSnapshot};
pub use truth::Truth;
pub use volume::StoredVolume;

use crate::dice::Dice;
use crate::time::SimTime;
use crate::trace::Trace;
use calls::{InFlight, Sent};
use cluster::offline;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use wharf_domain::driver::{Phase, PluginError};
use wharf_domain::ids::{InstanceId, NodeId};

/// A request that an engine carries out later than it should.
#[derive(Debug)]
struct Deferred {
    at: Moment,
    /// The number of its call: the order of those that are due at one moment.
    call: u64,
    node: NodeId,
    request: Request,
    /// The number of the store that the engine showed. What another store's engine had is gone with it.
    shown: u64,
    /// It comes so late that Wharf's second look cannot find it.
    after_second_look: bool,
}

#[derive(Debug)]
struct State {
    seed: u64,
    nodes: BTreeMap<NodeId, Node>,
    plan: FaultPlan,
    dice: Dice,
    calls: u64,
    /// The calls that Wharf waits for, by number.
    in_flight: BTreeMap<u64, Request>,
    deferred: Vec<Deferred>,
    /// The machines that an engine brought up after Wharf's second look, and that no answer has told Wharf of since.
    late: BTreeSet<MachineKey>,
    /// All machines that an engine brought up after Wharf's second look.
    ever_late: BTreeSet<MachineKey>,
    /// The machines that an engine gave another size after Wharf's second look, and none since.
    late_sizes: BTreeSet<MachineKey>,
    /// The last moment at which a machine did not run.
    down: BTreeMap<MachineKey, Moment>,
    trace: Trace,
    store: bucket::ObjectStore,
    /// The nodes that offer the content of instances, with the machine.
    offers: BTreeMap<InstanceId, (NodeId, MachineKey)>,
}

/// The world. Clones share it.
#[derive(Debug, Clone)]
pub struct World {
    state: Arc<Mutex<State>>,
    time: SimTime,
    crash: Arc<Notify>,
    begun: Arc<Notify>,
}

impl World {
    pub fn new(
        seed: u64,
        nodes: impl IntoIterator<Item = NodeSetup>,
        plan: FaultPlan,
        time: SimTime,
        trace: Trace,
    ) -> Self {
        let nodes = nodes
            .into_iter()
            .map(|setup| (setup.name.clone(), Node::new(setup)));
        let state = State {
            seed,
            nodes: nodes.collect(),
            plan,
            dice: Dice::of_part(seed, "world"),
            calls: 0,
            in_flight: BTreeMap::new(),
            deferred: Vec::new(),
            late: BTreeSet::new(),
            ever_late: BTreeSet::new(),
            late_sizes: BTreeSet::new(),
            down: BTreeMap::new(),
            store: bucket::ObjectStore::default(),
            offers: BTreeMap::new(),
            trace,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            time,
            crash: Arc::default(),
            begun: Arc::default(),
        }
    }

    pub fn now(&self) -> Moment {
        self.time.now()
    }

    /// Completes when a call is to be cut off by the end of the process.
    pub async fn crashes(&self) {
        self.crash.notified().await;
    }

    /// Completes when a call about an instance is under way.
    pub async fn next_call(&self) -> InstanceId {
        loop {
            self.begun.notified().await;
            let state = self.state.lock();
            let last = state.in_flight.last_key_value();
            if let Some(tag) = last.and_then(|(_, request)| request.tag()) {
                return tag.instance;
            }
        }
    }

    /// Replaces the plan of faults.
    pub fn plan(&self, plan: FaultPlan) {
        self.state.lock().plan = plan;
    }

    /// Calls end no more processes.
    pub fn end_crashes(&self) {
        if let FaultPlan::Random { crashes, .. } = &mut self.state.lock().plan {
            *crashes = 0;
        }
    }

    /// Ends all conditions of nodes. Each shows the store with the mark that Wharf has pinned. Returns the nodes whose
    /// store with that mark is gone: their own one has the mark now, and the operator is to accept it.
    pub fn calm(&self, pinned: &BTreeMap<NodeId, String>) -> Vec<NodeId> {
        let mut replaced = Vec::new();
        self.truth(|truth| {
            truth.0.plan = FaultPlan::Calm;
            for (name, node) in &mut truth.0.nodes {
                node.away_until = Moment::ZERO;
                node.taken.clear();
                node.other_until = None;
                let [own, other] = &mut node.stores;
                let mark = pinned.get(name);
                let shows_other = mark.is_some() && mark == other.mark.as_ref();
                if !shows_other && mark.is_some() && mark != own.mark.as_ref() {
                    own.mark = mark.cloned();
                    replaced.push(name.clone());
                }
                if shows_other != node.shows_other {
                    node.interruptions += 1;
                    node.shown_number += 1;
                }
                node.shows_other = shows_other;
            }
        });
        replaced
    }

    /// The store that a node shows is its own from now on. An earlier one is gone with its machines.
    pub fn keep_shown(&self, node: &NodeId) {
        self.with(node, |node, _| node.keep_shown());
    }

    /// A node is out of reach for a while.
    pub fn cut_off(&self, node: &NodeId, span: Duration) {
        self.with(node, |node, now| {
            node.away_until = node.away_until.max(now + span)
        });
    }

    /// The engine of a node shows another store for a while, which has nothing of Wharf's.
    pub fn show_other(&self, node: &NodeId, mark: Option<&str>, span: Duration) {
        self.with(node, |node, now| node.show_other(mark, now + span));
    }

    /// Changes a node.
    fn with(&self, node: &NodeId, change: impl FnOnce(&mut Node, Moment)) {
        self.truth(|truth| {
            if let Some(node) = truth.0.nodes.get_mut(node) {
                change(node, truth.1);
            }
            truth.0.note_down(truth.1);
        });
    }

    /// The number of calls so far.
    pub fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    /// How often contact with a node was lost.
    pub fn interruptions(&self, node: &NodeId) -> u64 {
        self.truth(|truth| truth.0.nodes.get(node).map_or(0, |node| node.interruptions))
    }

    /// The time of the last answer of a node. None if it is out of reach.
    pub fn last_answer(&self, node: &NodeId) -> Option<Instant> {
        let ago = self.truth(|truth| Some(truth.1 - truth.0.nodes.get(node)?.answered?))?;
        Instant::now().checked_sub(ago)
    }

    /// The truth of this moment.
    pub fn truth<T>(&self, ask: impl FnOnce(&mut Truth<'_>) -> T) -> T {
        let (mut state, now) = (self.state.lock(), self.now());
        state.pass(now);
        ask(&mut Truth(&mut state, now))
    }

    /// Makes a call.
    pub async fn call(&self, node: &NodeId, request: Request) -> Result<Answer, PluginError> {
        let (number, fault, crash, latency) = self.begin(node, &request);
        let _waits = InFlight(self, number);
        if crash == Some(CrashAt::Before) {
            return self.end_of_process().await;
        }
        let mut sent = Sent {
            world: self,
            call: number,
            node,
            request: (request.changes() && request.may_be_late()).then(|| request.clone()),
        };
        if crash == Some(CrashAt::Late) {
            return self.end_of_process().await;
        }
        sleep(latency).await;
        sent.request = None;
        // A stale answer is older than what an engine carried out since.
        let (tag, is_stale) = (request.tag(), fault == Some(Fault::Stale));
        let answered = self.answer(number, node, request, fault).await;
        if crash == Some(CrashAt::After) {
            return self.end_of_process().await;
        }
        let (mut state, now) = (self.state.lock(), self.now());
        state.note(number, node, &format!("{answered:?}"));
        if let (Ok(answer), false) = (&answered, is_stale) {
            for told in answer.tells_of(tag) {
                state.late.remove(&told);
            }
        }
        let contact = !matches!(answered, Err(PluginError::Unreachable(_)));
        if let Some(node) = state.nodes.get_mut(node) {
            node.answered = contact.then_some(now);
        }
        answered
    }

    fn begin(
        &self,
        node: &NodeId,
        request: &Request,
    ) -> (u64, Option<Fault>, Option<CrashAt>, Duration) {
        let (mut state, now) = (self.state.lock(), self.now());
        state.pass(now);
        state.calls += 1;
        let number = state.calls;
        // A call to a node that is out of reach has no other fault.
        let (fault, crash) = if state.is_away(node, now) {
            (None, None)
        } else {
            state.plan.at(number, request.changes())
        };
        let latency = Duration::from_millis(state.dice.between(1, 30));
        state.in_flight.insert(number, request.clone());
        let mut line = request.name().to_owned();
        if let Some(tag) = request.tag() {
            line += &format!(" {}-{}", tag.instance, tag.incarnation);
        }
        if let Some(fault) = fault {
            line += &format!(", {fault:?}");
        }
        if let Some(crash) = crash {
            line += &format!(", the process ends {crash:?}");
        }
        state.note(number, node, &line);
        self.begun.notify_waiters();
        (number, fault, crash, latency)
    }

    /// The process ends within this call.
    async fn end_of_process<T>(&self) -> T {
        self.crash.notify_one();
        std::future::pending().await
    }

    async fn answer(
        &self,
        call: u64,
        node: &NodeId,
        request: Request,
        fault: Option<Fault>,
    ) -> Result<Answer, PluginError> {
        let carried_out =
            |request: &Request| self.truth(|truth| truth.0.carry_out(node, request, truth.1));
        let fault = match fault {
            Some(Fault::Late | Fault::VeryLate | Fault::Duplicate) if !request.may_be_late() => {
                Some(Fault::AnswerLost)
            }
            fault => fault.filter(|fault| !self.strike(node, &request, *fault)),
        };
        if self.truth(|truth| truth.0.is_away(node, truth.1)) {
            return Err(self.lost(node));
        }
        let late = |after, after_second_look| {
            self.defer(call, node, request.clone(), after, after_second_look);
        };
        match fault {
            None => carried_out(&request),
            Some(Fault::Unreachable) => Err(self.lost(node)),
            Some(Fault::Refused) => Err(PluginError::Other("the engine failed".to_owned())),
            Some(Fault::RetryLater) => Err(PluginError::RetryLater(Duration::from_millis(300))),
            Some(Fault::AnswerLost) => {
                drop(carried_out(&request));
                Err(self.lost(node))
            }
            Some(Fault::ErrorAfter) => {
                drop(carried_out(&request));
                Err(PluginError::Other(
                    "the engine failed afterwards".to_owned(),
                ))
            }
            Some(Fault::Late) => {
                late(LATE, false);
                Err(self.lost(node))
            }
            Some(Fault::VeryLate) => {
                late(VERY_LATE, true);
                Err(self.lost(node))
            }
            Some(Fault::Duplicate) => {
                late(LATE, true);
                carried_out(&request)
            }
            Some(Fault::HungBefore) => {
                sleep(CALL_BOUND).await;
                Err(PluginError::Fault("no answer in time".to_owned()))
            }
            Some(Fault::HungAfter) => {
                drop(carried_out(&request));
                sleep(CALL_BOUND).await;
                Err(PluginError::Fault("no answer in time".to_owned()))
            }
            Some(_) => {
                // The answer is stale.
                let answer = carried_out(&request);
                sleep(LATE).await;
                answer
            }
        }
    }

    /// Lets an engine carry a request out later.
    fn defer(
        &self,
        call: u64,
        node: &NodeId,
        request: Request,
        after: Duration,
        after_second_look: bool,
    ) {
        self.truth(|truth| {
            let shown = truth.0.nodes.get(node).map_or(0, |node| node.shown_number);
            truth.0.deferred.push(Deferred {
                at: truth.1 + after,
                call,
                shown,
                node: node.clone(),
                request,
                after_second_look,
            });
        });
    }

    /// Notes the loss of contact.
    fn lost(&self, node: &NodeId) -> PluginError {
        self.truth(|truth| {
            if let Some(node) = truth.0.nodes.get_mut(node) {
                node.interruptions += 1;
            }
        });
        PluginError::Unreachable("the connection broke".to_owned())
    }
}

impl State {
    fn note(&self, number: u64, node: &NodeId, line: &str) {
        self.trace.line(&node.0, &format!("call {number}: {line}"));
    }

    fn is_away(&self, node: &NodeId, now: Moment) -> bool {
        self.nodes.get(node).is_none_or(|node| node.is_away(now))
    }

    /// Brings the world to a moment: conditions end, and engines carry out what they deferred.
    fn pass(&mut self, now: Moment) {
        self.nodes.values_mut().for_each(|node| node.pass(now));
        self.deferred
            .sort_by_key(|deferred| (deferred.at, deferred.call));
        while self.deferred.first().is_some_and(|first| first.at <= now) {
            let due = self.deferred.remove(0);
            let node = self.nodes.get(&due.node);
            if node.is_none_or(|node| node.shown_number != due.shown) {
                continue;
            }
            let line = format!("carries out {} only now", due.request.name());
            self.trace.line(&due.node.0, &line);
            drop(self.carry_out(&due.node, &due.request, now));
            if due.after_second_look && due.request.sets_size() {
                self.late_sizes.extend(due.request.tag().map(key));
            }
            if due.after_second_look && due.request.brings_up() {
                self.late.extend(due.request.tag().map(key));
                self.ever_late.extend(due.request.tag().map(key));
            }
        }
    }

    /// Carries out a request, in the cluster of its node.
    fn carry_out(
        &mut self,
        name: &NodeId,
        request: &Request,
        now: Moment,
    ) -> Result<Answer, PluginError> {
        self.note_down(now);
        let of = request.tag().map(key);
        if let Some(of) = of.filter(|_| request.sets_size()) {
            self.late_sizes.remove(&of);
        }
        let elsewhere = of.and_then(|of| self.elsewhere(name, of));
        let answer = match (request, elsewhere) {
            (Request::MoveHere(spec), elsewhere) => self.move_here(name, spec, elsewhere, now),
            (Request::Offer(target), None) => self.offer(name, target, now),
            (Request::Fetch(spec, of_backup), None) => self.fetch(name, spec, of_backup, now),
            (Request::Stop(target) | Request::Delete(target), Some(other)) => {
                if self.is_offline(&other, key(target.tag), now) {
                    Err(offline())
                } else {
                    self.on(&other, request, now)
                }
            }
            (
                Request::Start(_)
                | Request::Inspect(_)
                | Request::Ensure(_)
                | Request::RestoreSnapshot(..),
                Some(other),
            ) => Ok(Answer::Phase(Phase::Elsewhere(other.to_string()))),
            _ => self.on(name, request, now),
        };
        self.note_down(now);
        answer
    }

    fn on(&mut self, name: &NodeId, request: &Request, now: Moment) -> Result<Answer, PluginError> {
        let node = self.nodes.get_mut(name).ok_or(PluginError::NotFound)?;
        node.carry_out(request, now)
    }

    /// Notes the machines that are known and do not run now.
    fn note_down(&mut self, now: Moment) {
        let mut runs: BTreeMap<MachineKey, bool> = BTreeMap::new();
        let stores = self.nodes.values().flat_map(Node::known);
        for (key, machine) in stores.flat_map(|store| &store.machines) {
            *runs.entry(*key).or_default() |= machine.runs();
        }
        for (key, _) in runs.iter().filter(|(_, runs)| !**runs) {
            self.down.insert(*key, now);
        }
        for (key, at) in &mut self.down {
            if !runs.contains_key(key) {
                *at = now;
            }
        }
    }
}
