//! The run of a script with the faults of a seed, from the first process of Wharf to the last one.

use crate::dice::Dice;
use crate::disk::{DiskFault, SimDisk};
use crate::process::{self, Ended};
use crate::script::Script;
use crate::setup::{Setup, USERS};
use crate::sim::{EndOfProcess, Failure, Outside, ProcessEnd};
use crate::time::SimTime;
use crate::trace::Trace;
use crate::world::{FaultPlan, World};
use anyhow::Result;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};
use std::time::Duration;
use tokio::runtime::Builder;
use wharf_domain::ids::UserId;
use wharf_domain::scope::Scopes;
use wharf_ground::caller::{Caller, Credential};

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The first contradiction; none if there is none.
    pub failure: Option<String>,
    pub trace: Vec<String>,
}

/// After this many processes, driver calls end no more of them.
const CRASHES: u64 = 8;

/// The most processes of a run. Faults of the disk end with each.
const PROCESSES: u64 = 50;

/// The faults of a seed: none, few or many.
pub fn faults(seed: u64) -> FaultPlan {
    let mut dice = Dice::of_part(seed, "faults");
    let [faults, crashes] = *dice
        .pick(&[[0, 0], [5, 1], [30, 3], [120, 10]])
        .unwrap_or(&[0, 0]);
    FaultPlan::Random {
        dice,
        faults,
        crashes,
        left: 10,
    }
}

/// Runs the script of a seed.
pub fn seed(seed: u64) -> Result<Outcome> {
    script(seed, &Script::of_seed(seed), faults(seed))
}

thread_local! {
    /// The trace and the failure of the run on this thread, for panics.
    static RUNNING: RefCell<Option<Arc<Outside>>> = const { RefCell::new(None) };
}

/// Makes a panic on the thread of a run its failure.
fn catch_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let running = RUNNING.with_borrow(Clone::clone);
            let Some(outside) = running else {
                return others(panic);
            };
            // redb may panic on a disk that has failed and on a damaged file, and the database deals with it.
            let of_redb = panic
                .location()
                .is_some_and(|place| place.file().contains("/redb-"));
            let excused = outside.disk.lock().has_failed() || *outside.is_damaged.lock();
            if !(of_redb && excused) {
                outside.failure.set(panic.to_string());
            }
        }));
    });
}

/// Runs a script. The dice of the faults are those of the seed.
pub fn script(seed: u64, script: &Script, faults: FaultPlan) -> Result<Outcome> {
    catch_panics();
    let setup = Setup::shared()?;
    let time = SimTime::new();
    let trace = Trace::new(time.clone());
    let world = World::new(seed, setup.nodes(), faults, time.clone(), trace.clone());
    let outside = Arc::new(Outside {
        setup,
        seed,
        disk: Mutex::new(SimDisk::new()),
        copy: Mutex::default(),
        is_damaged: Mutex::new(false),
        world,
        model: Mutex::default(),
        trace: trace.clone(),
        time,
        received: Arc::default(),
        failure: Failure::default(),
        end: ProcessEnd::default(),
        config: Mutex::new(0),
        keys: Mutex::default(),
        users: users(),
        accepting: Mutex::default(),
        asks: Mutex::new(0),
        processes: Mutex::new(0),
    });
    let log = tracing_subscriber::fmt()
        .with_writer(trace)
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .finish();
    RUNNING.set(Some(Arc::clone(&outside)));
    let ran = tracing::subscriber::with_default(log, || {
        catch_unwind(AssertUnwindSafe(|| processes(&outside, script)))
    });
    RUNNING.set(None);
    match ran {
        Ok(Ok(())) => {}
        Ok(Err(error)) => outside.failure.set(format!("{error:#}")),
        Err(_) => outside.failure.set("the simulator panicked"),
    }
    Ok(Outcome {
        failure: outside.failure.get().map(|why| outside.trace.named(&why)),
        trace: outside.trace.lines(),
    })
}

fn processes(outside: &Arc<Outside>, script: &Script) -> Result<()> {
    let steps = Mutex::new(script.0.iter().copied().collect());
    let mut dice = Dice::of_part(outside.seed, "disk");
    loop {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        let within = runtime.enter();
        outside.time.enter();
        drop(within);
        let ended = runtime.block_on(process::run(outside, &steps));
        let in_order = matches!(ended, Ok(Ended::Done | Ended::By(EndOfProcess::Restart(_))));
        if matches!(ended, Ok(Ended::Lost)) && !outside.disk.lock().has_failed() {
            outside
                .failure
                .set("the database takes no more writes, and its disk has not failed");
        }
        if !in_order {
            // Nothing that is dropped now writes.
            outside.disk.lock().strike(Some(DiskFault::CutAfter(0)));
        }
        let within = runtime.enter();
        outside.time.leave();
        drop(within);
        drop(runtime);
        let ended = ended?;
        outside.trace.line("wharf", &format!("ends: {ended:?}"));
        if outside.failure.get().is_some() {
            return Ok(());
        }
        if ended == Ended::Done {
            flip_bits(outside, &mut dice);
            return Ok(());
        }
        let earlier = outside.copy.lock().clone();
        let earlier = earlier.filter(|_| ended == Ended::By(EndOfProcess::EarlierFile));
        if let Some((file, model)) = &earlier {
            *outside.disk.lock() = file.after_kill();
            let mut of = outside.model.lock();
            *of = model.clone();
            outside.world.truth(|truth| of.is_older(truth));
        }
        outside.model.lock().crashed(outside.time.now());
        outside.received.lock().forget_attempts();
        let mut disk = outside.disk.lock();
        *disk = match ended {
            Ended::By(EndOfProcess::PowerCut) => {
                outside.time.boot();
                disk.after_crash(&mut dice)
            }
            Ended::Lost => disk.after_crash(&mut dice),
            _ => disk.after_kill(),
        };
        drop(disk);
        if let Ended::By(EndOfProcess::SwitchOff(hours)) = ended {
            let span = Duration::from_hours(hours);
            outside.time.pass(span);
            outside.model.lock().was_off(span);
        }
        if let Ended::By(EndOfProcess::Restart(number)) = ended {
            *outside.config.lock() = number;
        }
        let mut count = outside.processes.lock();
        *count += 1;
        if *count == CRASHES {
            outside.world.end_crashes();
        }
        if *count >= PROCESSES {
            outside.failure.set("Wharf does not stay up");
            return Ok(());
        }
    }
}

/// The bits that are flipped after a run, each in a copy of its disk.
const FLIPS: usize = 4;

/// Checks that a bit of the file that changes at rest changes nothing that the database serves.
fn flip_bits(outside: &Outside, dice: &mut Dice) {
    let disk = outside.disk.lock().clone();
    *outside.is_damaged.lock() = true;
    for _ in 0..FLIPS {
        let open = |damaged| process::open(outside, damaged).map(|opened| opened.db);
        let survives = outside.model.lock().survives_a_flip(&disk, dice, open);
        if let Err(why) = survives {
            return outside.failure.set(why);
        }
    }
}

/// The users, as the checks see with their eyes.
fn users() -> Vec<Caller> {
    let user = |(id, email): (u64, &&str)| Caller {
        user: UserId(id),
        email: (**email).into(),
        key_id: "checks".into(),
        credential: Credential::Session,
        scopes: Scopes::ALL,
        expires_at: None,
        peer: None,
        request_id: "checks".into(),
    };
    (1..).zip(&USERS).map(user).collect()
}
