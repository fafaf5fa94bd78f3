//! The harness of the tests on real engines. A suite starts its engine once for many tests, and lanes of suites
//! run beside each other.

use crate::trials::is_wanted;
use anyhow::{Result, anyhow};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use wharf_testkit::progress::skipped;

/// The variable that selects every test on every engine, with all points of kills.
pub const ALL: &str = "WHARF_TEST_ALL";
/// How often an engine is supervised.
const SUPERVISE_EVERY: Duration = Duration::from_secs(1);
/// The name of the trial that is the end of an engine.
const END: &str = "the_engine_is_removed_without_a_trace";

/// Whether a whole run was asked for.
pub fn is_whole_run() -> bool {
    std::env::var_os(ALL).is_some()
}

/// A test with a shared context, such as an engine.
pub type BoxedTest<C> = Box<dyn Fn(&C) -> Result<()> + Send + Sync>;

/// Tests that share more than the engine. They run in their order, on one thread.
pub type Chain<C> = Vec<(String, BoxedTest<C>)>;

/// The tests of one engine.
pub struct Suite<C> {
    /// The name of the engine, with which the names of its tests begin.
    pub kind: String,
    /// Starts the engine.
    pub start: Box<dyn FnOnce() -> Result<C> + Send>,
    /// Starts a daemon again that has crashed, as a service manager does.
    pub supervise: Box<dyn Fn(&C) + Send + Sync>,
    /// Ends it, and checks that nothing is left.
    pub stop: Box<dyn FnOnce(C) -> Result<()> + Send>,
    /// Numbers of threads, each with the tests that they run. One part follows the other.
    pub parts: Vec<(usize, Vec<Chain<C>>)>,
}

/// The receivers of outcomes, by the names of trials.
type Outcomes = HashMap<String, Sender<Result<(), Failed>>>;

/// A suite of any engine.
pub trait Run: Send {
    /// Drops the tests that the command line does not select, and returns the names of all others.
    fn select(&mut self, arguments: &Arguments) -> Vec<String>;
    /// Runs the tests.
    fn run(self: Box<Self>, outcomes: &Outcomes);
}

impl<C: Sync> Suite<C> {
    fn name(&self, test: &str) -> String {
        format!("{}::{test}", self.kind)
    }
}

impl<C: Sync> Run for Suite<C> {
    fn select(&mut self, arguments: &Arguments) -> Vec<String> {
        let mut names = Vec::new();
        let end = self.name(END);
        let (kind, chains) = (
            &self.kind,
            self.parts.iter_mut().flat_map(|part| &mut part.1),
        );
        for chain in chains {
            chain.retain(|(name, _)| is_wanted(arguments, &format!("{kind}::{name}")));
            names.extend(chain.iter().map(|(name, _)| format!("{kind}::{name}")));
        }
        // A single test has the outcome of the end too.
        if is_wanted(arguments, &end) || !(names.is_empty() || arguments.exact) {
            names.push(end);
        }
        names
    }

    fn run(self: Box<Self>, outcomes: &Outcomes) {
        let end = self.name(END);
        let Self {
            kind,
            start,
            supervise,
            stop,
            parts,
        } = *self;
        let is_single = !outcomes.contains_key(&end);
        let tests = parts.iter().flat_map(|part| &part.1).flatten();
        let names: Vec<_> = tests.map(|(name, _)| format!("{kind}::{name}")).collect();
        if is_single && names.is_empty() {
            return;
        }
        let tell = |name: &str, outcome: Result<()>| {
            // The list of failures comes at the end only.
            let outcome = outcome.map_err(|error| {
                let why = format!("{error:#}");
                println!("failure of {name}: {why}");
                Failed::from(why)
            });
            if let Some(sender) = outcomes.get(name) {
                let _ = sender.send(outcome);
            }
        };
        let (context, took) = timed(start);
        println!("{took:>6.1} s  start of {kind}");
        let context = match context {
            Ok(context) => context,
            Err(error) => {
                let why = || anyhow!("{kind} does not start: {error:#}");
                names
                    .iter()
                    .chain([&end])
                    .for_each(|name| tell(name, Err(why())));
                return;
            }
        };
        let held = Mutex::new(Ok(()));
        thread::scope(|scope| {
            let (_tests, end) = channel::<()>();
            let context = &context;
            scope.spawn(move || {
                while end.recv_timeout(SUPERVISE_EVERY) == Err(RecvTimeoutError::Timeout) {
                    supervise(context);
                }
            });
            for (threads, chains) in parts {
                run_part(threads, chains, |name, test| {
                    let name = format!("{kind}::{name}");
                    let (outcome, took) = timed(|| test(context));
                    println!("{took:>6.1} s  {name}");
                    if is_single {
                        *lock(&held) = outcome
                    } else {
                        tell(&name, outcome)
                    }
                });
            }
        });
        let (stopped, took) = timed(|| stop(context));
        println!("{took:>6.1} s  end of {kind}");
        match names.first().filter(|_| is_single) {
            Some(name) => {
                let held = held.into_inner().unwrap_or_else(PoisonError::into_inner);
                tell(name, held.and(stopped));
            }
            None => tell(&end, stopped),
        }
    }
}

/// Runs chains on threads.
fn run_part<C>(threads: usize, chains: Vec<Chain<C>>, run: impl Fn(&str, BoxedTest<C>) + Sync) {
    let queue = Mutex::new(VecDeque::from(chains));
    let next = || lock(&queue).pop_front();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(chain) = next() {
                    chain.into_iter().for_each(|(name, test)| run(&name, test));
                }
            });
        }
    });
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls it, and returns the seconds that it took.
fn timed<T>(call: impl FnOnce() -> Result<T>) -> (Result<T>, f64) {
    let begin = Instant::now();
    let caught = catch_unwind(AssertUnwindSafe(call));
    let outcome = caught.unwrap_or_else(|_| Err(anyhow!("it panicked; the message is above")));
    (outcome, begin.elapsed().as_secs_f64())
}

/// Runs lanes beside each other; within a lane, one suite follows the other. With one thread for tests, one
/// lane follows the other.
pub fn run(arguments: &Arguments, mut lanes: Vec<Vec<Box<dyn Run>>>) -> ExitCode {
    let (mut trials, mut outcomes) = (Vec::new(), Outcomes::new());
    for suite in lanes.iter_mut().flatten() {
        for name in suite.select(arguments) {
            let (sender, outcome) = channel();
            outcomes.insert(name.clone(), sender);
            let wait = move || {
                outcome
                    .recv()
                    .unwrap_or_else(|_| Err("it did not run".into()))
            };
            trials.push(Trial::test(name, wait));
        }
    }
    let mut whole = arguments.clone();
    (whole.filter, whole.skip) = (None, Vec::new());
    if arguments.list {
        return libtest_mimic::run(&whole, trials).exit_code();
    }
    if arguments.test_threads == Some(1) {
        lanes = vec![lanes.into_iter().flatten().collect()];
    }
    // Each thread only waits for the outcome of its trial.
    whole.test_threads = Some(trials.len().max(2));
    thread::scope(|scope| {
        for lane in lanes {
            let outcomes = &outcomes;
            scope.spawn(move || lane.into_iter().for_each(|suite| suite.run(outcomes)));
        }
        libtest_mimic::run(&whole, trials).exit_code()
    })
}

/// Reports that none of the tests can run. In continuous integration that is a failure.
pub fn skip(mut lanes: Vec<Vec<Box<dyn Run>>>) -> ExitCode {
    let all = lanes.iter_mut().flatten();
    let count: usize = all
        .map(|suite| suite.select(&Arguments::default()).len())
        .sum();
    skipped(&format!(
        "real engines need root on this machine; {count} tests did not run"
    ));
    match std::env::var_os("CI") {
        Some(_) => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    }
}
