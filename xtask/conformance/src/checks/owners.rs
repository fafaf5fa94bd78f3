//! Sections 2.1 and 5: other users' instances are not there.

use crate::check::{Check, spec};
use crate::context::{text, uuid};
use anyhow::ensure;

const ACTIONS: [&str; 8] = [
    "get",
    "update",
    "stop",
    "restart",
    "add-port",
    "remove-port",
    "stats",
    "delete",
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![spec(
        "5",
        "the list has the caller's own instances only",
        |c| {
            let theirs = c.create_as(c.other()?, &c.small("container"))?;
            let mine = c.sample("container")?;
            let has = |list: &[serde_json::Value], one: &serde_json::Value| {
                list.iter().any(|i| i["uuid"] == one["uuid"])
            };
            let (my_list, their_list) = (c.me().list()?, c.other()?.list()?);
            ensure!(
                has(&my_list, mine) && has(&their_list, &theirs),
                "one's own is missing"
            );
            ensure!(
                !has(&my_list, &theirs) && !has(&their_list, mine),
                "another's is there"
            );
            Ok(())
        },
    )];
    for (n, action) in ACTIONS.into_iter().enumerate() {
        let name = format!("{action} of another user's instance is 404, like that of none");
        checks.push(spec("2.1", name, move |c| {
            let other = c.other()?;
            for kind in ["container", "vm"] {
                let Ok(mine) = c.sample(kind) else { continue };
                let missing = c.name();
                let ask = |selector: &str| {
                    let endpoints = super::auth::endpoints_of(selector);
                    endpoints.into_iter().nth(n).map_or_else(
                        || other.instance(selector),
                        |(method, path, body)| other.send(method, &path, &body),
                    )
                };
                let none = ask(&missing)?;
                none.is(404)?;
                for selector in [uuid(mine)?, text(mine, "name")?] {
                    let answer = ask(selector)?;
                    answer.is(404)?;
                    ensure!(answer.body == none.body, "{answer}; {none}");
                }
                c.me().instance(uuid(mine)?)?.is(200)?;
            }
            Ok(())
        }));
    }
    checks
}
