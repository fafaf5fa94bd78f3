//! Sections 2.1 and 5: the instances of other users are hidden.

use super::auth::{ACTIONS, instance_endpoints, on_action};
use crate::check::{Check, spec};
use crate::context::{text, uuid};
use anyhow::ensure;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![spec("5", "list returns only the caller's instances", |c| {
        let theirs = c.create_as(c.other()?, &c.small("container"))?;
        let mine = c.sample("container")?;
        let has = |list: &[serde_json::Value], one: &serde_json::Value| {
            list.iter().any(|i| i["uuid"] == one["uuid"])
        };
        let (my_list, their_list) = (c.me().list()?, c.other()?.list()?);
        ensure!(
            has(&my_list, mine) && has(&their_list, &theirs),
            "a list lacks its caller's instance"
        );
        ensure!(
            !has(&my_list, &theirs) && !has(&their_list, mine),
            "a list has another user's instance"
        );
        Ok(())
    })];
    for (n, action) in ACTIONS.into_iter().enumerate() {
        let rule = "returns 404 for another user's instance, as for a missing instance";
        checks.push(on_action("2.1", action, rule, move |c| {
            let other = c.other()?;
            for kind in ["container", "vm"] {
                let Ok(mine) = c.sample(kind) else { continue };
                let missing = c.name();
                let send = |selector: &str| {
                    let endpoints = instance_endpoints(selector);
                    endpoints.into_iter().nth(n).map_or_else(
                        || other.instance(selector),
                        |(method, path, body)| other.send(method, &path, &body),
                    )
                };
                let none = send(&missing)?;
                none.is(404)?;
                for selector in [uuid(mine)?, text(mine, "name")?] {
                    let response = send(selector)?;
                    response.is(404)?;
                    ensure!(response.body == none.body, "{response}; {none}");
                }
                c.me().instance(uuid(mine)?)?.is(200)?;
            }
            Ok(())
        }));
    }
    checks
}
