//! Section 4.7: delete.

use super::auth::{additional_endpoints, instance_endpoints};
use crate::check::{Check, decision, spec};
use crate::context::uuid;
use anyhow::ensure;

pub(super) fn checks() -> Vec<Check> {
    vec![
        spec(
            "4.7",
            "delete returns 204 and removes the instance from show and list",
            |c| {
                let created = c.create(&c.small("container"))?;
                c.me().delete(uuid(&created)?)?.is(204)?;
                c.me().instance(uuid(&created)?)?.is(404)?;
                let list = c.me().list()?;
                let listed = list.iter().any(|i| i["uuid"] == created["uuid"]);
                ensure!(!listed, "the list still has the instance");
                Ok(())
            },
        ),
        spec("4.7", "delete returns 404 for a missing instance", |c| {
            c.me().delete(&c.name())?.is(404)
        }),
        spec("4.7", "a second delete returns 404", |c| {
            let created = c.create(&c.small("container"))?;
            c.me().delete(uuid(&created)?)?.is(204)?;
            c.me().delete(uuid(&created)?)?.is(404)
        }),
        decision(
            "4.7",
            "every endpoint returns 404 for a deleted instance, by UUID and by name",
            |c| {
                let created = c.create(&c.small("container"))?;
                c.me().delete(uuid(&created)?)?.is(204)?;
                for selector in [&created["uuid"], &created["name"]] {
                    let selector = selector.as_str().unwrap_or_default();
                    let endpoints = instance_endpoints(selector);
                    let all = endpoints.into_iter().chain(additional_endpoints(selector));
                    for (method, path, body) in all {
                        c.me().send(method, &path, &body)?.is(404)?;
                    }
                }
                Ok(())
            },
        ),
    ]
}
