//! Section 2.2: names.

use crate::check::{Check, decision, spec};
use crate::client::INSTANCES;
use crate::context::{Context, expect_field, text, uuid};
use anyhow::{Result, bail, ensure};
use serde_json::json;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec("2.2", "a name may have 2 characters", two_characters),
        spec("2.2", "a name may have 63 characters", |c| {
            let name = format!("{:a<63}", c.name());
            expect_accepted(c, &name)
        }),
        spec(
            "2.2",
            "a name may begin with a digit and have consecutive hyphens",
            |c| expect_accepted(c, &format!("0-{}--9", c.name())),
        ),
        spec(
            "2.2",
            "create generates a name of two words and a number",
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
        decision("2.2", "a name with the form of a UUID is refused", |c| {
            expect_refused(c, "0f8fad5b-d9cb-469f-a165-70867728950e")
        }),
        decision(
            "2.2",
            "the refusal of a taken name does not reveal the owner",
            |c| {
                let taken = c.sample("container")?["name"].clone();
                let body = c.small_with("container", &json!({ "name": taken }));
                let mine = c.try_create(c.me(), &body)?;
                mine.refuses("name")?;
                let theirs = c.try_create(c.other()?, &body)?;
                theirs.refuses("name")?;
                ensure!(
                    mine.body == theirs.body,
                    "the responses differ: {mine}; {theirs}"
                );
                Ok(())
            },
        ),
        decision("2.2", "delete frees the name at once, for any user", |c| {
            let created = c.create(&c.small("container"))?;
            c.me().delete(uuid(&created)?)?.is(204)?;
            let body = c.small_with("container", &json!({ "name": created["name"] }));
            let again = c.create(&body)?;
            ensure!(
                again["uuid"] != created["uuid"],
                "two instances have one UUID"
            );
            c.me().delete(uuid(&again)?)?.is(204)?;
            c.create_as(c.other()?, &body).map(drop)
        }),
    ];
    let long = "a".repeat(64);
    for (description, name) in [
        ("of 1 character", "a"),
        ("of 64 characters", long.as_str()),
        ("of 0 characters", ""),
        ("with an uppercase letter", "wordA"),
        ("with an underscore", "a_b"),
        ("with a dot", "a.b"),
        ("with a space", "a b"),
        ("with a slash", "a/b"),
        ("with a non-ASCII letter", "größe"),
        ("with a line break", "ab\n"),
        ("with a leading hyphen", "-ab"),
        ("with a trailing hyphen", "ab-"),
        ("of hyphens only", "--"),
    ] {
        let name = name.to_owned();
        checks.push(spec(
            "2.2",
            format!("a name {description} is refused"),
            move |c| expect_refused(c, &name),
        ));
    }
    checks
}

fn expect_accepted(c: &Context<'_>, name: &str) -> Result<()> {
    let created = c.create(&c.small_with("container", &json!({ "name": name })))?;
    expect_field(&created, "name", &json!(name))?;
    c.me().instance(name)?.is(200)
}

fn expect_refused(c: &Context<'_>, name: &str) -> Result<()> {
    let body = c.small_with("container", &json!({ "name": name }));
    c.try_create(c.me(), &body)?.refuses("name")?;
    let instance = uuid(c.sample("container")?)?;
    c.me().patch(instance, &json!({ "name": name }))?.is(400)
}

/// Tries several names, because another user may have taken one.
fn two_characters(c: &Context<'_>) -> Result<()> {
    for name in ["q7", "7q", "x9", "zz", "0k", "w3", "88", "j1"] {
        let body = c.small_with("container", &json!({ "name": name }));
        let response = c.me().post(INSTANCES, &body)?;
        c.delete_later(c.me(), &response);
        if response.status == 201 {
            return expect_field(&response.body, "name", &json!(name));
        }
        response.refuses("name")?;
    }
    bail!("none of eight names of two characters is accepted")
}
