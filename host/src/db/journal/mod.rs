//! What was committed since the database's file last was brought up to date.
//!
//! To sync a few hundred bytes at the end of the last ones takes a fraction of the time in which redb
//! makes a commit durable, which writes a page of each tree it touched. So a commit is durable when its
//! record is synced here; redb has it in memory then, where readers see it, and in its file with its
//! next durable commit: a checkpoint. After a crash the records since then are applied again.
//!
//! Every checkpoint begins an epoch, and every opening of the database a session, which has a random
//! number. The database says which ones it is in, and records from the journal's start count as long
//! as they are of these and whole. So older records are overwritten without having been removed, also
//! those of a time that an older copy of the database has undone; and a record that was cut short,
//! which nobody was told of, is the end.

mod record;
mod storage;

pub use record::{Record, Step, steps};
pub use storage::{Storage, open};

use super::tables::NO_SESSION;
use crate::domain::error::Error;
use crc32fast::Hasher;
use memchr::memmem::Finder;
use std::io;

/// How long a journal becomes before a checkpoint begins it anew: that much is applied again after a
/// crash, in a second or two.
pub const LIMIT: u64 = 64 << 20;
/// A journal is lengthened by zeros, this many at a time: writing over bytes that are there needs
/// nothing but those bytes on the disk.
const STRETCH: u64 = 256 << 10;
/// And that page by page: what was written in one go the kernel keeps, and writes, in one piece.
const PAGE: u64 = 4 << 10;
/// So much is looked through at a time for what should not be there.
const PIECE: usize = 1 << 20;
/// Epoch, session and length of a record, and the checksum over them and what follows.
const HEAD: usize = 8 + 8 + 4 + 4;

/// Records on a disk.
pub struct Journal {
    storage: Box<dyn Storage>,
    limit: u64,
    /// No record of another database is taken for one of this.
    installation: u128,
    period: Period,
    /// Records of this period.
    count: u64,
    /// Where the next begins.
    end: u64,
    length: u64,
    /// It was said that it cannot be lengthened.
    told: bool,
}

/// What records are of, in the journal as in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// How many checkpoints there were.
    pub epoch: u64,
    /// Since which opening.
    pub session: u64,
}

impl Period {
    fn to_bytes(self) -> Vec<u8> {
        [self.epoch, self.session].map(u64::to_le_bytes).concat()
    }
}

/// Why there is nothing to continue from.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It goes on from another state of the database.
    #[error(
        "it goes on from another state of the database (epoch {found}) than this one (epoch {epoch}). \
         Was an older copy of the database put back? The journal of that copy belongs to it; if there \
         is none, put an empty file in its place, and what was written since that copy is gone"
    )]
    Another {
        /// In the journal.
        found: u64,
        /// In the database.
        epoch: u64,
    },
    /// A record is not as it was written, and others follow.
    #[error(
        "the record at byte {0} is damaged, and others follow: the disk has not kept it. Put a backup \
         in the place of both files, or an empty file in the journal's, and what was written since the \
         database's last checkpoint is gone"
    )]
    Damaged(u64),
    /// A record cannot be applied, or the database not be written.
    #[error("{0}")]
    Apply(#[from] Error),
}

struct Head {
    period: Period,
    length: u32,
    checksum: u32,
}

impl Head {
    fn from_bytes(bytes: [u8; HEAD]) -> Self {
        let (epoch, rest) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let (session, rest) = rest.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let (length, rest) = rest.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let (checksum, _) = rest.split_first_chunk().unwrap_or((&[0; 4], &[]));
        Self {
            period: Period {
                epoch: u64::from_le_bytes(*epoch),
                session: u64::from_le_bytes(*session),
            },
            length: u32::from_le_bytes(*length),
            checksum: u32::from_le_bytes(*checksum),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let [length, checksum] = [self.length, self.checksum].map(u32::to_le_bytes);
        [&self.period.to_bytes()[..], &length, &checksum].concat()
    }

    /// Head and record.
    fn whole_length(&self) -> u64 {
        HEAD as u64 + u64::from(self.length)
    }
}

impl Journal {
    /// One that is kept there, up to so many bytes, of a database that is in this period.
    pub fn new(
        storage: Box<dyn Storage>,
        limit: u64,
        installation: u128,
        period: Period,
    ) -> io::Result<Self> {
        let length = storage.length()?;
        Ok(Self {
            storage,
            limit,
            installation,
            period,
            count: 0,
            end: 0,
            length,
            told: false,
        })
    }

    /// The period after the next checkpoint.
    pub fn next(&self) -> Period {
        let Period { epoch, session } = self.period;
        let epoch = epoch + 1;
        Period { epoch, session }
    }

    /// Whether the database has everything.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Hands out the records of this period; how many there were.
    pub fn replay(
        &mut self,
        mut apply: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<u64, ReplayError> {
        let Period { epoch, .. } = self.period;
        while let Some((head, Some(bytes))) = self.read(self.end)? {
            if head.period != self.period {
                let found = head.period.epoch;
                if found >= epoch && self.count == 0 {
                    return Err(ReplayError::Another { found, epoch });
                }
                break;
            }
            apply(&bytes)?;
            self.count += 1;
            self.end += head.whole_length();
        }
        Ok(self.count)
    }

    /// After the last one that was replayed: one that was cut short is the last. Where a whole one of this
    /// period follows, wherever it begins, what is before it was whole once.
    pub fn expect_the_end(&self) -> Result<(), ReplayError> {
        if self.period.session == NO_SESSION {
            // Of a database that had no journal.
            return Ok(());
        }
        let period = self.period.to_bytes();
        let finder = Finder::new(&period);
        let mut at = self.end;
        while let Some(length) = self
            .length
            .checked_sub(at)
            .filter(|left| *left > HEAD as u64)
        {
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(PIECE).min(PIECE)];
            self.storage.read(at, &mut bytes)?;
            for found in finder.find_iter(&bytes) {
                if let Some((_, Some(_))) = self.read(at + found as u64)? {
                    return Err(ReplayError::Damaged(self.end));
                }
            }
            // What is found may lie across two pieces.
            at += (bytes.len() - period.len() + 1) as u64;
        }
        Ok(())
    }

    /// A head, if there is room for one, with the record that follows, if it is whole.
    fn read(&self, at: u64) -> io::Result<Option<(Head, Option<Vec<u8>>)>> {
        let left = self.length.saturating_sub(at);
        let Some(left) = left.checked_sub(HEAD as u64) else {
            return Ok(None);
        };
        let mut head = [0; HEAD];
        self.storage.read(at, &mut head)?;
        let head = Head::from_bytes(head);
        if u64::from(head.length) > left {
            return Ok(Some((head, None)));
        }
        let mut bytes = vec![0; head.length as usize];
        self.storage.read(at + HEAD as u64, &mut bytes)?;
        let whole = head.checksum == self.checksum(&head, &bytes);
        Ok(Some((head, whole.then_some(bytes))))
    }

    /// Whether one more record of this length fits; room is made for it.
    pub fn has_room(&mut self, record: &Record) -> bool {
        let Ok(length) = u32::try_from(record.bytes().len()) else {
            return false;
        };
        let end = self.end + HEAD as u64 + u64::from(length);
        if end > self.limit {
            return false;
        }
        if end <= self.length {
            return true;
        }
        let lengthened = self.lengthen((end + STRETCH).min(self.limit));
        if let Err(error) = &lengthened
            && !self.told
        {
            tracing::warn!(%error, "the journal cannot be lengthened; writes are slower without it");
        }
        self.told = lengthened.is_err();
        lengthened.is_ok()
    }

    fn lengthen(&mut self, length: u64) -> io::Result<()> {
        let zeros = vec![0; PAGE as usize];
        while self.length < length {
            self.storage.write(self.length, &zeros)?;
            self.length += PAGE;
        }
        Ok(())
    }

    /// Writes a record that it has room for. When this returns, it holds.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        let bytes = record.bytes();
        let mut head = Head {
            period: self.period,
            length: u32::try_from(bytes.len()).map_err(io::Error::other)?,
            checksum: 0,
        };
        head.checksum = self.checksum(&head, bytes);
        let whole = [&head.to_bytes()[..], bytes].concat();
        self.storage.write(self.end, &whole)?;
        self.storage.sync()?;
        self.count += 1;
        self.end += whole.len() as u64;
        Ok(())
    }

    /// The database has all of it, and is in this period.
    pub fn restart(&mut self, period: Period) {
        self.period = period;
        self.count = 0;
        self.end = 0;
    }

    /// Leaves nothing that could be read, after a restart: the database can be replaced by a copy of it
    /// from another day.
    pub fn clear(&mut self) -> io::Result<()> {
        if self.length > 0 {
            self.storage.write(0, &[0; HEAD])?;
            self.storage.sync()?;
        }
        Ok(())
    }

    fn checksum(&self, head: &Head, bytes: &[u8]) -> u32 {
        let mut hasher = Hasher::new();
        hasher.update(&self.installation.to_le_bytes());
        hasher.update(&head.period.to_bytes());
        hasher.update(&head.length.to_le_bytes());
        hasher.update(bytes);
        hasher.finalize()
    }
}
