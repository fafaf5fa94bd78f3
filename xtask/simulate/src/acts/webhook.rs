//! Acts of users on their webhooks.

use crate::act::Args;
use crate::acts;
use crate::model::Ask;
use crate::receivers::PATHS;
use crate::sim::Sim;

acts![
    subscribe 8,
    unsubscribe 1,
];

/// The types of events that a webhook gets, or all.
const SOME: [&str; 3] = ["created", "stopped", "snapshot-ready"];

/// A user has one webhook at a time: the order in which two of one user wake is left to chance.
async fn subscribe(sim: Sim, args: Args) {
    let Some((who, caller)) = args.user(&sim) else {
        return;
    };
    let owner = caller.user;
    let has_one = sim.webhooks.list(&caller).map(|all| !all.is_empty());
    if has_one.unwrap_or(true) || sim.outside.model.lock().subscribes(owner) {
        return;
    }
    let number = *sim.outside.asks.lock();
    let path = args.of(1, &PATHS).unwrap_or_default();
    let url = format!("https://{who}-{number}.example{path}");
    let types = if args.is_one_in(2, 3) {
        SOME.map(str::to_owned).to_vec()
    } else {
        Vec::new()
    };
    let words = format!("creates a webhook to {url} for {types:?}");
    let ask = Ask::Subscribe {
        owner,
        url: url.clone(),
    };
    let made = sim.webhooks.create(&caller, url, types);
    sim.ask(who, words, Some(ask), made, |_| None).await;
}

async fn unsubscribe(sim: Sim, args: Args) {
    let Some((who, caller)) = args.user(&sim) else {
        return;
    };
    let own = sim.webhooks.list(&caller).unwrap_or_default();
    let Some(webhook) = own.into_iter().next() else {
        return;
    };
    let words = format!("deletes the webhook to {}", webhook.url);
    let ask = Ask::Unsubscribe(webhook.id);
    let deleted = sim.webhooks.delete(&caller, webhook.id);
    sim.ask(who, words, Some(ask), deleted, |()| None).await;
}
