//! Sections 4.1 and 4.2.

use crate::check::{Check, decision, spec};
use crate::client::INSTANCES;
use crate::context::{same, text, uuid};
use anyhow::{Context as _, ensure};

pub(super) fn checks() -> Vec<Check> {
    vec![
        spec(
            "4.1",
            "the list is an array of all VMs and containers of the caller",
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
                    ensure!(listed == 1, "the {kind} is in it {listed} times");
                }
                Ok(())
            },
        ),
        spec("4.1", "the list is 401 without a key", |c| {
            c.anyone().get(INSTANCES)?.is(401)
        }),
        decision(
            "4.1",
            "the list is in the order of creation, oldest first",
            |c| {
                let mut made = Vec::new();
                for _ in 0..3 {
                    made.push(c.create(&c.small("container"))?["uuid"].clone());
                }
                let mut listed: Vec<_> = c
                    .me()
                    .list()?
                    .into_iter()
                    .map(|mut i| i["uuid"].take())
                    .collect();
                listed.retain(|id| made.contains(id));
                ensure!(listed == made, "created {made:?}, listed {listed:?}");
                Ok(())
            },
        ),
        spec(
            "4.2",
            "get answers with the instance as the list has it",
            |c| {
                let instance = c.sample("container")?;
                let got = c.me().instance(uuid(instance)?)?.expect(200)?;
                let list = c.me().list()?;
                let listed = list.iter().find(|i| i["uuid"] == instance["uuid"]);
                for (field, value) in listed.and_then(|l| l.as_object()).context("not listed")? {
                    same(&got, field, value)?;
                }
                Ok(())
            },
        ),
        spec("4.2", "get of what does not exist is 404", |c| {
            c.me()
                .instance("00000000-0000-4000-8000-000000000000")?
                .is(404)?;
            c.me().instance(&c.name())?.is(404)
        }),
        decision(
            "4.2",
            "the path with a name of characters that no name has is 404",
            |c| {
                for odd in [
                    "A_B",
                    "x",
                    "%2F",
                    "%00",
                    "..%2f..",
                    "%ff",
                    "a%20b",
                    "%F0%9F%9A%A2",
                ] {
                    c.me().instance(odd)?.is(404)?;
                }
                c.me().instance(&"n".repeat(200))?.is(404)
            },
        ),
        decision("4.2", "a 404 tells what is not found under `detail`", |c| {
            let answer = c.me().instance(&c.name())?;
            ensure!(!answer.detail()?.is_empty(), "{answer}");
            Ok(())
        }),
        decision("4.1", "HEAD is GET without a body", |c| {
            let name = text(c.sample("container")?, "name")?;
            for path in [INSTANCES.to_owned(), crate::client::instance(name)] {
                let answer = c.me().raw("HEAD", &path, &[], None)?;
                answer.is(200)?;
                ensure!(answer.text.is_empty(), "{answer}");
            }
            Ok(())
        }),
    ]
}
