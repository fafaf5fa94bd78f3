//! redb's work on rows whose pages may be damaged. It then fails or panics, which becomes an error that
//! names the row.

use super::guard::guarded;
use super::tree::{Bytes, Found};
use redb::{Range, ReadableTable, StorageError};
use uuid::Uuid;
use wharf_domain::error::{Cause, Error};

/// Groups whose keys begin with the id of an instance.
const OF_INSTANCES: [u8; 2] = *b"ip";

/// Does redb's work on the row of a key.
pub fn careful<T>(key: &[u8], work: impl FnOnce() -> Result<T, StorageError>) -> Result<T, Error> {
    match guarded(work) {
        Ok(done) => done.map_err(|error| at(key, error)),
        Err(why) => Err(at(key, format!("the page is damaged: {why}"))),
    }
}

fn at(key: &[u8], cause: impl Into<Cause>) -> Error {
    let (group, rest) = key.split_first().unwrap_or((&b'?', &[]));
    let id = rest.first_chunk().filter(|_| OF_INSTANCES.contains(group));
    let row = id.map_or_else(
        || rest.escape_ascii().to_string(),
        |id| Uuid::from_bytes(*id).to_string(),
    );
    let group = char::from(*group);
    Error::caused(
        format!("database: the rows `{row}` of the tables `{group}` cannot be read or written"),
        cause,
    )
}

/// The rows of a range of keys. An error ends them.
pub struct Careful<'a> {
    rows: Option<Range<'a, Bytes, Bytes>>,
    from: Vec<u8>,
}

impl<'a> Careful<'a> {
    /// The rows from a key on, without those at `to` and after it.
    pub fn range(
        tree: &'a impl ReadableTable<Bytes, Bytes>,
        from: &[u8],
        to: &[u8],
    ) -> Result<Self, Error> {
        Ok(Self {
            rows: Some(careful(from, || tree.range(from..to))?),
            from: from.to_owned(),
        })
    }

    fn step(
        &mut self,
        step: impl FnOnce(&mut Range<'a, Bytes, Bytes>) -> Option<Result<Found<'a>, StorageError>>,
    ) -> Option<Result<Found<'a>, Error>> {
        let rows = self.rows.as_mut()?;
        let found = careful(&self.from, || step(rows).transpose()).transpose();
        if let Some(Err(_)) = found {
            self.rows = None;
        }
        found
    }
}

impl<'a> Iterator for Careful<'a> {
    type Item = Result<Found<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Iterator::next)
    }
}

impl DoubleEndedIterator for Careful<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(DoubleEndedIterator::next_back)
    }
}
