//! Sections 4.1 and 4.2: list and show.

use crate::check::{Check, decision, spec};
use crate::client::INSTANCES;
use crate::context::{expect_field, text, uuid};
use anyhow::{Context as _, ensure};

pub(super) fn checks() -> Vec<Check> {
    vec![
        spec(
            "4.1",
            "list returns an array with each instance of the caller once",
            |c| {
                let list = c.me().list()?;
                for kind in ["container", "vm"] {
                    let Ok(instance) = c.sample(kind) else {
                        continue;
                    };
                    let listed = list
                        .iter()
                        .filter(|i| i["uuid"] == instance["uuid"])
                        .count();
                    ensure!(listed == 1, "the list has the {kind} {listed} times");
                }
                Ok(())
            },
        ),
        spec("4.1", "list returns 401 without a key", |c| {
            c.anonymous().get(INSTANCES)?.is(401)
        }),
        decision(
            "4.1",
            "list returns instances in the order of creation, oldest first",
            |c| {
                let mut created = Vec::new();
                for _ in 0..3 {
                    created.push(c.create(&c.small("container"))?["uuid"].clone());
                }
                let mut listed: Vec<_> = c
                    .me()
                    .list()?
                    .into_iter()
                    .map(|mut i| i["uuid"].take())
                    .collect();
                listed.retain(|id| created.contains(id));
                ensure!(listed == created, "created {created:?}, listed {listed:?}");
                Ok(())
            },
        ),
        spec("4.2", "show and list return equal values", |c| {
            let instance = c.sample("container")?;
            let got = c.me().instance(uuid(instance)?)?.expect(200)?;
            let list = c.me().list()?;
            let listed = list.iter().find(|i| i["uuid"] == instance["uuid"]);
            for (field, value) in listed
                .and_then(|l| l.as_object())
                .context("the list lacks the instance")?
            {
                expect_field(&got, field, value)?;
            }
            Ok(())
        }),
        spec("4.2", "show returns 404 for a missing instance", |c| {
            c.me()
                .instance("00000000-0000-4000-8000-000000000000")?
                .is(404)?;
            c.me().instance(&c.name())?.is(404)
        }),
        decision("4.2", "show returns 404 for an invalid name", |c| {
            for invalid in [
                "A_B",
                "x",
                "%2F",
                "%00",
                "..%2f..",
                "%ff",
                "a%20b",
                "%F0%9F%9A%A2",
            ] {
                c.me().instance(invalid)?.is(404)?;
            }
            c.me().instance(&"n".repeat(200))?.is(404)
        }),
        decision("4.2", "a 404 has a text under `detail`", |c| {
            let response = c.me().instance(&c.name())?;
            ensure!(!response.detail()?.is_empty(), "{response}");
            Ok(())
        }),
        decision(
            "4.1",
            "HEAD returns the status of GET without a body",
            |c| {
                let name = text(c.sample("container")?, "name")?;
                for path in [INSTANCES.to_owned(), crate::client::instance_path(name)] {
                    let response = c.me().raw("HEAD", &path, &[], None)?;
                    response.is(200)?;
                    ensure!(response.text.is_empty(), "{response}");
                }
                Ok(())
            },
        ),
    ]
}
