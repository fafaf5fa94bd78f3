//! Section 2.2.

use crate::check::{Check, decision, spec};
use crate::client::INSTANCES;
use crate::context::{Context, same, text, uuid};
use anyhow::{Result, bail, ensure};
use serde_json::json;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec("2.2", "a name may have 2 characters", two_characters),
        spec("2.2", "a name may have 63 characters", |c| {
            let name = format!("{:a<63}", c.name());
            created_as(c, &name)
        }),
        spec(
            "2.2",
            "a name may have digits and hyphens, also at the start and in a row",
            |c| created_as(c, &format!("0-{}--9", c.name())),
        ),
        spec(
            "2.2",
            "without a name, one of two words and a number is generated",
            |c| {
                let mut body = c.small("container");
                if let Some(body) = body.as_object_mut() {
                    body.remove("name");
                }
                let created = c.create(&body)?;
                let name = text(&created, "name")?;
                let parts: Vec<&str> = name.split('-').collect();
                let [first, second, number] = parts.as_slice() else {
                    bail!("`{name}` does not have three parts");
                };
                for word in [first, second] {
                    let is_word = !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
                    ensure!(is_word, "`{word}` in `{name}` is not a word");
                }
                ensure!(number.parse::<u64>().is_ok(), "`{number}` is not a number");
                Ok(())
            },
        ),
        decision("2.2", "a name of the form of a UUID is refused", |c| {
            refused(c, "0f8fad5b-d9cb-469f-a165-70867728950e")
        }),
        decision(
            "2.2",
            "a name that is taken is refused, and says nothing of whose it is",
            |c| {
                let taken = c.sample("container")?["name"].clone();
                let body = c.small_with("container", &json!({ "name": taken }));
                let mine = c.try_create(c.me(), &body)?;
                mine.refuses("name")?;
                let theirs = c.try_create(c.other()?, &body)?;
                theirs.refuses("name")?;
                ensure!(
                    mine.body == theirs.body,
                    "the two answers differ: {mine}; {theirs}"
                );
                Ok(())
            },
        ),
        decision(
            "2.2",
            "the name of a deleted instance is free at once",
            |c| {
                let created = c.create(&c.small("container"))?;
                c.me().delete(uuid(&created)?)?.is(204)?;
                let body = c.small_with("container", &json!({ "name": created["name"] }));
                let again = c.create(&body)?;
                ensure!(again["uuid"] != created["uuid"], "the UUID is the same");
                Ok(())
            },
        ),
    ];
    let long = "a".repeat(64);
    for (what, name) in [
        ("of 1 character", "a"),
        ("of 64 characters", long.as_str()),
        ("that is empty", ""),
        ("with an uppercase letter", "wordA"),
        ("with an underscore", "a_b"),
        ("with a dot", "a.b"),
        ("with a space", "a b"),
        ("with a slash", "a/b"),
        ("with a letter beyond ASCII", "größe"),
        ("with a line break", "ab\n"),
        ("that starts with a hyphen", "-ab"),
        ("that ends with a hyphen", "ab-"),
        ("of hyphens only", "--"),
    ] {
        let name = name.to_owned();
        checks.push(spec("2.2", format!("a name {what} is refused"), move |c| {
            refused(c, &name)
        }));
    }
    checks
}

fn created_as(c: &Context<'_>, name: &str) -> Result<()> {
    let created = c.create(&c.small_with("container", &json!({ "name": name })))?;
    same(&created, "name", &json!(name))?;
    c.me().instance(name)?.is(200)
}

fn refused(c: &Context<'_>, name: &str) -> Result<()> {
    let body = c.small_with("container", &json!({ "name": name }));
    c.try_create(c.me(), &body)?.refuses("name")?;
    let instance = uuid(c.sample("container")?)?;
    c.me().patch(instance, &json!({ "name": name }))?.is(400)
}

/// Such names are few: another user may have one, so several are tried.
fn two_characters(c: &Context<'_>) -> Result<()> {
    for name in ["q7", "7q", "x9", "zz", "0k", "w3", "88", "j1"] {
        let body = c.small_with("container", &json!({ "name": name }));
        let answer = c.me().post(INSTANCES, &body)?;
        c.keep(c.me(), &answer);
        if answer.status == 201 {
            return same(&answer.body, "name", &json!(name));
        }
        answer.refuses("name")?;
    }
    bail!("none of eight names of two characters is accepted")
}
