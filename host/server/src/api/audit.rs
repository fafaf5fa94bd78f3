//! `GET /api/audit/`: the changes of the caller's instances and keys, oldest first.

use super::list::Page;
use super::{Api, render};
use bytes::Bytes;
use wharf_control::Caller;
use wharf_domain::error::Error;

/// Approximate bytes of one record.
const RECORD_BYTES: usize = 256;

/// A page of the records, and the page that follows it, if any.
pub fn page(api: &Api, caller: &Caller, page: Page) -> Result<(Bytes, Option<Page>), Error> {
    // One more than asked for shows whether a page follows.
    let after = page.after.unwrap_or_default();
    let mut records = api.app.audit(caller, after, page.limit + 1)?;
    let more = records.len() > page.limit;
    records.truncate(page.limit);
    let last = records.last().filter(|_| more);
    let next = last.map(|record| Page {
        after: Some(record.id),
        ..page
    });
    Ok((render(&records, RECORD_BYTES * records.len() + 2)?, next))
}
