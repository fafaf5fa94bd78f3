//! `GET /api/audit/`: the changes of the caller's instances and keys.

use super::list::{ListPage, page_of};
use super::{Api, render};
use bytes::Bytes;
use std::borrow::Cow;
use wharf_domain::error::{Error, FieldErrors};
use wharf_ground::audit::{self, AuditOrder};
use wharf_ground::caller::Caller;

/// Approximate bytes of one record.
const RECORD_BYTES: usize = 256;

/// Reads the query parameter `order`.
pub fn order<'a>(
    query: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
) -> Result<AuditOrder, FieldErrors> {
    let mut orders = query.filter(|(name, _)| name == "order");
    let order = match orders.next().as_ref().map(|(_, order)| &**order) {
        None | Some("oldest") => Some(AuditOrder::Oldest),
        Some("newest") => Some(AuditOrder::Newest),
        Some(_) => None,
    };
    match (order, orders.next()) {
        (Some(order), None) => Ok(order),
        (_, Some(_)) => Err(FieldErrors::one("order", "must be given once")),
        (None, None) => Err(FieldErrors::one("order", "must be oldest or newest")),
    }
}

/// A page of the records in an order, and the page that follows it, if any.
pub fn page(
    api: &Api,
    caller: &Caller,
    order: AuditOrder,
    page: ListPage,
) -> Result<(Bytes, Option<ListPage>), Error> {
    let fetch = |after, limit| audit::page_of(api.app.db(), caller.user, order, after, limit);
    let (records, next) = page_of(Some(page), |record| record.id, fetch)?;
    Ok((render(&records, RECORD_BYTES * records.len() + 2)?, next))
}
