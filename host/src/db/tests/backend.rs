//! A disk in memory whose power can be cut: what was synced stays, of the rest any part may.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// Shared, so that a test holds it beside the database.
#[derive(Debug, Clone, Default)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Since the last sync: length changes and writes, in order.
    pending: Vec<Pending>,
    syncs: u64,
    writes_left: Option<u64>,
}

#[derive(Debug, Clone)]
enum Pending {
    Length(usize),
    Write(usize, Vec<u8>),
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// After so many more writes nothing works any more.
    pub fn cut_after(&self, writes: u64) {
        self.state().writes_left = Some(writes);
    }

    /// What is found when the power is back: the synced bytes, and of the later writes those that
    /// `seed` chooses.
    pub fn after_the_cut(&self, seed: u64) -> Self {
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
                    bytes[*offset..end].copy_from_slice(data);
                }
                Pending::Write(..) => {}
            }
        }
        Self(Arc::new(Mutex::new(State {
            now: bytes.clone(),
            synced: bytes,
            ..State::default()
        })))
    }
}

impl State {
    fn spend(&mut self) -> io::Result<()> {
        match &mut self.writes_left {
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

impl redb::StorageBackend for Disk {
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
        let mut state = self.state();
        state.spend()?;
        state.now.resize(at(len), 0);
        state.pending.push(Pending::Length(at(len)));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        state.spend()?;
        state.synced = state.now.clone();
        state.pending.clear();
        state.syncs += 1;
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        state.spend()?;
        let from = at(offset);
        state.now[from..from + data.len()].copy_from_slice(data);
        state.pending.push(Pending::Write(from, data.to_vec()));
        Ok(())
    }
}
