//! Delivers events to webhooks: one task for each webhook, which sends one request at a time.

mod send;
mod tasks;

use send::{Sender, UserPermits, places_of_user};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tasks::Tasks;
use tokio::sync::watch;
use tokio::time::{interval, sleep};
use wharf_control::App;
use wharf_control::webhook::Work;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::webhook::WebhookId;

/// The longest time without a look at the rows, and the pause after an error. The clock may step while a
/// delivery is due.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Runs until `stop` changes. The next start repeats requests that were under way.
pub async fn run(app: Arc<App>, mut stop: watch::Receiver<bool>) {
    let sender = Sender::new(Arc::clone(&app));
    let mut made = app.webhooks_made();
    let mut looks = interval(LOOK_EVERY);
    let mut looks_at_all = true;
    let mut tasks = Tasks::new(LOOK_EVERY);
    let mut places: HashMap<UserId, UserPermits> = HashMap::new();
    loop {
        made.mark_unchanged();
        let found = if looks_at_all {
            app.webhook_ids()
        } else {
            Ok(app.take_new_webhooks())
        };
        match found {
            Ok(webhooks) => {
                places.retain(|_, places| Arc::strong_count(places) > 1);
                for (owner, id) in webhooks {
                    let places = places.entry(owner).or_insert_with(places_of_user);
                    tasks.start(id, || {
                        serve(
                            Arc::clone(&app),
                            sender.clone(),
                            Arc::clone(places),
                            owner,
                            id,
                        )
                    });
                }
            }
            Err(error) => tracing::error!(error = %error.chain(), "cannot read the webhooks"),
        }
        looks_at_all = tokio::select! {
            _ = stop.changed() => return,
            _ = made.changed() => false,
            _ = looks.tick() => true,
            has_failed = tasks.ended() => has_failed,
        };
    }
}

/// Delivers to a webhook until it is deleted.
async fn serve(app: Arc<App>, sender: Sender, of_user: UserPermits, owner: UserId, id: WebhookId) {
    let mut events = app.events_of(owner);
    let mut webhooks = app.topics_of(owner);
    let mut access = app.access_changed();
    let mut passed = 0;
    loop {
        // Marked before the rows are read, or a change in between would be lost.
        for changes in [&mut events, &mut access] {
            changes.mark_unchanged();
        }
        webhooks.mark_unchanged();
        let was_disabled = app.is_disabled(owner);
        let pause = match step(&app, (&sender, &of_user), (owner, id), &mut passed).await {
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
            while app.is_disabled(owner) == was_disabled {
                if access.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            _ = events.changed() => {}
            _ = webhooks.changed() => {}
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
    app: &App,
    (sender, of_user): (&Sender, &UserPermits),
    (owner, id): (UserId, WebhookId),
    passed: &mut u64,
) -> Result<Step, Error> {
    Ok(match app.webhook_work(owner, id, passed).await? {
        Work::Gone => Step::Gone,
        Work::Wait(pause) => Step::Wait(pause),
        Work::Deliver(job) => {
            let attempted = sender.send(&job, of_user).await;
            app.webhook_done(owner, id, &job, attempted).await?;
            Step::Done
        }
    })
}
