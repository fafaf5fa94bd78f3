//! Section 4.7.

use crate::check::{Check, decision, spec};
use crate::context::uuid;
use anyhow::ensure;

pub(super) fn checks() -> Vec<Check> {
    vec![
        spec(
            "4.7",
            "delete answers 204, and get and list show the instance no longer",
            |c| {
                let created = c.create(&c.small("container"))?;
                c.me().delete(uuid(&created)?)?.is(204)?;
                c.me().instance(uuid(&created)?)?.is(404)?;
                let list = c.me().list()?;
                let listed = list.iter().any(|i| i["uuid"] == created["uuid"]);
                ensure!(!listed, "it is in the list");
                Ok(())
            },
        ),
        spec("4.7", "delete of what does not exist is 404", |c| {
            c.me().delete(&c.name())?.is(404)
        }),
        spec("4.7", "a second delete is 404", |c| {
            let created = c.create(&c.small("container"))?;
            c.me().delete(uuid(&created)?)?.is(204)?;
            c.me().delete(uuid(&created)?)?.is(404)
        }),
        decision(
            "4.7",
            "a deleted instance is 404 on every endpoint, by UUID and by name",
            |c| {
                let created = c.create(&c.small("container"))?;
                c.me().delete(uuid(&created)?)?.is(204)?;
                for selector in [&created["uuid"], &created["name"]] {
                    let selector = selector.as_str().unwrap_or_default();
                    for (method, path, body) in super::auth::endpoints_of(selector) {
                        c.me().send(method, &path, &body)?.is(404)?;
                    }
                }
                Ok(())
            },
        ),
    ]
}
