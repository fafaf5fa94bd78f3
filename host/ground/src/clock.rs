//! Wharf's time, and that of the system's clock. Wharf's own follows the system's clock slowly, and ignores
//! its large steps. Bills are never recomputed, so the time of a wrong clock would stay on them. People and
//! other machines get the system's time, which is right as soon as the clock is set right.

use super::audit::record;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use wharf_config::ClockConfig;
use wharf_db::{Changes, CommitTimes, Db, Read as _, Rows as _, Table, View, tables};
use wharf_domain::audit::Origin;
use wharf_domain::error::Error;
use wharf_domain::time::{Timestamp, rfc3339};

tables! {
    /// The time at which the database was last in use.
    pub const CLOCK: Table<(), (), ClockRow> = Table::bounded(b't', 0, "One row", "Always");
}

/// The time at which the database was last in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockRow {
    pub at: Timestamp,
    /// Milliseconds since the boot of the machine.
    pub boot_ms: i64,
    /// The kernel's id of that boot.
    pub boot_id: String,
}

mod pace;

pub use pace::{Pace, Reading};

/// Where the kernel names the boot of this machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The clock of one process. Clones share it.
#[derive(Clone)]
pub struct Clock {
    pace: Arc<Mutex<Pace>>,
    boot_id: Arc<str>,
    source: Arc<dyn Fn() -> Reading + Send + Sync>,
}

/// The state of the clock, for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockState {
    /// Wharf's time.
    #[serde(with = "rfc3339")]
    pub now: Timestamp,
    /// The time of the system's clock.
    #[serde(with = "rfc3339")]
    pub system: Timestamp,
    /// Whether Wharf ignores the difference.
    pub refused: bool,
}

impl Clock {
    /// Starts at the system's time. [`Self::resume`] continues the time of the database.
    pub fn new(config: &ClockConfig) -> Self {
        let boot_id = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
        Self::of(config, boot_id.trim(), read)
    }

    /// A clock that reads these clocks of a machine, with the id of its boot.
    pub fn of(
        config: &ClockConfig,
        boot_id: &str,
        source: impl Fn() -> Reading + Send + Sync + 'static,
    ) -> Self {
        Self {
            pace: Arc::new(Mutex::new(Pace::new(config, source()))),
            boot_id: boot_id.into(),
            source: Arc::new(source),
        }
    }

    fn read(&self) -> Reading {
        (self.source)()
    }

    /// Continues from the time at which the database was last in use.
    pub fn resume(&self, db: &Db) -> Result<(), Error> {
        let (row, last_event) = db.read(|rows| {
            let row = rows.get(&CLOCK, ())?;
            let mut last = None;
            if row.is_none() {
                rows.each_instance(|instance| last = last.max(Some(instance.last_event_at)))?;
            }
            Ok((row, last))
        })?;
        match (row, last_event) {
            (Some(row), _) if !self.boot_id.is_empty() && row.boot_id == *self.boot_id => {
                let anchor = Reading {
                    wall: row.at,
                    boot: row.boot_ms,
                };
                self.pace.lock().continue_boot(anchor, self.read());
            }
            (Some(ClockRow { at, .. }), _) | (None, Some(at)) => {
                self.pace.lock().continue_after_gap(at, self.read());
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// Returns the time, which does not decrease unless [`Self::adopt`] sets it back.
    pub fn now(&self) -> Timestamp {
        self.pace.lock().now(self.read())
    }

    /// Returns Wharf's own time and that of the system's clock. They are equal while they differ by less
    /// than a second, so that records of one moment agree.
    pub fn times(&self) -> CommitTimes {
        let reading = self.read();
        let now = self.pace.lock().now(reading);
        let difference = reading.wall.0.saturating_sub(now.0);
        if difference.abs() < 1000 {
            CommitTimes::agreed(now)
        } else {
            CommitTimes {
                now,
                system: reading.wall,
            }
        }
    }

    /// Returns the time for people and for other machines.
    pub fn system(&self) -> Timestamp {
        self.times().system
    }

    /// Returns the time and the difference to the system's clock.
    pub fn state(&self) -> ClockState {
        let (reading, mut pace) = (self.read(), self.pace.lock());
        ClockState {
            now: pace.now(reading),
            system: reading.wall,
            refused: pace.refuses(reading),
        }
    }

    /// Sets Wharf's time to the system's clock, for the operator.
    pub async fn adopt(&self, db: &Db) -> Result<ClockState, Error> {
        let before = self.state();
        self.pace.lock().adopt(self.read());
        tracing::warn!(
            before = before.now.to_rfc3339(),
            now = before.system.to_rfc3339(),
            "the operator set Wharf's time to the system's clock"
        );
        let row = self.row();
        let adopted = db.write_essential(move |view| {
            let now = row.at.to_rfc3339();
            let origin = Origin::operator();
            let audited = record(view, &origin, "clock.adopt", None, "clock", &now);
            let changes = Changes::none().put(&CLOCK, (), row.clone());
            Ok(((), changes.with(audited)))
        });
        adopted.await?;
        Ok(self.state())
    }

    /// Notes the time in the database, from which the next start continues.
    pub async fn note(&self, db: &Db) -> Result<(), Error> {
        let row = self.row();
        let noted = move |_: &View<'_>| Ok(((), Changes::none().put(&CLOCK, (), row.clone())));
        db.write_essential(noted).await
    }

    fn row(&self) -> ClockRow {
        let reading = self.read();
        ClockRow {
            at: self.pace.lock().now(reading),
            boot_ms: reading.boot,
            boot_id: self.boot_id.to_string(),
        }
    }
}

/// Returns the time of the system's clock for signatures.
pub fn system_time() -> Timestamp {
    Timestamp(chrono::Utc::now().timestamp_millis())
}

/// Reads the wall clock, and the time since boot, which counts while the machine sleeps.
fn read() -> Reading {
    let boot = clock_gettime(ClockId::Boottime);
    Reading {
        wall: system_time(),
        boot: boot.tv_sec.saturating_mul(1000) + boot.tv_nsec / 1_000_000,
    }
}
