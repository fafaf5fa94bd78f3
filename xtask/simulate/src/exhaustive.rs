//! Every fault at every call: scripts of one or two operations, with each fault and each end of the process at each call
//! that they lead to.

use crate::act::{Act, Args, SUBJECTS};
use crate::run;
use crate::script::{Script, Step};
use crate::world::{CrashAt, Fault, FaultPlan};
use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The operations. The instance that they are about is up before.
const OPERATIONS: [&str; 9] = [
    "create",
    "stop",
    "restart",
    "delete",
    "change_size",
    "rename",
    "drain",
    "relocate",
    "cut_power",
];

/// Operations without pairs, each after those that precede it. The backup makes an instance, too.
const ALONE: [(&[&str], &str); 8] = [
    (&[UP], "restore_backup"),
    (&[UP], "take_snapshot"),
    (&[UP, "take_snapshot"], "clone_snapshot"),
    (&[UP, "take_snapshot"], "delete_snapshot"),
    (&[UP, "take_snapshot", "stop"], "restore_snapshot"),
    (&[UP], "create_volume"),
    (&[UP, "create_volume"], "attach_volume"),
    (&[UP, "create_volume"], "delete_volume"),
];

/// The first operation of each script.
const UP: &str = "create";

/// The time of the first operation, at which the instance is up.
const BEGIN: Duration = Duration::from_secs(20);
/// The pause between those that precede it.
const EARLIER: Duration = Duration::from_secs(6);
/// The pause before a second operation, which meets the first one under way or done.
const PAUSE: Duration = Duration::from_millis(300);
/// The time after the first operation in which calls are struck.
const WITHIN: Duration = Duration::from_secs(12);
/// The dice of latencies.
const SEED: u64 = 1;

/// The scripts to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The end of the process at each call of single operations.
    Quick,
    /// Everything.
    All,
}

/// A run that broke a promise.
#[derive(Debug, Clone)]
pub struct Broken {
    /// The operations, the call, and what struck it.
    pub what: String,
    pub why: String,
    pub trace: Vec<String>,
}

/// Tries all whose description contains the filter. Returns the number of runs, and those that broke a promise. `say` is told what happens.
pub fn run(
    scope: Scope,
    filter: &str,
    threads: usize,
    say: impl Fn(&str) + Sync,
) -> Result<(usize, Vec<Broken>)> {
    let mut tries = Vec::new();
    for (before, operations) in scripts(scope) {
        let script = script(before, &operations)?;
        let calm = run::script(SEED, &script, FaultPlan::Calm)?;
        let what = operations.join(", ");
        if let Some(why) = calm.failure {
            let trace = calm.trace;
            return Ok((1, vec![Broken { what, why, trace }]));
        }
        for (number, call) in calls(&calm.trace) {
            for (fault, crash) in strikes(scope) {
                let plan = FaultPlan::At {
                    call: number,
                    fault,
                    crash,
                };
                let what = format!("{what}: {call} with {fault:?} and crash {crash:?}");
                if what.contains(filter) {
                    tries.push((what, script.clone(), plan));
                }
            }
        }
    }
    say(&format!("{} runs", tries.len()));
    let (next, broken) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let runners: Vec<_> = (0..threads.max(1))
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    while let Some((what, script, plan)) =
                        tries.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        let ran = run::script(SEED, script, plan.clone())?;
                        if let Some(why) = ran.failure {
                            let what = what.clone();
                            say(&format!("{what}: {why}"));
                            broken.lock().push(Broken {
                                what,
                                why,
                                trace: ran.trace,
                            });
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        runners.into_iter().try_for_each(|runner| {
            runner
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread panicked")))
        })
    })?;
    Ok((tries.len(), broken.into_inner()))
}

/// The names of the operations of each script, and of those that precede them.
fn scripts(scope: Scope) -> Vec<(&'static [&'static str], Vec<&'static str>)> {
    let single = OPERATIONS.iter().map(|one| vec![*one]);
    let pairs = OPERATIONS
        .iter()
        .flat_map(|one| OPERATIONS.iter().map(|two| vec![*one, *two]));
    let alone = ALONE.iter().map(|(before, one)| (*before, vec![*one]));
    let after_up = |operations| (&[UP][..], operations);
    match scope {
        Scope::Quick => single.map(after_up).collect(),
        Scope::All => single.chain(pairs).map(after_up).chain(alone).collect(),
    }
}

/// The faults and the ends of the process at a call.
fn strikes(scope: Scope) -> Vec<(Option<Fault>, Option<CrashAt>)> {
    let mut strikes: Vec<_> = CrashAt::ALL.map(|crash| (None, Some(crash))).into();
    if scope == Scope::All {
        for fault in Fault::ALL {
            strikes.push((Some(fault), None));
            strikes.push((Some(fault), Some(CrashAt::After)));
        }
    }
    strikes
}

fn script(before: &[&'static str], operations: &[&'static str]) -> Result<Script> {
    let mut steps = Vec::new();
    let mut left = BEGIN;
    for operation in before {
        let pause = if steps.is_empty() {
            Duration::ZERO
        } else {
            EARLIER
        };
        left = left.saturating_sub(pause);
        steps.push(step(pause, operation)?);
    }
    for (pause, operation) in [left, PAUSE].into_iter().zip(operations) {
        steps.push(step(pause, operation)?);
    }
    Ok(Script(steps))
}

fn step(pause: Duration, name: &str) -> Result<Step> {
    let act: &'static Act = SUBJECTS
        .into_iter()
        .flatten()
        .find(|act| act.name == name)
        .with_context(|| name.to_owned())?;
    // Numbers that select the first of everything, and nothing that is rare.
    let args = Args([1 << 32; 4]);
    Ok(Step { pause, act, args })
}

/// The calls of a trace within the time, by number. Of the calls by which a node is only observed, one of each kind counts.
fn calls(trace: &[String]) -> Vec<(u64, String)> {
    let mut kinds = BTreeSet::new();
    let mut calls = Vec::new();
    for line in trace {
        let mut words = line.split_whitespace();
        let at = words
            .next()
            .and_then(|at| at.parse().ok())
            .map(Duration::from_secs_f64);
        let within = at.is_some_and(|at| (BEGIN..BEGIN + WITHIN).contains(&at));
        let (Some(node), Some("call"), Some(number), Some(name)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let Ok(number) = number.trim_end_matches(':').parse() else {
            continue;
        };
        let is_request = name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        let of_instance = words.next().is_some();
        if within && is_request && (of_instance || kinds.insert((node.to_owned(), name.to_owned())))
        {
            calls.push((number, format!("call {number}, {name} of {node}")));
        }
    }
    calls
}
