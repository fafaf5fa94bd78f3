//! The scrub reads every page of the file, so that damage is found before a backup is too old to mend it.

use super::Db;
use super::careful::Careful;
use super::codec::internal;
use super::tree::{ReadRows, Rows as _};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use wharf_domain::error::Error;
use wharf_domain::time::Timestamp;

/// Pages between two pauses.
const PAGES: u64 = 256;
/// Rows between two pauses, which are usually in about as many pages.
const ROWS: usize = 2048;

/// The result of a scrub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scrubbed {
    /// Pages that were read.
    pub pages: u64,
    /// Pages that are damaged, of which at least one was right before or has rows of the last commit.
    pub damaged: usize,
    /// Pages without their checksum of which none has a row. A crash leaves some.
    pub remains: usize,
}

/// The metrics of scrubs.
#[derive(Debug, Default)]
pub struct Scrubs {
    /// Pages of the file.
    pages: Gauge,
    /// Pages that the scrub under way has read, or the last one.
    read: Gauge,
    /// The end of the last complete scrub, in seconds since 1970.
    ended: Gauge,
    /// Pages that are known to be damaged.
    pub(super) damaged: Gauge,
}

impl Scrubs {
    fn register(&self, registry: &mut Registry) {
        for (name, help, gauge) in [
            ("db_pages", "Pages of the database's file", &self.pages),
            (
                "db_scrub_pages",
                "Pages that the scrub under way has read, or the last one",
                &self.read,
            ),
            (
                "db_scrub_end_timestamp_seconds",
                "End of the last complete scrub; 0 before the first one",
                &self.ended,
            ),
            (
                "db_damaged_pages",
                "Pages of the database that were found damaged and not written since",
                &self.damaged,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
    }
}

fn number(pages: u64) -> i64 {
    i64::try_from(pages).unwrap_or(i64::MAX)
}

impl Db {
    /// Adds the metrics of scrubs to a registry.
    pub fn register_scrubs(&self, registry: &mut Registry) {
        if let Some(pages) = &self.pages {
            pages.scrubs.register(registry);
        }
    }

    /// The number of pages that were found damaged since the opening, and not written since.
    pub fn damaged_pages(&self) -> usize {
        self.pages.as_ref().map_or(0, |pages| pages.damaged())
    }

    /// Reads every page from the disk and compares it with its checksum. `pause` runs after each mebibyte,
    /// and ends the scrub with false; there is no result then.
    pub fn scrub(
        &self,
        now: Timestamp,
        mut pause: impl FnMut() -> bool,
    ) -> Result<Option<Scrubbed>, Error> {
        let Some(pages) = &self.pages else {
            return Ok(None);
        };
        let mut suspects = 0;
        let mut page = 0;
        while page < pages.count() {
            let to = pages.count().min(page + PAGES);
            pages.scrubs.pages.set(number(pages.count()));
            for page in page..to {
                suspects += usize::from(!pages.is_right(page).map_err(internal)?);
            }
            page = to;
            pages.scrubs.read.set(number(page));
            if !pause() {
                return Ok(None);
            }
        }
        // None of them was right since the opening, so redb has none in memory. Whether they are of the last
        // commit is known once the rows are read.
        if suspects > 0 && pages.damaged() == 0 && !self.read_rows(&mut pause)? {
            return Ok(None);
        }
        pages.scrubs.ended.set(now.0 / 1000);
        // One damaged page casts doubt on the others.
        let (damaged, remains) = match pages.damaged() {
            0 => (0, suspects),
            found => (suspects.max(found), 0),
        };
        pages.scrubs.damaged.set(number(damaged as u64));
        Ok(Some(Scrubbed {
            pages: page,
            damaged,
            remains,
        }))
    }

    /// Reads rows until one is on a damaged page, which the reading reports.
    fn read_rows(&self, mut pause: impl FnMut() -> bool) -> Result<bool, Error> {
        let mut from = Vec::new();
        loop {
            let snapshot = ReadRows::open(&self.file)?;
            let mut last = None;
            for row in Careful::range(snapshot.tree(), &from, &[u8::MAX])?.take(ROWS) {
                match row {
                    Ok((key, _)) => last = Some(key.value().to_vec()),
                    Err(error) => {
                        tracing::error!(error = %error.chain(), "the scrub cannot read rows");
                        return Ok(true);
                    }
                }
            }
            match last {
                None => return Ok(true),
                Some(last) => from = [last, vec![0]].concat(),
            }
            if !pause() {
                return Ok(false);
            }
        }
    }
}
