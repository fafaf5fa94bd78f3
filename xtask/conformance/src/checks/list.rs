//! Sections 4.1 and 4.2: list and show.

use crate::check::{Check, decision, spec};
use crate::client::INSTANCES;
use crate::context::{Context, expect_field, text, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

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
        decision(
            "4.1",
            "pages follow each other to the end of the list",
            pages,
        )
        .exclusive(),
        decision("4.1", "a wrong parameter of a page is 400 on it", |c| {
            for (query, fields) in [
                ("limit=0", &["limit"][..]),
                ("limit=1001", &["limit"]),
                ("limit=x&after=y", &["limit", "after"]),
                ("limit=1&limit=2", &["limit"]),
                ("after=x", &["after"]),
            ] {
                let response = c.me().get(&format!("{INSTANCES}?{query}"))?;
                fields
                    .iter()
                    .try_for_each(|field| response.refuses(field))?;
                let named = response.body.as_object().map_or(0, serde_json::Map::len);
                ensure!(named == fields.len(), "{query}: {response}");
            }
            c.me().get(&format!("{INSTANCES}?after=0"))?.is(200)
        }),
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

/// No other check changes the list meanwhile.
fn pages(c: &Context<'_>) -> Result<()> {
    let created: Vec<Value> = (0..5)
        .map(|_| c.create(&c.small("container")))
        .collect::<Result<_>>()?;
    for instance in &created {
        c.wait(uuid(instance)?, "running")?;
    }
    let whole = c.me().get(INSTANCES)?;
    ensure!(whole.header("link").is_none(), "the whole list has a Link");
    let ids = |page: &Value| -> Vec<Value> {
        let page = page.as_array().into_iter().flatten();
        page.map(|instance| instance["uuid"].clone()).collect()
    };
    let all = ids(&whole.body);
    let (mut path, mut paged) = (format!("{INSTANCES}?limit=2"), Vec::new());
    loop {
        let page = c.me().get(&path)?;
        let part = ids(&page.body);
        let full = part.len() == 2 || (part.len() == 1 && page.header("link").is_none());
        ensure!(full, "a page has {} instances", part.len());
        paged.extend(part);
        let Some(link) = page.header("link") else {
            break;
        };
        path = next_page(link)?.to_owned();
    }
    ensure!(paged == all, "paged {paged:?}, listed {all:?}");
    // No empty page follows a full last page.
    let last = c.me().get(&format!("{INSTANCES}?limit={}", all.len()))?;
    ensure!(
        last.header("link").is_none() && ids(&last.body) == all,
        "{last}"
    );
    // A page begins where the one before ended, although its last instance was deleted.
    let first = c
        .me()
        .get(&format!("{INSTANCES}?limit={}", all.len() - 3))?;
    c.me().delete(uuid(&created[1])?)?.is(204)?;
    let rest = c
        .me()
        .get(next_page(first.header("link").context("no Link")?)?)?;
    ensure!(ids(&rest.body) == ids(&json!(created[2..])), "{rest}");
    Ok(())
}

fn next_page(link: &str) -> Result<&str> {
    let url = link
        .strip_prefix('<')
        .and_then(|link| link.strip_suffix(">; rel=\"next\""));
    url.with_context(|| format!("Link is {link}"))
}
