//! Webhooks: their use cases, and the deliveries of events to them.

mod next_step;
mod rows;
mod run;
mod secret;
mod send;
mod tasks;

pub use rows::TABLES;
pub use run::{run, run_with};
pub use send::{HookAnswer, HookReceivers, HookRequest};

use parking_lot::Mutex;
use rows::{DELIVERIES, WEBHOOKS, all_webhooks, deliveries, put_delivery, webhook, webhooks_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
use wharf_accounts::Accounts;
use wharf_accounts::recent_sign_in::require_access;
use wharf_db::{Changes, Db, Read as _, Rows as _, View};
use wharf_domain::audit::Origin;
use wharf_domain::error::{Error, FieldErrors, NON_FIELD_ERRORS};
use wharf_domain::ids::UserId;
use wharf_domain::secret::SecretText;
use wharf_domain::time::Timestamp;
use wharf_domain::webhook::{Delivery, DeliveryState, EarlierSecret, Webhook, WebhookId};
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;
use wharf_ground::clock::Clock;
use wharf_ground::config::SharedConfig;
use wharf_ground::random::Random;
use wharf_ground::vault::Vault;
use wharf_instances::events::KINDS;
use wharf_outbound::Outbound;

/// The most webhooks of one user.
const MAX_WEBHOOKS: usize = 20;
/// The most deliveries of one webhook that wait for an attempt on request.
const MAX_REQUESTED: usize = 100;
/// Time for which a secret signs after its rotation, in milliseconds.
const OVERLAP_MS: i64 = 24 * 3_600_000;

const WEBHOOK: Error = Error::Missing("Webhook");
const DELIVERY: Error = Error::Missing("Delivery");

/// The webhooks that were created, for the task that begins their deliveries. So it need not read the
/// webhooks of all users at each creation.
#[derive(Debug, Default)]
struct NewWebhooks {
    made: Mutex<Vec<(UserId, WebhookId)>>,
    notice: watch::Sender<()>,
}

impl NewWebhooks {
    fn add(&self, owner: UserId, id: WebhookId) {
        self.made.lock().push((owner, id));
        self.notice.send_replace(());
    }

    /// Takes the owners and ids of the webhooks that were created since the last call.
    fn take(&self) -> Vec<(UserId, WebhookId)> {
        std::mem::take(&mut *self.made.lock())
    }
}

/// The webhooks of all users.
pub struct Webhooks {
    db: Db,
    clock: Clock,
    random: Random,
    vault: Vault,
    accounts: Arc<Accounts>,
    new: NewWebhooks,
    outbound: Outbound,
}

impl Webhooks {
    /// The webhooks in a database.
    pub fn new(
        config: SharedConfig,
        db: Db,
        clock: Clock,
        random: Random,
        vault: Vault,
        accounts: Arc<Accounts>,
    ) -> Self {
        Self {
            db,
            clock,
            random,
            vault,
            accounts,
            new: NewWebhooks::default(),
            outbound: Outbound::new(config, |config| &config.webhook),
        }
    }

    /// Creates a webhook. Returns it with its secret, which is not shown again.
    pub async fn create(
        &self,
        caller: &Caller,
        url: String,
        types: Vec<String>,
    ) -> Result<(Webhook, SecretText), Error> {
        self.accounts.require_recent(caller)?;
        let mut errors = FieldErrors::default();
        if let Err(message) = self.outbound.check(&url).await {
            errors.add("url", message);
        }
        let unknown = types.iter().find(|kind| !KINDS.contains(&kind.as_str()));
        if let Some(unknown) = unknown {
            let known = KINDS.join(", ");
            let message = format!("{unknown:?} is no type of event; the types are {known}");
            errors.add("types", message);
        }
        errors.into_result()?;
        let id = WebhookId(self.random.id(self.clock.system())?);
        let secret = secret::generate(&self.random)?;
        let (vault, owner, origin) = (self.vault.clone(), caller.user, caller.origin());
        let (plain, by) = (secret.clone(), caller.clone());
        let written = self.db.write(move |view| {
            require_access(view, &by)?;
            if webhooks_of(view.rows, owner)?.len() >= MAX_WEBHOOKS {
                let message =
                    format!("a user has at most {MAX_WEBHOOKS} webhooks; delete one first");
                return Err(FieldErrors::one(NON_FIELD_ERRORS, message).into());
            }
            let webhook = Webhook {
                id,
                owner,
                url: url.clone(),
                types: types.clone(),
                // Encrypted within the write, so that a rotation of the key misses no new row.
                secret: secret::encrypt(&vault, id, &plain)?,
                earlier: None,
                created_at: view.system,
                after: view.rows.last_event(owner)?,
                deliveries: 0,
                pending: BTreeMap::new(),
                failing_since: None,
                disabled_at: None,
            };
            let audited = audited(view, &origin, "webhook.new", &webhook, "created");
            let changes = Changes::none().put(&WEBHOOKS, (owner, id), webhook.clone());
            Ok((webhook, changes.with(audited)))
        });
        let webhook = written.await?;
        self.new.add(caller.user, id);
        Ok((webhook, secret))
    }

    /// Returns the caller's webhooks, oldest first.
    pub fn list(&self, caller: &Caller) -> Result<Vec<Webhook>, Error> {
        let mut webhooks = self.db.read(|rows| webhooks_of(rows, caller.user))?;
        webhooks.sort_by_key(|webhook| (webhook.created_at, webhook.id));
        Ok(webhooks)
    }

    /// Returns one of the caller's webhooks.
    pub fn get(&self, caller: &Caller, id: WebhookId) -> Result<Webhook, Error> {
        self.db.read(|rows| webhook(rows, caller.user, id))
    }

    /// Removes a webhook with its deliveries.
    pub async fn delete(&self, caller: &Caller, id: WebhookId) -> Result<(), Error> {
        let owner = caller.user;
        let drop = move |_: &View<'_>, _: Webhook| {
            Ok(((), Changes::none().remove(&WEBHOOKS, (owner, id))))
        };
        let change = webhook_change(caller, id, "webhook.delete", "deleted", drop);
        self.db.write_essential(change).await
    }

    /// Gives a webhook a new secret. The one before signs too for a day.
    pub async fn rotate(
        &self,
        caller: &Caller,
        id: WebhookId,
    ) -> Result<(Webhook, SecretText), Error> {
        self.accounts.require_recent(caller)?;
        let (vault, secret) = (self.vault.clone(), secret::generate(&self.random)?);
        let plain = secret.clone();
        let rotate = move |view: &View<'_>, mut webhook: Webhook| {
            let new = secret::encrypt(&vault, id, &plain)?;
            let until = Timestamp(view.now.0.saturating_add(OVERLAP_MS));
            webhook.earlier = Some(EarlierSecret {
                secret: std::mem::replace(&mut webhook.secret, new),
                until,
            });
            let key = (webhook.owner, id);
            let put = Changes::none().put(&WEBHOOKS, key, webhook.clone());
            Ok((webhook, put))
        };
        let change = self.change(caller, id, "webhook.rotate", "rotated", rotate);
        let webhook = change.await?;
        Ok((webhook, secret))
    }

    /// Requests a delivery of a test. A success enables a webhook that is disabled.
    pub async fn test(&self, caller: &Caller, id: WebhookId) -> Result<(u64, Delivery), Error> {
        let test = |view: &View<'_>, webhook: Webhook| {
            let number = webhook.deliveries + 1;
            request(view, webhook, number, None)
        };
        self.change(caller, id, "webhook.test", "requested", test)
            .await
    }

    /// Requests a delivery again.
    pub async fn redeliver(
        &self,
        caller: &Caller,
        id: WebhookId,
        number: u64,
    ) -> Result<(u64, Delivery), Error> {
        let again = move |view: &View<'_>, webhook: Webhook| {
            let earlier = view.rows.get(&DELIVERIES, (webhook.owner, (id, number)))?;
            let earlier = earlier.ok_or(DELIVERY)?;
            request(view, webhook, number, earlier.event)
        };
        self.change(caller, id, "webhook.redeliver", "requested", again)
            .await
    }

    /// Returns at most `limit` of the latest deliveries of a webhook, the last one first.
    pub fn deliveries(
        &self,
        caller: &Caller,
        id: WebhookId,
        limit: usize,
    ) -> Result<(Webhook, Vec<(u64, Delivery)>), Error> {
        // The next attempts are in Wharf's own time, and their user reads the system's.
        let times = self.clock.times();
        let ahead = times.system.0.saturating_sub(times.now.0);
        self.db.read(|rows| {
            let mut webhook = webhook(rows, caller.user, id)?;
            for due in webhook.pending.values_mut() {
                *due = Timestamp(due.0.saturating_add(ahead));
            }
            let mut deliveries = deliveries(rows, caller.user, id)?;
            deliveries.reverse();
            deliveries.truncate(limit);
            Ok((webhook, deliveries))
        })
    }

    async fn change<T: Send + 'static>(
        &self,
        caller: &Caller,
        id: WebhookId,
        operation: &'static str,
        result: &'static str,
        decide: impl Fn(&View<'_>, Webhook) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        let change = webhook_change(caller, id, operation, result, decide);
        self.db.write(change).await
    }
}

/// A change of one of the caller's webhooks, with its audit record.
fn webhook_change<T, D>(
    caller: &Caller,
    id: WebhookId,
    operation: &'static str,
    result: &'static str,
    decide: D,
) -> impl Fn(&View<'_>) -> Result<(T, Changes), Error> + use<T, D>
where
    D: Fn(&View<'_>, Webhook) -> Result<(T, Changes), Error>,
{
    let (owner, origin) = (caller.user, caller.origin());
    move |view| {
        let webhook = rows::webhook(view.rows, owner, id)?;
        let audited = audited(view, &origin, operation, &webhook, result);
        let (value, changes) = decide(view, webhook)?;
        Ok((value, changes.with(audited)))
    }
}

fn audited(
    view: &View<'_>,
    origin: &Origin,
    operation: &str,
    webhook: &Webhook,
    result: &str,
) -> Changes {
    let subject = webhook.id.to_string();
    record(
        view,
        origin,
        operation,
        Some(webhook.owner),
        &subject,
        result,
    )
}

/// Makes a delivery pending, due at once.
fn request(
    view: &View<'_>,
    mut webhook: Webhook,
    number: u64,
    event: Option<u64>,
) -> Result<((u64, Delivery), Changes), Error> {
    if webhook.pending.len() >= MAX_REQUESTED {
        return Err(Error::NotApplicable(
            "this webhook has too many pending deliveries; wait until some are done",
        ));
    }
    let delivery = Delivery {
        event,
        state: DeliveryState::Pending,
        attempt: 0,
        at: view.system,
        begun_at: view.system,
        status: None,
        error: None,
    };
    webhook.deliveries = webhook.deliveries.max(number);
    webhook.pending.insert(number, view.now);
    let (owner, id) = (webhook.owner, webhook.id);
    let changes = Changes::none().put(&WEBHOOKS, (owner, id), webhook.clone());
    let changes = put_delivery(view.rows, changes, &webhook, number, delivery.clone())?;
    Ok(((number, delivery), changes))
}

/// The ids of webhooks with a secret that cannot be decrypted.
pub fn unreadable(vault: &Vault, db: &Db) -> Result<Vec<WebhookId>, Error> {
    let webhooks = db.read(all_webhooks)?.into_iter();
    let unreadable = webhooks.filter(|webhook| {
        let earlier = webhook.earlier.iter().map(|earlier| &earlier.secret);
        let mut secrets = std::iter::once(&webhook.secret).chain(earlier);
        secrets.any(|secret| secret::decrypt(vault, webhook.id, secret).is_err())
    });
    Ok(unreadable.map(|webhook| webhook.id).collect())
}

/// Encrypts the secrets of webhooks again that an earlier key encrypted.
pub async fn renew_secrets(vault: &Vault, db: &Db) -> Result<(), Error> {
    for webhook in db.read(all_webhooks)? {
        let (vault, owner, id) = (vault.clone(), webhook.owner, webhook.id);
        let renewed = db.write_essential(move |view| {
            let Some(mut webhook) = view.rows.get(&WEBHOOKS, (owner, id))? else {
                return Ok(((), Changes::none()));
            };
            let mut changes = Changes::none();
            if secret::renew(&vault, &mut webhook, view.now) {
                changes = changes.put(&WEBHOOKS, (owner, id), webhook);
            }
            Ok(((), changes))
        });
        renewed.await?;
    }
    Ok(())
}
