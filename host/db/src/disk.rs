//! Free space on the disk of the database. Below a reserve, writes are refused, so that those of
//! deletions and of the reconciler still find room.

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wharf_domain::error::Error;

/// The time for which a measurement is used.
const FRESH: Duration = Duration::from_millis(500);

/// The disk of the database.
#[derive(Default)]
pub struct Disk {
    dir: PathBuf,
    reserve: u64,
    measured: Mutex<Option<Measured>>,
    refusals: Counter,
}

#[derive(Clone, Copy)]
struct Measured {
    at: Instant,
    free: u64,
    low: bool,
}

impl Disk {
    /// The disk of a directory, with a reserve in MiB.
    pub(super) fn new(dir: PathBuf, reserve_mib: u64) -> Self {
        Self {
            dir,
            reserve: reserve_mib.saturating_mul(1 << 20),
            ..Self::default()
        }
    }

    /// Fails if less than the reserve is free.
    pub(super) fn admit(&self) -> Result<(), Error> {
        // Without a reserve nothing is measured.
        if self.reserve > 0 && self.is_low() {
            self.refusals.inc();
            return Err(Error::DiskFull);
        }
        Ok(())
    }

    /// The number of writes that were refused.
    pub fn refusals(&self) -> Counter {
        self.refusals.clone()
    }

    /// The reserve in bytes.
    pub fn reserve(&self) -> u64 {
        self.reserve
    }

    /// Free bytes; none if the operating system does not say.
    pub fn free(&self) -> Option<u64> {
        self.measure().map(|measured| measured.free)
    }

    /// Whether less than the reserve is free.
    pub fn is_low(&self) -> bool {
        self.measure().is_some_and(|measured| measured.low)
    }

    fn measure(&self) -> Option<Measured> {
        let mut last = self.measured.lock();
        if let Some(fresh) = last.filter(|last| last.at.elapsed() < FRESH) {
            return Some(fresh);
        }
        let found = rustix::fs::statvfs(&self.dir).ok()?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let low = free < self.reserve;
        if low != last.is_some_and(|last| last.low) {
            let (free_mib, reserve_mib) = (free >> 20, self.reserve >> 20);
            if low {
                tracing::warn!(
                    free_mib,
                    reserve_mib,
                    "the disk of data_dir is nearly full: only changes that free something are taken"
                )
            } else {
                tracing::info!(free_mib, "the disk of data_dir has room again")
            }
        }
        let at = Instant::now();
        *last = Some(Measured { at, free, low });
        *last
    }
}
