//! The time of a run. It goes on across the processes of Wharf, each of which has a tokio runtime with a paused
//! clock of its own, and it is the only source of all clocks of the simulated machine.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wharf_domain::time::Timestamp;
use wharf_ground::clock::Reading;

/// The wall clock at the begin of a run: 2026-01-30, so that a run of days has the end of a month.
const BEGIN: i64 = 1_769_731_200_000;

/// The time of a run. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SimTime(Arc<Mutex<Clocks>>);

#[derive(Debug, Default)]
struct Clocks {
    /// The time before the present process.
    before: Duration,
    /// The begin of the present process on the clock of its runtime.
    begun: Option<Instant>,
    /// The error of the wall clock in milliseconds.
    wall_off: i64,
    boots: u64,
    /// The time of the last boot.
    booted: Duration,
}

impl Clocks {
    fn now(&self) -> Duration {
        self.before + self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }
}

impl SimTime {
    pub fn new() -> Self {
        Self::default()
    }

    /// The time since the begin of the run.
    pub fn now(&self) -> Duration {
        self.0.lock().now()
    }

    /// Follows the clock of the runtime of a new process.
    pub fn enter(&self) {
        self.0.lock().begun = Some(Instant::now());
    }

    /// Leaves the runtime of a process that ends.
    pub fn leave(&self) {
        let mut clocks = self.0.lock();
        clocks.before = clocks.now();
        clocks.begun = None;
    }

    /// Sets the wall clock forward or back by milliseconds.
    pub fn step_wall(&self, millis: i64) {
        self.0.lock().wall_off += millis;
    }

    /// Time passes between two processes.
    pub fn pass(&self, span: Duration) {
        self.0.lock().before += span;
    }

    /// The machine boots. Its wall clock has the error that it had.
    pub fn boot(&self) {
        let mut clocks = self.0.lock();
        clocks.boots += 1;
        clocks.booted = clocks.now();
    }

    /// The id of the present boot.
    pub fn boot_id(&self) -> String {
        format!("boot-{}", self.0.lock().boots)
    }

    /// The clocks of the machine.
    pub fn reading(&self) -> Reading {
        let clocks = self.0.lock();
        let (now, boot) = (clocks.now(), clocks.now() - clocks.booted);
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Reading {
            wall: Timestamp(BEGIN + millis(now) + clocks.wall_off),
            boot: millis(boot),
        }
    }
}
