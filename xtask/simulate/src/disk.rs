//! The disk below the database: bytes in memory, with the faults of disks.
//!
//! What was synced stays. A crash keeps of each later write the sectors that the dice choose, in any
//! combination. A full disk refuses to become longer.

use crate::dice::Dice;
use parking_lot::Mutex;
use redb::StorageBackend;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// The bytes that a disk writes as a whole.
const SECTOR: usize = 512;

/// A disk. Clones share it, so that the simulation holds it beside the database.
#[derive(Debug, Clone, Default)]
pub struct SimDisk(Arc<Mutex<Platter>>);

#[derive(Debug, Default)]
struct Platter {
    /// The bytes that reads see.
    now: Vec<u8>,
    /// The bytes at the last sync.
    synced: Vec<u8>,
    /// The changes since then, in order.
    unsynced: Vec<Change>,
    fault: Option<DiskFault>,
    /// An operation has failed.
    failed: bool,
}

#[derive(Debug)]
enum Change {
    Length(usize),
    Write(usize, Vec<u8>),
}

/// A fault of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// After this many more operations nothing works any more, as in a crash of the machine.
    CutAfter(u64),
    /// After this many more operations the disk has no room.
    FullAfter(u64),
    /// The next sync fails. Its writes may be on the disk or not.
    SyncFails,
}

impl SimDisk {
    pub fn new() -> Self {
        Self::default()
    }

    fn of(bytes: Vec<u8>) -> Self {
        let disk = Self::new();
        {
            let mut platter = disk.0.lock();
            platter.synced.clone_from(&bytes);
            platter.now = bytes;
        }
        disk
    }

    /// Lets a fault happen, in place of an earlier one.
    pub fn strike(&self, fault: Option<DiskFault>) {
        self.0.lock().fault = fault;
    }

    /// Whether an operation has failed.
    pub fn has_failed(&self) -> bool {
        self.0.lock().failed
    }

    /// The disk after a kill of the process: it keeps what was written.
    pub fn after_kill(&self) -> Self {
        Self::of(self.0.lock().now.clone())
    }

    /// The disk after a crash of the machine. A write that no sync followed may be there, in parts or not at all.
    pub fn after_crash(&self, dice: &mut Dice) -> Self {
        let platter = self.0.lock();
        let mut bytes = platter.synced.clone();
        for change in &platter.unsynced {
            match change {
                Change::Length(length) => bytes.resize(*length, 0),
                Change::Write(offset, data) => {
                    // A third of the writes are there, a third are not, and of the others some sectors are.
                    let share = *dice.pick(&[0, 500, 1000]).unwrap_or(&0);
                    let sectors = data.chunks(SECTOR).enumerate();
                    for (n, sector) in sectors.filter(|_| dice.chance(share)) {
                        put(&mut bytes, offset + n * SECTOR, sector);
                    }
                }
            }
        }
        Self::of(bytes)
    }

    /// Changes one bit of a disk that no database has open. Returns its byte.
    pub fn flip_a_bit(&self, dice: &mut Dice) -> usize {
        let mut platter = self.0.lock();
        let at = usize::try_from(dice.below(platter.now.len() as u64)).unwrap_or_default();
        let bit = 1 << dice.below(8);
        let Platter { now, synced, .. } = &mut *platter;
        for bytes in [now, synced] {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= bit;
            }
        }
        at
    }
}

fn put(bytes: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    if let Some(place) = bytes.get_mut(offset..end) {
        place.copy_from_slice(data);
    }
}

fn at(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(io::Error::other)
}

impl Platter {
    /// Lets an operation pass, or fails by the fault.
    fn operate(&mut self, lengthens: bool) -> io::Result<()> {
        match &mut self.fault {
            Some(DiskFault::CutAfter(0)) => {
                self.failed = true;
                Err(io::Error::other("the disk is gone"))
            }
            Some(DiskFault::FullAfter(0)) if lengthens => {
                self.failed = true;
                Err(io::Error::new(ErrorKind::StorageFull, "no space is left"))
            }
            Some(DiskFault::CutAfter(left) | DiskFault::FullAfter(left)) => {
                *left = left.saturating_sub(1);
                Ok(())
            }
            Some(DiskFault::SyncFails) | None => Ok(()),
        }
    }
}

impl StorageBackend for SimDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let platter = self.0.lock();
        let from = at(offset)?;
        let found = platter.now.get(from..from + out.len());
        out.copy_from_slice(found.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let (mut platter, length) = (self.0.lock(), at(length)?);
        let lengthens = length > platter.now.len();
        platter.operate(lengthens)?;
        platter.now.resize(length, 0);
        platter.unsynced.push(Change::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut platter = self.0.lock();
        platter.operate(false)?;
        if platter.fault == Some(DiskFault::SyncFails) {
            platter.fault = None;
            platter.failed = true;
            return Err(io::Error::other("the sync failed"));
        }
        for change in std::mem::take(&mut platter.unsynced) {
            match change {
                Change::Length(length) => platter.synced.resize(length, 0),
                Change::Write(offset, data) => put(&mut platter.synced, offset, &data),
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (mut platter, from) = (self.0.lock(), at(offset)?);
        platter.operate(false)?;
        put(&mut platter.now, from, data);
        platter.unsynced.push(Change::Write(from, data.to_vec()));
        Ok(())
    }
}
