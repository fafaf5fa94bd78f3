//! Volumes: their life, fields, entity tags and keys. `volume_mounts` attaches and `volume_shares` shares them.

use super::conditional::{etag, with};
use super::keys;
use crate::check::{Check, decision, skip};
use crate::client::{Client, Response, VOLUMES, action_path, volume_path};
use crate::context::{Context, expect_field, text, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const FIELDS: [&str; 11] = [
    "id",
    "name",
    "size_gib",
    "state",
    "reason",
    "cpu_tier",
    "owner_email",
    "shared",
    "attached_to",
    "created_at",
    "storage_cost_hourly_usd",
];

/// A tag that no representation has.
pub(super) const OTHER: &str = "\"another-representation\"";
/// The largest size.
pub(super) const LARGEST: u64 = 2000;
/// The most volumes of the largest size before the rule about capacity gives up.
const MANY: usize = 6;

/// Every endpoint of volumes, with a valid body.
pub(super) fn volume_endpoints(selector: &str) -> Vec<(&'static str, String, Value)> {
    let (one, shares) = (volume_path(selector), share_path(selector));
    vec![
        ("GET", VOLUMES.to_owned(), Value::Null),
        ("POST", VOLUMES.to_owned(), json!({})),
        ("GET", one.clone(), Value::Null),
        ("PATCH", one.clone(), json!({})),
        ("GET", shares.clone(), Value::Null),
        (
            "POST",
            shares.clone(),
            json!({ "user": "carol@example.org" }),
        ),
        ("DELETE", format!("{shares}none/"), Value::Null),
        ("DELETE", one, Value::Null),
    ]
}

/// The path of the shares of a volume.
pub(super) fn share_path(selector: &str) -> String {
    format!("{}share/", volume_path(selector))
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4",
            "a volume is created, shown, listed, renamed and deleted for its owner",
            |c| {
                let created = c.volume()?;
                let (id, name) = (text(&created, "id")?, text(&created, "name")?);
                ready(c, id)?;
                for selector in [id, name, &id.to_uppercase()] {
                    let shown = shown(c, selector)?;
                    ensure!(shown["id"] == created["id"], "{selector}: {shown}");
                }
                ensure!(
                    listed(c.me(), id)? && !listed(c.other()?, id)?,
                    "not listed, or to another user"
                );
                for (method, path, body) in volume_endpoints(id) {
                    if path == VOLUMES {
                        continue;
                    }
                    let theirs = c.other()?.send(method, &path, &body)?;
                    ensure!(theirs.status == 404, "{method} {path}: {theirs}");
                    let path = path.replace(id, &c.name());
                    let missing = c.me().send(method, &path, &body)?;
                    ensure!(missing.status == 404, "{method} {path}: {missing}");
                    ensure!(missing.body == theirs.body, "{missing}; {theirs}");
                }
                let other = c.other()?;
                other.get(&volume_path(name))?.is(404)?;
                let wrong = json!({ "name": 7 });
                other.send("PATCH", &volume_path(id), &wrong)?.is(404)?;
                let renamed = c.name();
                let answer = patch(c, id, &json!({ "name": renamed }))?.expect(200)?;
                expect_field(&answer, "name", &json!(renamed))?;
                c.me().get(&volume_path(name))?.is(404)?;
                // The name is free at once.
                c.volume_with(&json!({ "name": name }))?;
                delete(c, id)?.is(204)?;
                c.me().get(&volume_path(id))?.is(404)?;
                delete(c, id)?.is(404)?;
                ensure!(!listed(c.me(), id)?, "it is still listed");
                c.volume_with(&json!({ "name": renamed })).map(drop)
            },
        ),
        decision("4", "a volume has every field, and no others", |c| {
            let created = c.volume()?;
            let shown = shown(c, text(&created, "id")?)?;
            for volume in [&created, &shown] {
                let fields = volume.as_object().context("not an object")?;
                let fields: Vec<_> = fields.keys().map(String::as_str).collect();
                let known = FIELDS.iter().all(|field| fields.contains(field));
                ensure!(known && fields.len() == FIELDS.len(), "{volume}");
                for (field, value) in [
                    ("size_gib", json!(1)),
                    ("reason", Value::Null),
                    ("shared", json!(false)),
                    ("attached_to", json!([])),
                    ("cpu_tier", json!("general-purpose")),
                ] {
                    expect_field(volume, field, &value)?;
                }
            }
            let offer = c.me().get("/api/offer/")?.expect(200)?;
            let tiers = offer["cpu_tiers"].as_array().context("no tiers")?;
            let tier = tiers.iter().find(|t| t["name"] == created["cpu_tier"]);
            let rate = "storage_cost_hourly_usd";
            expect_field(&created, rate, &tier.context("no such tier")?[rate])
        }),
        decision(
            "4",
            "wrong fields of a volume are refused, all at once",
            |c| {
                let taken = c.volume()?;
                let wrong = [
                    ("name", json!("")),
                    ("name", json!("A")),
                    ("name", json!("-a-")),
                    ("name", json!("x".repeat(64))),
                    ("name", taken["id"].clone()),
                    ("name", taken["name"].clone()),
                    ("name", Value::Null),
                    ("size_gib", json!(0)),
                    ("size_gib", json!(LARGEST + 1)),
                    ("size_gib", json!("4")),
                    ("size_gib", json!(1.5)),
                    ("cpu_tier", json!("fast")),
                    ("node", json!("east")),
                    ("state", json!("ready")),
                ];
                for (field, value) in wrong {
                    let mut body = json!({ "name": c.name(), "size_gib": 1 });
                    body[field] = value;
                    try_create(c, &body)?.refuses(field)?;
                }
                let all = try_create(c, &json!({ "cpu_tier": 1, "id": 1 }))?;
                for field in ["name", "size_gib", "cpu_tier", "id"] {
                    all.refuses(field)?;
                }
                let id = text(&taken, "id")?;
                for field in ["size_gib", "cpu_tier", "id"] {
                    patch(c, id, &json!({ field: 1 }))?.refuses(field)?;
                }
                for name in [json!("A"), c.volume()?["name"].clone()] {
                    patch(c, id, &json!({ "name": name }))?.refuses("name")?;
                }
                let before = shown(c, id)?;
                let same = json!({ "name": before["name"] });
                for nothing in [json!({}), json!({ "name": null }), same] {
                    patch(c, id, &nothing)?.is(200)?;
                }
                ensure!(shown(c, id)?["name"] == before["name"], "it changed");
                let body = json!({ "name": c.name(), "size_gib": 1.0, "cpu_tier": null });
                try_create(c, &body)?.is(201)
            },
        ),
        decision(
            "4",
            "endpoints of volumes check type and size of a body",
            |c| {
                let volume = c.volume()?;
                let id = text(&volume, "id")?;
                let mut endpoints = volume_endpoints(id);
                let instance = uuid(c.sample("container")?)?;
                for action in ["attach-volume", "detach-volume"] {
                    endpoints.push(("POST", action_path(instance, action), json!({})));
                }
                bodies_are_checked(c, &endpoints)?;
                c.me().get(&volume_path(id))?.is(200)
            },
        ),
        decision("4", "volumes have entity tags, in get and list", |c| {
            let created = c.volume()?;
            let id = text(&created, "id")?;
            ready(c, id)?;
            let path = volume_path(id);
            has_tag(c, &path)?;
            has_tag(c, VOLUMES)?;
            let before = etag(&c.me().get(&path)?)?;
            let name = json!({ "name": c.name() });
            for (method, body) in [("PATCH", &name), ("DELETE", &Value::Null)] {
                with(c.me(), method, &path, ("If-Match", OTHER), body)?.is(412)?;
            }
            ensure!(etag(&c.me().get(&path)?)? == before, "it changed");
            let changed = with(c.me(), "PATCH", &path, ("If-Match", &before), &name)?;
            changed.is(200)?;
            let after = etag(&c.me().get(&path)?)?;
            ensure!(etag(&changed)? == after && after != before, "{after}");
            let stale = ("If-Match", before.as_str());
            with(c.me(), "DELETE", &path, stale, &Value::Null)?.is(412)?;
            with(c.me(), "DELETE", &path, ("If-Match", "*"), &Value::Null)?.is(204)
        }),
        decision("4", "the list of volumes has pages", |c| {
            let ids = [c.volume()?, c.volume()?].map(|volume| volume["id"].clone());
            has_pages(c, VOLUMES, &ids)
        }),
        decision(
            "4",
            "a new volume with the Idempotency-Key and body of an earlier one gets its answer",
            |c| {
                let (key, body) = (c.name(), json!({ "name": c.name(), "size_gib": 1 }));
                let create = |key: &str, body: &Value| -> Result<Response> {
                    let answer = with(c.me(), "POST", VOLUMES, ("Idempotency-Key", key), body)?;
                    c.delete_later(c.me(), &answer);
                    Ok(answer)
                };
                // A service without volumes ends the check here.
                c.volume()?;
                let first = create(&key, &body)?;
                first.is(201)?;
                let again = create(&key, &body)?;
                ensure!(again.status == 201 && again.body == first.body, "{again}");
                let other = create(&key, &json!({ "name": c.name(), "size_gib": 1 }))?;
                other.is(422)?;
                ensure!(other.detail()?.contains("another body"), "{other}");
                let id = text(&first.body, "id")?;
                delete(c, id)?.is(204)?;
                let late = create(&key, &body)?;
                ensure!(late.status == 201 && late.body["id"] == id, "{late}");
                ensure!(!listed(c.me(), id)?, "it was made again");
                create("a b", &body)?.refuses("Idempotency-Key")
            },
        ),
        decision("4", "a volume larger than the free disks is a 422", |c| {
            c.volume()?;
            for _ in 0..MANY {
                let body = json!({ "name": c.name(), "size_gib": LARGEST });
                let answer = try_create(c, &body)?;
                if answer.status == 201 {
                    continue;
                }
                let refused = answer.expect(422)?;
                let detail = &refused["detail"];
                ensure!(detail["bottleneck"] == json!(["size_gib"]), "{refused}");
                ensure!(detail["requested"]["size_gib"] == LARGEST, "{refused}");
                let near = detail["nearest_available"]["size_gib"].as_u64();
                let near = near.context("no integer")?;
                ensure!(near < LARGEST, "{refused}");
                if near > 0 {
                    let body = json!({ "name": c.name(), "size_gib": near });
                    try_create(c, &body)?.is(201)?;
                }
                return Ok(());
            }
            skip("the service has disks for many of the largest volumes")
        })
        .exclusive(),
        decision(
            "5",
            "a key sees the parts of a volume that it may read",
            |c| {
                let (writer, of_writer) = keys::create(c, &json!({ "scopes": ["write"] }))?;
                let body = json!({ "name": c.name(), "size_gib": 1 });
                let created = writer.post(VOLUMES, &body)?;
                c.delete_later(c.me(), &created);
                if created.status == 404 {
                    return skip("the service has no volumes");
                }
                let created = created.expect(201)?;
                let id = text(&created, "id")?;
                let only = |answer: &Value| answer.as_object().is_some_and(|o| o.len() == 2);
                ensure!(only(&created), "{created}");
                let state = ready(c, id)?["state"].clone();
                let renamed = writer
                    .send("PATCH", &volume_path(id), &json!({}))?
                    .expect(200)?;
                ensure!(renamed == json!({ "id": id, "state": state }), "{renamed}");
                let shared = json!({ "user": "carol@example.org" });
                let shared = writer.post(&share_path(id), &shared)?.expect(201)?;
                ensure!(shared == json!({ "id": shared["id"] }), "{shared}");
                writer
                    .send("DELETE", &volume_path(id), &Value::Null)?
                    .is(204)?;
                keys::revoke(c, &of_writer)
            },
        ),
        decision(
            "8",
            "quota and usage count a volume from its creation",
            |c| {
                let volume = c.volume_with(&json!({ "size_gib": 3 }))?;
                let quota = c.me().get("/api/quota/")?.expect(200)?;
                for (field, least) in [("n_volumes", 1), ("volume_gib", 3)] {
                    let used = quota[field]["used"].as_u64();
                    ensure!(used >= Some(least), "`{field}`: {quota}");
                }
                c.retry(|| {
                    let usage = c.me().get("/api/usage/")?.expect(200)?;
                    let volumes = usage["volumes"].as_array().context("no volumes")?;
                    let cost = volumes.iter().find(|cost| cost["id"] == volume["id"]);
                    Ok(cost.is_some_and(|cost| {
                        cost["size_gib"] == 3 && cost["name"] == volume["name"]
                    }))
                })
            },
        ),
        decision("6", "a volume has events", |c| {
            let volume = c.volume()?;
            let id = text(&volume, "id")?;
            ready(c, id)?;
            delete(c, id)?.is(204)?;
            c.retry(|| {
                let types = events(c, "volume", id)?;
                Ok(types == ["volume-created", "volume-ready", "volume-deleted"])
            })
        }),
    ]
}

/// Fails unless each endpoint refuses a body of another type, of no JSON, or too large.
pub(super) fn bodies_are_checked(
    c: &Context<'_>,
    endpoints: &[(&'static str, String, Value)],
) -> Result<()> {
    let plain = [("Content-Type", "text/plain")];
    let json = [("Content-Type", "application/json")];
    let large = vec![b' '; 64 * 1024 + 1];
    for (method, path, body) in endpoints {
        let sent = c.me().raw(method, path, &json, Some(&large))?;
        ensure!(sent.status == 413, "{method} {path}: {sent}");
        if !body.is_null() {
            let sent = c.me().raw(method, path, &plain, Some(b"{}"))?;
            ensure!(sent.status == 415, "{method} {path}: {sent}");
            let sent = c.me().raw(method, path, &json, Some(b"{"))?;
            ensure!(sent.status == 400, "{method} {path}: {sent}");
        }
        let unsigned = c.anonymous().raw(method, path, &plain, Some(b"{"))?;
        ensure!(unsigned.status == 401, "{method} {path}: {unsigned}");
    }
    Ok(())
}

/// Fails unless the representation at a path has an entity tag that conditions know.
pub(super) fn has_tag(c: &Context<'_>, path: &str) -> Result<()> {
    c.retry(|| {
        let tag = etag(&c.me().get(path)?)?;
        let header = ("If-None-Match", tag.as_str());
        let answer = with(c.me(), "GET", path, header, &Value::Null)?;
        // Another check may have changed the list.
        Ok(answer.status == 304 && answer.text.is_empty())
    })?;
    with(c.me(), "GET", path, ("If-Match", OTHER), &Value::Null)?.is(412)?;
    with(c.me(), "GET", path, ("If-Match", "x"), &Value::Null)?.refuses("If-Match")
}

/// Fails unless the pages of a list have these ids in their order, and `limit` and `after` are checked.
pub(super) fn has_pages(c: &Context<'_>, list: &str, ids: &[Value]) -> Result<()> {
    let mut path = format!("{list}?limit=1");
    let mut found = Vec::new();
    loop {
        let page = c.me().get(&path)?;
        let next = page.header("link").map(str::to_owned);
        let things = page.expect(200)?;
        let things = things.as_array().context("no array")?;
        ensure!(things.len() <= 1, "{things:?}");
        found.extend(things.iter().map(|thing| thing["id"].clone()));
        let Some(next) = next else { break };
        let next = next.trim_start_matches('<').split('>').next();
        path = next.context("no URL")?.to_owned();
    }
    found.retain(|id| ids.contains(id));
    ensure!(found == ids, "not in the order of creation: {found:?}");
    c.me().get(&format!("{list}?limit=0"))?.refuses("limit")?;
    c.me().get(&format!("{list}?after=x"))?.refuses("after")
}

/// The types of the events of a volume or a snapshot.
pub(super) fn events(c: &Context<'_>, kind: &str, id: &str) -> Result<Vec<String>> {
    let mut types = Vec::new();
    let mut after = 0;
    loop {
        let page = format!("/api/event/?limit=1000&after={after}");
        let page = c.me().get(&page)?.expect(200)?;
        let page = page.as_array().context("no array")?;
        let own = page.iter().filter(|event| event[kind] == id);
        types.extend(own.filter_map(|event| Some(event["type"].as_str()?.to_owned())));
        match page.last().and_then(|event| event["id"].as_u64()) {
            Some(last) => after = last,
            None => return Ok(types),
        }
    }
}

/// Waits until a volume is ready.
pub(super) fn ready(c: &Context<'_>, id: &str) -> Result<Value> {
    c.retry(|| Ok(shown(c, id)?["state"] == "ready"))?;
    shown(c, id)
}

pub(super) fn shown(c: &Context<'_>, selector: &str) -> Result<Value> {
    c.me().get(&volume_path(selector))?.expect(200)
}

pub(super) fn delete(c: &Context<'_>, selector: &str) -> Result<Response> {
    c.me().send("DELETE", &volume_path(selector), &Value::Null)
}

/// Whether a user's list has a volume.
pub(super) fn listed(user: &Client, id: &str) -> Result<bool> {
    let volumes = user.get(VOLUMES)?.expect(200)?;
    let mut volumes = volumes.as_array().context("no array")?.iter();
    Ok(volumes.any(|volume| volume["id"] == id))
}

fn patch(c: &Context<'_>, id: &str, body: &Value) -> Result<Response> {
    c.me().send("PATCH", &volume_path(id), body)
}

pub(super) fn try_create(c: &Context<'_>, body: &Value) -> Result<Response> {
    let answer = c.me().post(VOLUMES, body)?;
    c.delete_later(c.me(), &answer);
    Ok(answer)
}
