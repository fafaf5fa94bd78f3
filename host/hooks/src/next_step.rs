//! Deliveries: the next one of a webhook, and its result. Rows hold all of it, so that a crash only
//! repeats the attempt that was under way.

use super::Webhooks;
use super::rows::{DELIVERIES, WEBHOOKS, put_delivery};
use super::secret::{decrypt, sign};
use serde_json::json;
use std::time::Duration;
use wharf_db::{Changes, Read as _, ReadRows, Rows as _, View};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::secret::SecretText;
use wharf_domain::time::Timestamp;
use wharf_domain::webhook::{Delivery, DeliveryState, Webhook, WebhookId};
use wharf_ground::clock::system_time;
use wharf_instances::OwnerEvent;

/// New events wait while this number of deliveries is pending; they are durable as events.
const MAX_PENDING: usize = 20;
/// Events that are looked at together.
const BATCH: usize = 100;
/// Events of other types that are passed over before a write notes it.
const UNWRITTEN: u64 = 1_000;

/// The pause after the first failure, which doubles with each further one, and the longest one.
const FIRST_PAUSE_MS: i64 = 2_000;
const LONGEST_PAUSE_MS: i64 = 3_600_000;
/// The time from the first attempt until a delivery is given up: 3 days.
const GIVE_UP_MS: i64 = 3 * 24 * 3_600_000;
/// The pause while the disk of the database has less than its reserve.
const DISK_PAUSE: Duration = Duration::from_secs(5);
/// The time without any success until a webhook is disabled: 5 days.
const DISABLE_MS: i64 = 5 * 24 * 3_600_000;
/// The status of a receiver that wants nothing more.
const GONE: u16 = 410;

/// The next step for a webhook.
#[derive(Debug)]
pub enum NextStep {
    /// The webhook does not exist any more.
    Gone,
    /// A request to send.
    Deliver(Box<DeliveryJob>),
    /// Nothing to do until something changes, or for this time.
    Wait(Option<Duration>),
}

/// The numbers of a delivery.
#[derive(Debug, Clone, Copy)]
struct DeliveryOf {
    /// Number of the delivery; `None` for the first attempt with an event.
    number: Option<u64>,
    /// Number of the event; `None` for a test.
    event: Option<u64>,
}

/// A request to the address of a webhook.
#[derive(Debug)]
pub struct DeliveryJob {
    pub url: String,
    of: DeliveryOf,
    /// `webhook-id`, which is equal in all attempts with an event.
    pub id: String,
    secrets: Vec<SecretText>,
    pub body: Vec<u8>,
}

impl DeliveryJob {
    /// Returns `webhook-timestamp` in seconds, and `webhook-signature` with each valid secret. Receivers
    /// compare the time with theirs, so it is that of the system's clock when the request is sent.
    pub fn sign(&self) -> Result<(i64, String), Error> {
        let seconds = system_time().0.div_euclid(1000);
        let secrets = self.secrets.iter();
        let signatures = secrets.map(|secret| sign(secret, &self.id, seconds, &self.body));
        let signatures: Vec<String> = signatures.collect::<Result<_, Error>>()?;
        Ok((seconds, signatures.join(" ")))
    }
}

/// The result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempted {
    pub status: Option<u16>,
    /// Reason of a failure, in words for the user.
    pub error: Option<&'static str>,
    /// The pause that the receiver asks for.
    pub retry_after: Option<Duration>,
}

enum Found {
    Gone,
    Wait(Option<Timestamp>),
    Deliver(Box<Webhook>, DeliveryOf, Box<OwnerEvent>),
    /// The event of a pending delivery is no longer kept.
    Lost(u64),
    /// The webhook wants no event up to this number.
    Passed(u64),
}

impl Webhooks {
    /// Returns the owners and ids of all webhooks. A row that cannot be read stops no other webhook.
    pub(super) fn ids(&self) -> Result<Vec<(UserId, WebhookId)>, Error> {
        self.db
            .read(|rows| rows.keys_after(&WEBHOOKS, None)?.collect())
    }

    /// Returns the next step for a webhook. `passed` is the number of the last event that it does not
    /// want.
    pub(super) async fn work(
        &self,
        owner: UserId,
        id: WebhookId,
        passed: &mut u64,
    ) -> Result<NextStep, Error> {
        loop {
            if self.accounts.is_disabled(owner) {
                return Ok(NextStep::Wait(None));
            }
            let now = self.clock.now();
            let found = self.db.read(|rows| find(rows, owner, id, passed, now))?;
            let (webhook, of, data) = match found {
                Found::Gone => return Ok(NextStep::Gone),
                Found::Wait(until) => {
                    let wait = |until: Timestamp| {
                        let ms = u64::try_from(until.0.saturating_sub(now.0));
                        Duration::from_millis(ms.unwrap_or_default().max(1))
                    };
                    return Ok(NextStep::Wait(until.map(wait)));
                }
                Found::Lost(number) => {
                    let lost = Attempted {
                        status: None,
                        error: Some("the event is no longer kept"),
                        retry_after: None,
                    };
                    let of = DeliveryOf {
                        number: Some(number),
                        event: None,
                    };
                    self.write_attempt(owner, id, of, lost, true).await?;
                    continue;
                }
                Found::Passed(last) => {
                    self.pass_over(owner, id, last).await?;
                    continue;
                }
                // The result of a request could not be kept.
                Found::Deliver(..) if self.db.disk().is_low() => {
                    return Ok(NextStep::Wait(Some(DISK_PAUSE)));
                }
                Found::Deliver(webhook, of, data) => (webhook, of, data),
            };
            let job = self.job(&webhook, of, &data, now)?;
            return Ok(NextStep::Deliver(Box::new(job)));
        }
    }

    fn job(
        &self,
        webhook: &Webhook,
        of: DeliveryOf,
        data: &OwnerEvent,
        now: Timestamp,
    ) -> Result<DeliveryJob, Error> {
        let hook = webhook.id.0.simple();
        let id = match of.event {
            Some(event) => format!("msg_{hook}_{event}"),
            None => format!("msg_{hook}_test_{}", of.number.unwrap_or_default()),
        };
        let body = json!({ "type": data.kind, "timestamp": data.at, "data": data });
        let body = body.to_string().into_bytes();
        let earlier = webhook.earlier.iter().filter(|earlier| now < earlier.until);
        let secrets =
            std::iter::once(&webhook.secret).chain(earlier.map(|earlier| &earlier.secret));
        let secrets = secrets.map(|secret| decrypt(&self.vault, webhook.id, secret));
        Ok(DeliveryJob {
            url: webhook.url.clone(),
            of,
            secrets: secrets.collect::<Result<_, Error>>()?,
            id,
            body,
        })
    }

    /// Writes the result of an attempt.
    pub(super) async fn done(
        &self,
        owner: UserId,
        id: WebhookId,
        job: &DeliveryJob,
        attempted: Attempted,
    ) -> Result<(), Error> {
        self.write_attempt(owner, id, job.of, attempted, false)
            .await
    }

    /// Notes that a webhook wants no event up to a number, so that they are not looked at again.
    async fn pass_over(&self, owner: UserId, id: WebhookId, last: u64) -> Result<(), Error> {
        let written = self.db.write_essential(move |view| {
            let Some(mut webhook) = view.rows.get(&WEBHOOKS, (owner, id))? else {
                return Ok(((), Changes::none()));
            };
            webhook.after = webhook.after.max(last);
            Ok(((), Changes::none().put(&WEBHOOKS, (owner, id), webhook)))
        });
        written.await
    }

    async fn write_attempt(
        &self,
        owner: UserId,
        id: WebhookId,
        of: DeliveryOf,
        attempted: Attempted,
        lost: bool,
    ) -> Result<(), Error> {
        let mut random = [0; 1];
        self.random.fill(&mut random)?;
        let [random] = random;
        let written = self.db.write_essential(move |view| {
            let Some(webhook) = view.rows.get(&WEBHOOKS, (owner, id))? else {
                return Ok((None, Changes::none()));
            };
            let was = webhook.disabled_at;
            let attempt = EndedAttempt {
                of,
                lost,
                attempted,
                random,
            };
            let (webhook, changes) = attempt.changes(view, webhook)?;
            let newly = webhook.disabled_at.filter(|_| was.is_none());
            let changes = changes.put(&WEBHOOKS, (owner, id), webhook);
            Ok((newly, changes))
        });
        if written.await?.is_some() {
            tracing::warn!(webhook = %id, user = owner.0, "a webhook was disabled because its deliveries fail");
        }
        Ok(())
    }
}

/// Finds the next step. Due deliveries come before new events.
fn find(
    rows: &ReadRows,
    owner: UserId,
    id: WebhookId,
    passed: &mut u64,
    now: Timestamp,
) -> Result<Found, Error> {
    let Some(webhook) = rows.get(&WEBHOOKS, (owner, id))? else {
        return Ok(Found::Gone);
    };
    let due = webhook.pending.iter().find(|(_, due)| **due <= now);
    if let Some((number, _)) = due {
        let number = *number;
        let delivery = rows.get(&DELIVERIES, (owner, (id, number)))?;
        let Some(delivery) = delivery else {
            return Ok(Found::Lost(number));
        };
        let data = match delivery.event {
            None => OwnerEvent::test(delivery.begun_at),
            Some(event) => {
                let before = event.saturating_sub(1);
                let row = rows.owner_events(owner, before, 1)?.pop();
                match row.filter(|row| row.seq == event) {
                    Some(row) => row.into(),
                    None => return Ok(Found::Lost(number)),
                }
            }
        };
        let of = DeliveryOf {
            number: Some(number),
            event: delivery.event,
        };
        let data = Box::new(data);
        return Ok(Found::Deliver(Box::new(webhook), of, data));
    }
    let next = webhook.pending.values().min().copied();
    if webhook.disabled_at.is_some() || webhook.pending.len() >= MAX_PENDING {
        return Ok(Found::Wait(next));
    }
    loop {
        let after = webhook.after.max(*passed);
        let events = rows.owner_events(owner, after, BATCH)?;
        let Some(last) = events.last().map(|row| row.seq) else {
            return Ok(Found::Wait(next));
        };
        for row in events {
            let data = OwnerEvent::from(row);
            if webhook.wants(data.kind) {
                let of = DeliveryOf {
                    number: None,
                    event: Some(data.id),
                };
                let data = Box::new(data);
                return Ok(Found::Deliver(Box::new(webhook), of, data));
            }
        }
        *passed = last;
        if last >= webhook.after.saturating_add(UNWRITTEN) {
            return Ok(Found::Passed(last));
        }
    }
}

/// An attempt that has ended.
struct EndedAttempt {
    of: DeliveryOf,
    /// The delivery cannot be made any more.
    lost: bool,
    attempted: Attempted,
    random: u8,
}

impl EndedAttempt {
    /// Returns the webhook after the attempt, and the changes of its deliveries.
    fn changes(&self, view: &View<'_>, mut webhook: Webhook) -> Result<(Webhook, Changes), Error> {
        let (now, system, owner, id) = (view.now, view.system, webhook.owner, webhook.id);
        let number = self.of.number.unwrap_or(webhook.deliveries + 1);
        let earlier = match self.of.number {
            Some(number) => view.rows.get(&DELIVERIES, (owner, (id, number)))?,
            None => None,
        };
        let mut delivery = earlier.unwrap_or(Delivery {
            event: self.of.event,
            state: DeliveryState::Pending,
            attempt: 0,
            at: system,
            begun_at: system,
            status: None,
            error: None,
        });
        webhook.deliveries = webhook.deliveries.max(number);
        if self.of.number.is_none() {
            webhook.after = webhook.after.max(self.of.event.unwrap_or_default());
        }
        delivery.attempt += u32::from(!self.lost);
        delivery.at = system;
        delivery.status = self.attempted.status;
        delivery.error = self.attempted.error.map(str::to_owned);
        webhook.pending.remove(&number);
        let mut changes = Changes::none();
        if self.attempted.error.is_none() {
            delivery.state = DeliveryState::Delivered;
            webhook.disabled_at = None;
            if webhook.failing_since.take().is_some() {
                // The receiver is back, so the others need not wait.
                webhook.pending.values_mut().for_each(|due| *due = now);
            }
        } else {
            let since = *webhook.failing_since.get_or_insert(now);
            let gone = self.attempted.status == Some(GONE);
            if gone || now.0.saturating_sub(since.0) >= DISABLE_MS {
                webhook.disabled_at.get_or_insert(system);
            }
            let age = system.0.saturating_sub(delivery.begun_at.0);
            if self.lost || webhook.disabled_at.is_some() || age >= GIVE_UP_MS {
                delivery.state = DeliveryState::Failed;
            } else {
                webhook
                    .pending
                    .insert(number, self.retry_at(now, delivery.attempt));
            }
        }
        if webhook.disabled_at.is_some() {
            for number in std::mem::take(&mut webhook.pending).into_keys() {
                if let Some(mut given_up) = view.rows.get(&DELIVERIES, (owner, (id, number)))? {
                    given_up.state = DeliveryState::Failed;
                    changes = put_delivery(view.rows, changes, &webhook, number, given_up)?;
                }
            }
        }
        let changes = put_delivery(view.rows, changes, &webhook, number, delivery)?;
        Ok((webhook, changes))
    }

    /// The pause doubles with each attempt, and is at least the one that the receiver asks for. A random part of up to a quarter spreads retries.
    fn retry_at(&self, now: Timestamp, attempts: u32) -> Timestamp {
        let doublings = attempts.saturating_sub(1).min(20);
        let pause = (FIRST_PAUSE_MS << doublings).min(LONGEST_PAUSE_MS);
        let asked = self.attempted.retry_after.unwrap_or_default().as_millis();
        let asked = i64::try_from(asked).unwrap_or(LONGEST_PAUSE_MS);
        let pause = pause.max(asked.min(LONGEST_PAUSE_MS));
        let jitter = pause / 4 * i64::from(self.random) / 255;
        Timestamp(now.0.saturating_add(pause).saturating_add(jitter))
    }
}
