//! Webhooks: each event that one wants is delivered or counted as failed, and a receiver that hangs or lies holds up no
//! other one.

use super::{Ask, Look, Model, Wrong, check, failed};
use crate::receivers::{ANSWERS, FAILS, HANGS, LATE, MIXED};
use crate::world::Moment;
use std::collections::{BTreeMap, BTreeSet};
use wharf_db::Read as _;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::webhook::{DeliveryState, Webhook, WebhookId};

/// A webhook as the last look found it.
#[derive(Debug, Clone)]
pub struct Known {
    row: Webhook,
    /// The last event at the creation.
    first: u64,
    /// The last event of the owner, and the moment since which it is that.
    last: (u64, Moment),
}

/// All webhooks, and the owners of all that there ever were, by URL.
#[derive(Debug, Clone, Default)]
pub struct Webhooks {
    known: BTreeMap<WebhookId, Known>,
    owners: BTreeMap<String, UserId>,
    /// The moments of deletions.
    ended: BTreeMap<String, Moment>,
}

/// The time after a deletion in which a request may still begin, which Wharf had prepared.
const PREPARED: Moment = Moment::from_secs(20);
/// The time in which what is due must be sent: two of Wharf's looks.
const DUE: Moment = Moment::from_secs(130);
/// The number of pending deliveries at which new events wait.
const MOST_PENDING: usize = 20;
/// The most attempts that pauses leave room for in a run, of a delivery that never succeeds. Each is twice as long as
/// the one before, up to an hour.
const MOST_ATTEMPTS: u32 = 40;
/// Events and deliveries that a look reads.
const ALL: usize = 1000;

impl Model {
    /// Whether a user waits for the creation of a webhook.
    pub fn subscribes(&self, owner: UserId) -> bool {
        self.is_asked(|asked| matches!(asked, Ask::Subscribe { owner: of, .. } if *of == owner))
    }

    /// Whether a message about an instance, a volume or a snapshot is for its owner, whose webhook still exists.
    pub fn is_for_its_owner(&self, url: &str, id: InstanceId, now: Moment) -> Result<(), Wrong> {
        let ended = self.webhooks.ended.get(url);
        check(ended.is_none_or(|ended| now <= *ended + PREPARED), || {
            format!("{url} gets an event, and its webhook is deleted")
        })?;
        let to = self.webhooks.owners.get(url);
        let of = self.meters.get(&id).map(|meter| meter.owner);
        let is_own = to.zip(of).is_none_or(|(to, of)| *to == of);
        check(is_own, || {
            format!("{url} gets an event of {id}, which is another owner's")
        })
    }

    /// An acknowledged deletion holds.
    pub(super) fn ended_webhook(&self, id: WebhookId) -> Result<(), Wrong> {
        check(!self.webhooks.known.contains_key(&id), || {
            format!("webhook {id}: its deletion was acknowledged and does not hold")
        })
    }

    pub(super) fn look_at_webhooks(&mut self, look: &Look<'_>) -> Result<(), Wrong> {
        let now = look.world.now();
        let mut found = BTreeMap::new();
        for user in look.users {
            let owner = user.user;
            let webhooks = look.webhooks.list(user).map_err(|error| failed(&error))?;
            let last = look.app.db().read(|rows| rows.last_event(owner));
            let last = last.map_err(|error| failed(&error))?;
            for row in webhooks {
                let (id, url) = (row.id, row.url.clone());
                let before = self.webhooks.known.get(&id);
                let ask = Ask::Subscribe {
                    owner,
                    url: url.clone(),
                };
                let explained = before.is_some() || self.is_asked(|asked| *asked == ask);
                check(explained && row.owner == owner, || {
                    format!("the webhook to {url} is there, and nobody asked for it")
                })?;
                let known = Known {
                    first: before.map_or(row.after, |known| known.first),
                    last: match before {
                        Some(known) if known.last.0 == last => known.last,
                        _ => (last, now),
                    },
                    row,
                };
                if before.is_none_or(|before| before.row != known.row) {
                    explain(before, &known, look)?;
                }
                self.webhooks.owners.insert(url, owner);
                found.insert(id, known);
            }
        }
        for (id, known) in &self.webhooks.known {
            let ended = self.is_asked(|asked| *asked == Ask::Unsubscribe(*id));
            check(ended || found.contains_key(id), || {
                format!("the webhook to {} is gone", known.row.url)
            })?;
            if !found.contains_key(id) {
                let url = known.row.url.clone();
                self.webhooks.ended.insert(url, now);
            }
        }
        self.webhooks.known = found;
        Ok(())
    }

    /// Checks that receivers which answer have got everything, whatever others do.
    pub(super) fn webhooks_settled(&self, look: &Look<'_>) -> Result<(), Wrong> {
        let now = look.app.clock().now();
        for known in self.webhooks.known.values() {
            let Known { row, last, .. } = known;
            let answers = [ANSWERS, MIXED].iter().any(|path| row.url.ends_with(path));
            let is_served = answers && row.disabled_at.is_none();
            if !is_served || look.accounts.is_disabled(row.owner) {
                continue;
            }
            let due = i64::try_from(DUE.as_millis()).unwrap_or(i64::MAX);
            let late = row.pending.iter().find(|(_, at)| at.0 < now.0 - due);
            check(late.is_none(), || {
                format!("{}: delivery {late:?} is not made", row.url)
            })?;
            let is_old = last.1 + DUE < look.world.now();
            if is_old && row.pending.len() < MOST_PENDING {
                let waiting = wanted(known, look, last.0)?;
                let waiting = waiting.range(row.after + 1..).next();
                check(waiting.is_none(), || {
                    format!("{}: event {waiting:?} is not delivered", row.url)
                })?;
            }
        }
        Ok(())
    }
}

/// Explains what has changed of a webhook and its deliveries.
fn explain(before: Option<&Known>, known: &Known, look: &Look<'_>) -> Result<(), Wrong> {
    let row = &known.row;
    let url = &row.url;
    let goes_on = before.is_none_or(|before| before.row.after <= row.after);
    check(goes_on && row.after <= known.last.0, || {
        format!("{url}: its last event is {}", row.after)
    })?;
    let mut users = look.users.iter();
    let Some(user) = users.find(|user| user.user == row.owner) else {
        return Ok(());
    };
    let read = look.webhooks.deliveries(user, row.id, ALL);
    let (_, deliveries) = read.map_err(|error| failed(&error))?;
    let made: BTreeSet<_> = { deliveries.iter() }
        .filter_map(|(_, delivery)| delivery.event)
        .collect();
    check(made.len() == deliveries.len(), || {
        format!("{url}: an event has two deliveries")
    })?;
    let missing = wanted(known, look, row.after)?;
    let missing = missing.difference(&made).next();
    check(missing.is_none(), || {
        format!("{url}: event {missing:?} was passed over")
    })?;
    let never = [HANGS, FAILS, LATE];
    let may_succeed = !never.iter().any(|path| url.ends_with(path));
    let received = look.received.lock();
    for (number, delivery) in &deliveries {
        let event = delivery.event.unwrap_or_default();
        let message = format!("msg_{}_{event}", row.id.0.simple());
        let is_taken = received.taken.contains(&message);
        let is_delivered = delivery.state == DeliveryState::Delivered;
        check(is_taken || !is_delivered, || {
            format!("{url}: event {event} counts as delivered, and its receiver did not say so")
        })?;
        let is_bounded = may_succeed || delivery.attempt <= MOST_ATTEMPTS;
        check(is_bounded, || {
            format!("{url}: delivery {number} had {} attempts", delivery.attempt)
        })?;
    }
    Ok(())
}

/// The events up to a number that a webhook wants and that are kept.
fn wanted(known: &Known, look: &Look<'_>, last: u64) -> Result<BTreeSet<u64>, Wrong> {
    let mut users = look.users.iter();
    let Some(user) = users.find(|user| user.user == known.row.owner) else {
        return Ok(BTreeSet::new());
    };
    let read = look.app.events(user, None, Some(known.first), ALL);
    let events = read.map_err(|error| failed(&error))?.events.into_iter();
    Ok(events
        .filter(|event| event.id > known.first && event.id <= last && known.row.wants(event.kind))
        .map(|event| event.id)
        .collect())
}
