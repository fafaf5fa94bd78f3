//! The rows of webhooks and of their deliveries.

use super::WEBHOOK;
use std::collections::BTreeSet;
use wharf_db::{Changes, Findings, Read as _, ReadRows, Rows, Table, tables};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::webhook::{Delivery, DeliveryState, Webhook, WebhookId};

/// The latest deliveries of a webhook that are kept. Older ones are kept while they are pending.
const KEPT: u64 = 1_000;

tables! {
    /// Webhooks of a user.
    pub const WEBHOOKS: Table<UserId, WebhookId, Webhook> =
        Table::bounded(b'w', 0, "20 of a user", "Until the user deletes it").wakes_user("webhooks")
            .checked(check);
    /// Deliveries of a user's webhooks by number.
    pub const DELIVERIES: Table<UserId, (WebhookId, u64), Delivery> =
        Table::bounded(b'w', 1, "The latest 1000 of a webhook, and 120 pending ones",
            "Until newer ones replace it").removed_with(&WEBHOOKS)
    .wakes_user("webhooks");
}

/// One webhook of a user.
pub(super) fn webhook(rows: &impl Rows, owner: UserId, id: WebhookId) -> Result<Webhook, Error> {
    rows.get(&WEBHOOKS, (owner, id))?.ok_or(WEBHOOK)
}

/// The webhooks of a user.
pub(super) fn webhooks_of(rows: &impl Rows, owner: UserId) -> Result<Vec<Webhook>, Error> {
    rows.under(&WEBHOOKS, &owner)?
        .map(|row| row.map(|(_, webhook)| webhook))
        .collect()
}

/// All webhooks.
pub(super) fn all_webhooks(rows: &impl Rows) -> Result<Vec<Webhook>, Error> {
    rows.all(&WEBHOOKS)?
        .map(|row| row.map(|(_, _, webhook)| webhook))
        .collect()
}

/// The deliveries of a webhook that are kept, by number.
pub(super) fn deliveries(
    rows: &impl Rows,
    owner: UserId,
    id: WebhookId,
) -> Result<Vec<(u64, Delivery)>, Error> {
    let rows = rows.under_from(&DELIVERIES, &owner, (id, 0))?;
    let own = rows.take_while(|row| !matches!(row, Ok(((of, _), _)) if *of != id));
    own.map(|row| row.map(|((_, number), delivery)| (number, delivery)))
        .collect()
}

/// Writes a delivery of a webhook that has deliveries up to a number, and removes one that is too old to
/// be kept.
pub(super) fn put_delivery(
    rows: &impl Rows,
    changes: Changes,
    webhook: &Webhook,
    number: u64,
    delivery: Delivery,
) -> Result<Changes, Error> {
    let (owner, id) = (webhook.owner, webhook.id);
    let oldest = webhook.deliveries.max(number).saturating_sub(KEPT);
    let is_done = |delivery: &Delivery| delivery.state != DeliveryState::Pending;
    // A delivery that was tried again may itself be too old.
    let own = Some(delivery).filter(|own| number > oldest || !is_done(own));
    let changes = changes.set(&DELIVERIES, (owner, (id, number)), own);
    let old = rows.get(&DELIVERIES, (owner, (id, oldest)))?;
    if old.is_some_and(|old| number != oldest && is_done(&old)) {
        return Ok(changes.remove(&DELIVERIES, (owner, (id, oldest))));
    }
    Ok(changes)
}

/// Compares webhooks with their pending deliveries.
fn check(rows: &ReadRows, wrong: &mut Findings) -> Result<(), Error> {
    let mut pending = BTreeSet::new();
    for webhook in all_webhooks(rows)? {
        let (owner, id) = (webhook.owner, webhook.id);
        pending.extend(webhook.pending.keys().map(|number| (owner, id, *number)));
        if webhook.after > rows.last_event(owner)? {
            wrong.push(format!("webhook {id}: its event is beyond the last one"));
        }
    }
    let mut stored = BTreeSet::new();
    for row in rows.all(&DELIVERIES)? {
        let (owner, (id, number), delivery) = row?;
        if delivery.state == DeliveryState::Pending {
            stored.insert((owner, id, number));
        }
    }
    for (_, id, number) in stored.symmetric_difference(&pending) {
        let text = format!("webhook {id}: delivery {number} is pending in one table only");
        wrong.push(text);
    }
    Ok(())
}
