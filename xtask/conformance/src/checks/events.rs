//! Events of a user's instances.

use crate::check::{Check, decision};
use crate::client::Client;
use crate::context::uuid;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const EVENTS: &str = "/api/event/";

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "5",
            "the events of an instance are listed for its owner alone",
            |c| {
                let created = c.running("container")?;
                let id = uuid(&created)?;
                c.me().patch(id, &json!({ "name": c.name() }))?.is(200)?;
                c.me().delete(id)?.is(204)?;
                let path = format!("{EVENTS}?instance={id}");
                let events = list(c.me(), &path)?;
                let kinds: Vec<_> = events.iter().map(|event| &event["type"]).collect();
                ensure!(kinds.len() >= 4, "it has {kinds:?}");
                let expected = ["created", "ready", "renamed", "deleted"];
                ensure!(kinds[..4] == expected, "it has {kinds:?}");
                let ids: Vec<_> = events.iter().map(|e| e["id"].as_u64()).collect();
                ensure!(ids.is_sorted(), "their ids are {ids:?}");
                let actor = |n: usize| events[n]["actor"]["kind"].as_str();
                ensure!(actor(0) == Some("key") && actor(1) == Some("node"));
                // Another event may follow meanwhile.
                let second = events[1]["id"].as_u64().context("no id")?;
                let rest = list(c.me(), &format!("{path}&after={second}"))?;
                ensure!(rest.starts_with(&events[2..]), "after {second}: {rest:?}");
                ensure!(list(c.me(), &format!("{path}&limit=2"))?.len() == 2);
                c.other()?.get(&path)?.is(404)
            },
        ),
        decision(
            "5",
            "wrong parameters of a list of events are refused",
            |c| {
                for (query, field) in [
                    ("limit=-1", "limit"),
                    ("limit=0", "limit"),
                    ("limit=1001", "limit"),
                    ("after=-1", "after"),
                    ("after=1&after=2", "after"),
                    ("changes=1", "changes"),
                ] {
                    c.me().get(&format!("{EVENTS}?{query}"))?.refuses(field)?;
                }
                c.me()
                    .get(&format!("{EVENTS}?instance={}", c.name()))?
                    .is(404)
            },
        ),
    ]
}

fn list(user: &Client, path: &str) -> Result<Vec<Value>> {
    let events = user.get(path)?.expect(200)?;
    Ok(events.as_array().context("no array")?.clone())
}
