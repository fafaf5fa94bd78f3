//! The file below redb: every page has a checksum, which each reading from the disk verifies.
//!
//! redb compares pages with its own checksums only when it repairs or checks a whole file. A byte that
//! the disk changed would otherwise be served: a row, the key of a row, or the number of rows of a page. So
//! the check is below the rows.
//!
//! The file has a page that names its format, and then groups: a page of checksums, and the pages that
//! they are for. Checksums reach the disk with their pages, in one sync. redb writes only to pages that no
//! commit has, so a crash between two syncs concerns no row. Its header is the exception. The
//! header's checksum is written when the file is closed, and is void while the file is open.
//!
//! redb refuses all work after an error of a reading. So a page that is damaged is handed to it as zeros,
//! which are no page of redb: a request that needs the page fails, and no other.

use super::scrub::Scrubs;
use parking_lot::Mutex;
use redb::{BackendError, StorageBackend};
use std::collections::BTreeSet;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first bytes of every file.
pub const MAGIC: &[u8; 9] = b"wharf\x1A\x0D\x0A\x01";

/// The size of a page in bytes, as redb has it.
pub const PAGE: u64 = 4096;
/// Checksums in a page.
const GROUP: u64 = PAGE / 4;
/// The place of the note about the header, which a closed file has: [`CLOSED`], the header's checksum, and
/// the checksum of both.
const NOTE: u64 = 512;
const NOTE_LENGTH: usize = 12;
const CLOSED: [u8; 4] = *b"shut";
/// The page of redb's header, which is written in place.
const HEADER: u64 = 0;

/// The pages of a file with their checksums.
#[derive(Debug)]
pub struct Pages {
    file: Box<dyn StorageBackend>,
    state: Mutex<PageSums>,
    /// Whether the file may have a note about its header.
    noted: AtomicBool,
    /// The metrics of scrubs of these pages.
    pub scrubs: Scrubs,
    /// Held while pages are written, and while the length changes.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
struct PageSums {
    /// The checksum of each page; 0 of one that was never written.
    sums: Vec<u32>,
    /// Whether each page was written or found right since the opening. If it is wrong later, the disk has
    /// changed it, and redb may have it in memory.
    known: Vec<bool>,
    /// Groups whose checksums are not on the disk.
    unwritten: BTreeSet<u64>,
    /// Pages that a reading found damaged.
    damaged: BTreeSet<u64>,
}

/// The pages as redb's storage.
#[derive(Debug, Clone)]
pub struct Checked(pub Arc<Pages>);

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The checksum of a page, which no other page with this content has.
fn sum(page: u64, content: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&page.to_le_bytes());
    sum.update(content);
    sum.finalize().max(1)
}

/// The place in the file of the checksums of a group.
fn sums_at(group: u64) -> u64 {
    PAGE + group * (GROUP + 1) * PAGE
}

/// The place in the file of a page.
fn page_at(page: u64) -> u64 {
    sums_at(page / GROUP) + PAGE + page % GROUP * PAGE
}

/// The length of a file with this number of pages.
fn length_of(pages: u64) -> u64 {
    PAGE + (pages + pages.div_ceil(GROUP)) * PAGE
}

/// The number of pages in a file of this length.
fn pages_in(length: u64) -> u64 {
    let slots = (length / PAGE).saturating_sub(1);
    slots - slots.div_ceil(GROUP + 1)
}

fn of_content(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl Pages {
    /// Opens a file, or makes an empty one the file of a new database. Fails if the file is of another
    /// program, or if its header is not the one with which it was closed.
    pub fn open(file: impl StorageBackend) -> io::Result<Arc<Self>> {
        let length = file.len()?;
        let mut state = PageSums::default();
        let mut magic = [0; MAGIC.len()];
        if length >= PAGE {
            file.read(0, &mut magic)?;
        }
        // A crash may leave the first page of a file that was being made without its content.
        let new = length == 0 || length == PAGE && magic == [0; MAGIC.len()];
        if new {
            file.set_len(PAGE)?;
            file.write(0, MAGIC)?;
            file.sync_data()?;
        } else if magic != *MAGIC {
            return Err(of_content("it is not a file of Wharf".to_owned()));
        } else {
            let pages = pages_in(length);
            let mut bytes = vec![0; index(PAGE)];
            for group in 0..pages.div_ceil(GROUP) {
                file.read(sums_at(group), &mut bytes)?;
                let (sums, _) = bytes.as_chunks();
                let sums = sums.iter().map(|sum| u32::from_le_bytes(*sum));
                state.sums.extend(sums);
            }
            state.sums.truncate(index(pages));
            state.known.resize(index(pages), false);
        }
        let found = Self {
            file: Box::new(file),
            state: Mutex::new(state),
            noted: AtomicBool::new(!new),
            scrubs: Scrubs::default(),
            writing: Mutex::default(),
        };
        found.check_header()?;
        Ok(Arc::new(found))
    }

    /// The number of pages.
    pub fn count(&self) -> u64 {
        self.state.lock().sums.len() as u64
    }

    /// The number of pages that readings found damaged, and that were not written since.
    pub fn damaged(&self) -> usize {
        self.state.lock().damaged.len()
    }

    /// Whether a page on the disk has its checksum, or none. Reports a page that was right before.
    pub fn is_right(&self, page: u64) -> io::Result<bool> {
        let mut content = vec![0; index(PAGE)];
        let mut matches = || -> io::Result<bool> {
            // The file may have become shorter.
            if page >= self.count() {
                return Ok(true);
            }
            self.file.read(page_at(page), &mut content)?;
            Ok(page == HEADER || self.state.lock().matches(page, &content))
        };
        // A write may be under way the first time.
        if matches!(matches(), Ok(true)) {
            return Ok(true);
        }
        let _writing = self.writing.lock();
        let right = matches()?;
        let known = self.state.lock().known.get(index(page)) == Some(&true);
        if !right && known {
            self.report(page);
        }
        Ok(right)
    }

    fn header_sum(&self) -> io::Result<u32> {
        let mut header = vec![0; index(PAGE)];
        if self.count() > HEADER {
            self.file.read(page_at(HEADER), &mut header)?;
        }
        Ok(sum(HEADER, &header))
    }

    fn check_header(&self) -> io::Result<()> {
        let mut note = [0; NOTE_LENGTH];
        self.file.read(NOTE, &mut note)?;
        let Some((closed, check)) = note.split_last_chunk() else {
            return Ok(());
        };
        // Without a valid note the file was not closed, and redb checks its header itself.
        if u32::from_le_bytes(*check) != sum(HEADER, closed) || !closed.starts_with(&CLOSED) {
            return Ok(());
        }
        if closed.ends_with(&self.header_sum()?.to_le_bytes()) {
            Ok(())
        } else {
            Err(of_content(
                "its header does not have its checksum".to_owned(),
            ))
        }
    }

    /// Makes the note about the header void before the first write.
    fn drop_note(&self) -> io::Result<()> {
        if self.noted.load(Ordering::Acquire) {
            self.file.write(NOTE, &[0; NOTE_LENGTH])?;
            self.file.sync_data()?;
            self.noted.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Notes the header of a file that is closed.
    fn note(&self) -> io::Result<()> {
        if self.noted.load(Ordering::Acquire) {
            return Ok(());
        }
        self.sync()?;
        let mut note = [CLOSED, self.header_sum()?.to_le_bytes()].concat();
        note.extend(sum(HEADER, &note).to_le_bytes());
        self.file.write(NOTE, &note)?;
        self.file.sync_data()
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        while let Some(group) = state.unwritten.pop_first() {
            let from = index(group * GROUP);
            let sums = state.sums.iter().skip(from).take(index(GROUP));
            let mut bytes: Vec<u8> = sums.flat_map(|sum| sum.to_le_bytes()).collect();
            bytes.resize(index(PAGE), 0);
            if let Err(error) = self.file.write(sums_at(group), &bytes) {
                state.unwritten.insert(group);
                return Err(error);
            }
        }
        drop(state);
        self.file.sync_data()
    }

    /// Reads whole pages of one group. Returns the first one that is damaged.
    fn read_run(&self, first: u64, out: &mut [u8]) -> io::Result<Option<u64>> {
        self.file.read(page_at(first), out)?;
        let mut state = self.state.lock();
        let mut pages = (first..).zip(out.chunks(index(PAGE)));
        let wrong = pages.find(|(page, content)| *page != HEADER && !state.matches(*page, content));
        Ok(wrong.map(|(page, _)| page))
    }

    fn count_damaged(&self) {
        let damaged = self.damaged();
        self.scrubs
            .damaged
            .set(i64::try_from(damaged).unwrap_or(i64::MAX));
    }

    fn report(&self, page: u64) {
        let new = self.state.lock().damaged.insert(page);
        self.count_damaged();
        if new {
            tracing::error!(
                page,
                offset = page_at(page),
                "a page of the database does not have its checksum: rows in it are not served; see what \
                 `wharf fsck` finds, and restore a backup with `wharf restore`"
            );
        }
    }

    fn write_run(&self, first: u64, content: &[u8]) -> io::Result<()> {
        let _writing = self.writing.lock();
        let pages = (first..).zip(content.chunks(index(PAGE)));
        let sums: Vec<_> = pages
            .map(|(page, content)| (page, sum(page, content)))
            .collect();
        let mut state = self.state.lock();
        let damaged = state.damaged.len();
        for (page, sum) in sums.into_iter().filter(|(page, _)| *page != HEADER) {
            state.set(page, sum);
        }
        let mended = state.damaged.len() < damaged;
        drop(state);
        if mended {
            self.count_damaged();
        }
        self.file.write(page_at(first), content)
    }
}

impl PageSums {
    fn matches(&mut self, page: u64, content: &[u8]) -> bool {
        let right = match self.sums.get(index(page)) {
            Some(0) => content.iter().all(|byte| *byte == 0),
            Some(expected) => *expected == sum(page, content),
            None => false,
        };
        if right {
            self.know(page);
        }
        right
    }

    fn know(&mut self, page: u64) {
        if let Some(known) = self.known.get_mut(index(page)) {
            *known = true;
        }
    }

    fn set(&mut self, page: u64, sum: u32) {
        if let Some(place) = self.sums.get_mut(index(page)) {
            *place = sum;
            self.know(page);
            self.unwritten.insert(page / GROUP);
            self.damaged.remove(&page);
        }
    }

    fn resize(&mut self, pages: u64) {
        let before = self.sums.len() as u64;
        self.sums.resize(index(pages), 0);
        self.known.resize(index(pages), false);
        // Pages that were cut off must not come back with their checksums.
        if pages < before && pages > 0 {
            self.unwritten.retain(|group| group * GROUP < pages);
            self.unwritten.insert((pages - 1) / GROUP);
        }
        self.damaged.retain(|page| *page < pages);
    }
}

/// The parts of a range of bytes that are in pages of one group: the first page, and the bytes.
fn runs(offset: u64, length: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let (mut page, mut at) = (offset / PAGE, 0);
    std::iter::from_fn(move || {
        let left = length.checked_sub(at).filter(|left| *left > 0)?;
        let here = index((GROUP - page % GROUP) * PAGE).min(left);
        let run = (page, at..at + here);
        page += (here as u64).div_ceil(PAGE);
        at += here;
        Some(run)
    })
}

/// Whether a range of bytes is of whole pages.
fn is_whole(offset: u64, length: usize) -> bool {
    offset.is_multiple_of(PAGE) && (length as u64).is_multiple_of(PAGE)
}

fn not_whole() -> io::Error {
    io::Error::other("redb asked for a part of a page")
}

impl StorageBackend for Checked {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.count() * PAGE)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let pages = &self.0;
        if offset + out.len() as u64 > pages.count() * PAGE {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if offset / PAGE == HEADER && offset + out.len() as u64 <= PAGE {
            return pages.file.read(page_at(HEADER) + offset, out);
        }
        if !is_whole(offset, out.len()) {
            return Err(not_whole());
        }
        let mut damaged = None;
        for (first, run) in runs(offset, out.len()) {
            let Some(out) = out.get_mut(run) else { break };
            // A second reading may succeed where the disk was at fault once.
            if pages.read_run(first, out)?.is_some() {
                damaged = damaged.or(pages.read_run(first, out)?);
            }
        }
        if let Some(page) = damaged {
            pages.report(page);
            out.fill(0);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if !len.is_multiple_of(PAGE) {
            return Err(not_whole());
        }
        self.0.drop_note()?;
        let _writing = self.0.writing.lock();
        self.0.file.set_len(length_of(len / PAGE))?;
        self.0.state.lock().resize(len / PAGE);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let pages = &self.0;
        if offset + data.len() as u64 > pages.count() * PAGE {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        pages.drop_note()?;
        if offset / PAGE == HEADER && offset + data.len() as u64 <= PAGE {
            return pages.file.write(page_at(HEADER) + offset, data);
        }
        if !is_whole(offset, data.len()) {
            return Err(not_whole());
        }
        for (first, run) in runs(offset, data.len()) {
            pages.write_run(first, data.get(run).unwrap_or_default())?;
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        let noted = self.0.note();
        self.0.file.close()?;
        noted
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.0.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.query_lock_range(start, end)
    }
}
