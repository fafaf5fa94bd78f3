//! Delivers events to webhooks: one task for each webhook, which sends one request at a time.

use super::Webhooks;
use super::next_step::NextStep;
use super::send::{HookReceivers, Network, Sender, UserPermits, permits_of_user};
use super::tasks::Tasks;
use rustls::ClientConfig;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{interval, sleep};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::webhook::WebhookId;

/// The longest time without a look at the rows, and the pause after an error. The clock may step while a
/// delivery is due.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Runs until `stop` changes. The next start repeats requests that were under way.
///
/// `tls` is that of the requests, or the reason for which no receiver can be trusted.
pub async fn run(
    webhooks: Arc<Webhooks>,
    tls: Result<ClientConfig, rustls::Error>,
    stop: watch::Receiver<bool>,
) {
    let network = Network::new(&webhooks, tls);
    run_with(webhooks, Arc::new(network), stop).await;
}

/// Runs as [`run`] does, with these receivers.
pub async fn run_with(
    webhooks: Arc<Webhooks>,
    receivers: Arc<dyn HookReceivers>,
    mut stop: watch::Receiver<bool>,
) {
    let sender = Sender::new(Arc::clone(&webhooks), receivers);
    let mut made = webhooks.new.notice.subscribe();
    let mut looks = interval(LOOK_EVERY);
    let mut looks_at_all = true;
    let mut tasks = Tasks::new(LOOK_EVERY);
    let mut permits: HashMap<UserId, UserPermits> = HashMap::new();
    loop {
        made.mark_unchanged();
        let found = if looks_at_all {
            webhooks.ids()
        } else {
            Ok(webhooks.new.take())
        };
        match found {
            Ok(found) => {
                permits.retain(|_, permits| Arc::strong_count(permits) > 1);
                for (owner, id) in found {
                    let permits = permits.entry(owner).or_insert_with(permits_of_user);
                    tasks.start(id, || {
                        serve(
                            Arc::clone(&webhooks),
                            sender.clone(),
                            Arc::clone(permits),
                            owner,
                            id,
                        )
                    });
                }
            }
            Err(error) => tracing::error!(error = %error.chain(), "cannot read the webhooks"),
        }
        looks_at_all = tokio::select! {
            biased;
            _ = stop.changed() => return,
            _ = made.changed() => false,
            _ = looks.tick() => true,
            has_failed = tasks.ended() => has_failed,
        };
    }
}

/// Delivers to a webhook until it is deleted.
async fn serve(
    webhooks: Arc<Webhooks>,
    sender: Sender,
    of_user: UserPermits,
    owner: UserId,
    id: WebhookId,
) {
    let mut events = webhooks.db.events_of(owner);
    let mut topics = webhooks.db.topics_of(owner);
    let mut access = webhooks.accounts.access_changed();
    let mut passed = 0;
    loop {
        // Marked before the rows are read, or a change in between would be lost.
        for changes in [&mut events, &mut access] {
            changes.mark_unchanged();
        }
        topics.mark_unchanged();
        let was_disabled = webhooks.accounts.is_disabled(owner);
        let pause = match step(&webhooks, &sender, &of_user, owner, id, &mut passed).await {
            Ok(Step::Done) => continue,
            Ok(Step::Gone) => return,
            Ok(Step::Wait(pause)) => pause.map_or(LOOK_EVERY, |pause| pause.min(LOOK_EVERY)),
            Err(error) => {
                tracing::error!(webhook = %id, error = %error.chain(), "a webhook cannot be served");
                sleep(LOOK_EVERY).await;
                continue;
            }
        };
        // Others end keys and sessions too.
        let switched = async {
            while webhooks.accounts.is_disabled(owner) == was_disabled {
                if access.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            _ = events.changed() => {}
            _ = topics.changed() => {}
            () = switched => {}
            () = sleep(pause) => {}
        }
    }
}

enum Step {
    Done,
    Gone,
    Wait(Option<Duration>),
}

async fn step(
    webhooks: &Webhooks,
    sender: &Sender,
    of_user: &UserPermits,
    owner: UserId,
    id: WebhookId,
    passed: &mut u64,
) -> Result<Step, Error> {
    Ok(match webhooks.work(owner, id, passed).await? {
        NextStep::Gone => Step::Gone,
        NextStep::Wait(pause) => Step::Wait(pause),
        NextStep::Deliver(job) => {
            let attempted = sender.send(&job, of_user).await;
            webhooks.done(owner, id, &job, attempted).await?;
            Step::Done
        }
    })
}
