//! A file in memory whose power can be cut: what was synced stays, of the rest any part may.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// The disk. Clones share it, so that a test holds it beside the database.
#[derive(Debug, Clone, Default)]
pub struct FakeDisk {
    state: Arc<Mutex<DiskState>>,
    power: Arc<Mutex<Power>>,
}

#[derive(Debug, Default)]
struct DiskState {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Since the last sync: length changes and writes, in order.
    pending: Vec<Pending>,
    syncs: u64,
}

#[derive(Debug, Default)]
struct Power {
    writes_left: Option<u64>,
    /// It comes back with the next write.
    flickers: bool,
    /// The next sync fails, and what it was to keep may be there or not.
    loses_a_sync: bool,
    /// The next sync panics.
    panics: bool,
}

#[derive(Debug, Clone)]
enum Pending {
    Length(usize),
    Write(usize, Vec<u8>),
}

impl FakeDisk {
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap()
    }

    fn power(&self) -> MutexGuard<'_, Power> {
        self.power.lock().unwrap()
    }

    pub fn begins_with(&self, bytes: &[u8]) -> bool {
        self.state().now.starts_with(bytes)
    }

    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// After this many more writes nothing works any more.
    pub fn cut_after(&self, writes: u64) {
        self.power().writes_left = Some(writes);
    }

    /// The next write fails, and those after it do not.
    pub fn fail_once(&self) {
        self.power().flickers = true;
    }

    /// The next sync fails, and those after it do not.
    pub fn fail_a_sync(&self) {
        self.power().loses_a_sync = true;
    }

    /// The next sync panics, as a library with a fault does.
    pub fn panic_at_a_sync(&self) {
        self.power().panics = true;
    }

    /// The disk when the power is back: the synced bytes, and of the later writes those that
    /// `seed` chooses.
    pub fn after_the_cut(&self, seed: u64) -> Self {
        Self::of(self.bytes_after_the_cut(seed))
    }

    /// A disk with a file.
    pub fn of(bytes: Vec<u8>) -> Self {
        let found = Self::new();
        found.state().synced = bytes.clone();
        found.state().now = bytes;
        found
    }

    fn bytes_after_the_cut(&self, seed: u64) -> Vec<u8> {
        let state = self.state();
        let mut bytes = state.synced.clone();
        let mut random = seed | 1;
        for pending in &state.pending {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            match pending {
                Pending::Length(length) => bytes.resize(*length, 0),
                Pending::Write(offset, data) if random >> 63 == 1 => {
                    let end = offset + data.len();
                    if bytes.len() < end {
                        bytes.resize(end, 0);
                    }
                    // Nor need one be there as a whole.
                    let kept = match random >> 62 & 1 {
                        0 => data.len(),
                        _ => data.len() / 2,
                    };
                    bytes[*offset..offset + kept].copy_from_slice(&data[..kept]);
                }
                Pending::Write(..) => {}
            }
        }
        bytes
    }

    fn spend(&self) -> io::Result<()> {
        let mut power = self.power();
        if std::mem::take(&mut power.flickers) {
            return Err(io::Error::other("the power flickers"));
        }
        match &mut power.writes_left {
            Some(0) => Err(io::Error::other("the power is gone")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

impl redb::StorageBackend for FakeDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        let from = at(offset);
        out.copy_from_slice(&state.now[from..from + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.spend()?;
        let mut state = self.state();
        state.now.resize(at(len), 0);
        state.pending.push(Pending::Length(at(len)));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.spend()?;
        let panics = std::mem::take(&mut self.power().panics);
        assert!(!panics, "as it was told to");
        if std::mem::take(&mut self.power().loses_a_sync) {
            return Err(io::Error::other("not kept"));
        }
        let mut state = self.state();
        state.synced = state.now.clone();
        state.pending.clear();
        state.syncs += 1;
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.spend()?;
        let mut state = self.state();
        let from = at(offset);
        state.now[from..from + data.len()].copy_from_slice(data);
        state.pending.push(Pending::Write(from, data.to_vec()));
        Ok(())
    }
}
