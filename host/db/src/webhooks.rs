//! Webhooks and their deliveries.

use super::findings::{Findings, Known};
use super::read::Read;
use super::table::{Draft, Rows};
use super::tables as t;
use std::collections::BTreeSet;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::webhook::{Delivery, DeliveryState, Webhook, WebhookId};

/// The latest deliveries of a webhook that are kept. Older ones are kept while they are pending.
const KEPT: u64 = 1_000;

/// Questions about webhooks.
#[expect(
    clippy::missing_errors_doc,
    reason = "all fail only if the file is broken"
)]
pub trait ReadWebhooks: Rows {
    /// One webhook of a user.
    fn webhook(&self, owner: UserId, id: WebhookId) -> Result<Option<Webhook>, Error> {
        self.get(&t::WEBHOOKS, &owner, id)
    }

    /// The webhooks of a user.
    fn webhooks_of(&self, owner: UserId) -> Result<Vec<Webhook>, Error> {
        self.under(&t::WEBHOOKS, &owner)?
            .map(|row| row.map(|(_, webhook)| webhook))
            .collect()
    }

    /// All webhooks.
    fn all_webhooks(&self) -> Result<Vec<Webhook>, Error> {
        self.all(&t::WEBHOOKS)?
            .map(|row| row.map(|(_, _, webhook)| webhook))
            .collect()
    }

    /// One delivery of a webhook.
    fn delivery(
        &self,
        owner: UserId,
        id: WebhookId,
        number: u64,
    ) -> Result<Option<Delivery>, Error> {
        self.get(&t::DELIVERIES, &owner, (id, number))
    }

    /// The deliveries of a webhook that are kept, by number.
    fn deliveries(&self, owner: UserId, id: WebhookId) -> Result<Vec<(u64, Delivery)>, Error> {
        let rows = self.under_from(&t::DELIVERIES, &owner, (id, 0))?;
        let own = rows.take_while(|row| !matches!(row, Ok(((of, _), _)) if *of != id));
        own.map(|row| row.map(|((_, number), delivery)| (number, delivery)))
            .collect()
    }
}

impl<T: Rows> ReadWebhooks for T {}

impl Draft<'_> {
    pub(super) fn drop_webhook(&mut self, owner: UserId, id: WebhookId) -> Result<(), Error> {
        for (number, _) in self.deliveries(owner, id)? {
            self.remove(&t::DELIVERIES, &owner, (id, number))?;
        }
        self.remove(&t::WEBHOOKS, &owner, id).map(drop)
    }

    pub(super) fn put_delivery(
        &mut self,
        owner: UserId,
        (id, number): (WebhookId, u64),
        delivery: &Delivery,
    ) -> Result<(), Error> {
        self.put(&t::DELIVERIES, &owner, (id, number), delivery)?;
        let last = self.webhook(owner, id)?.map_or(0, |row| row.deliveries);
        let oldest = last.max(number).saturating_sub(KEPT);
        // A delivery that was tried again may itself be too old; otherwise the oldest one now is.
        for old in [oldest, number.min(oldest)] {
            let done = self.delivery(owner, id, old)?;
            if done.is_some_and(|done| done.state != DeliveryState::Pending) {
                self.remove(&t::DELIVERIES, &owner, (id, old))?;
            }
        }
        Ok(())
    }
}

/// Compares webhooks with their pending deliveries.
pub(super) fn check(rows: &impl Read, _: &Known, wrong: &mut Findings) -> Result<(), Error> {
    let (mut known, mut pending) = (BTreeSet::new(), BTreeSet::new());
    for webhook in rows.all_webhooks()? {
        let (owner, id) = (webhook.owner, webhook.id);
        known.insert((owner, id));
        pending.extend(webhook.pending.keys().map(|number| (owner, id, *number)));
        if webhook.after > rows.last_event(owner)? {
            wrong.push(format!("webhook {id}: its event is beyond the last one"));
        }
    }
    let mut stored = BTreeSet::new();
    for row in rows.all(&t::DELIVERIES)? {
        let (owner, (id, number), delivery) = row?;
        if !known.contains(&(owner, id)) {
            wrong.push(format!("webhook {id}: a delivery without its webhook"));
        }
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
