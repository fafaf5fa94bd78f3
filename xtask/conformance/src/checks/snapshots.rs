//! Snapshots: their life, fields, entity tags and keys. `snapshot_uses` restores and clones them, and
//! `snapshot_plans` takes them by the clock.

use super::conditional::with;
use super::keys;
use super::volumes::{OTHER, bodies_are_checked, events, has_pages, has_tag};
use crate::check::{Check, decision, skip};
use crate::client::{Client, Response, SNAPSHOTS, action_path, snapshot_path};
use crate::context::{Context, expect_field, text, uuid};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

const FIELDS: [&str; 14] = [
    "id",
    "instance",
    "instance_name",
    "name",
    "state",
    "reason",
    "progress",
    "size_gib",
    "disk_size_gib",
    "clonable",
    "planned",
    "created_at",
    "ready_at",
    "storage_cost_hourly_usd",
];

/// Every endpoint of snapshots apart from those of one instance, with a valid body.
pub(super) fn snapshot_endpoints(id: &str) -> Vec<(&'static str, String, Value)> {
    let one = snapshot_path(id);
    let sizes = json!({ "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10 });
    vec![
        ("GET", SNAPSHOTS.to_owned(), Value::Null),
        ("GET", one.clone(), Value::Null),
        ("POST", format!("{one}restore/"), json!({})),
        ("POST", format!("{one}clone/"), sizes),
        ("DELETE", one, Value::Null),
    ]
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4",
            "a snapshot is taken, shown, listed and deleted for its owner",
            |c| {
                let instance = instance(c)?;
                let taken = take(c, &instance, &json!({ "name": "first" }))?.expect(201)?;
                let id = text(&taken, "id")?;
                ready(c, id)?;
                let of = |selector: &str| format!("{SNAPSHOTS}?instance={selector}");
                for list in [
                    SNAPSHOTS.to_owned(),
                    of(uuid(&instance)?),
                    of(text(&instance, "name")?),
                ] {
                    ensure!(listed(c.me(), &list, id)?, "not in {list}");
                }
                ensure!(
                    !listed(c.other()?, SNAPSHOTS, id)?,
                    "listed to another user"
                );
                c.other()?.get(&of(uuid(&instance)?))?.is(404)?;
                for (method, path, body) in snapshot_endpoints(id) {
                    if path == SNAPSHOTS {
                        continue;
                    }
                    let theirs = c.other()?.send(method, &path, &body)?;
                    ensure!(theirs.status == 404, "{method} {path}: {theirs}");
                    let path = path.replace(id, &c.name());
                    let missing = c.me().send(method, &path, &body)?;
                    ensure!(missing.status == 404, "{method} {path}: {missing}");
                    ensure!(missing.body == theirs.body, "{missing}; {theirs}");
                }
                take(c, &instance, &json!({ "name": "first" }))?.refuses("name")?;
                delete(c, id)?.is(204)?;
                c.me().get(&snapshot_path(id))?.is(404)?;
                delete(c, id)?.is(404)?;
                ensure!(!listed(c.me(), SNAPSHOTS, id)?, "it is still listed");
                // The name is free at once.
                take(c, &instance, &json!({ "name": "first" }))?.is(201)
            },
        ),
        decision("4", "a snapshot has every field, and no others", |c| {
            let instance = instance(c)?;
            let taken = take(c, &instance, &json!({}))?.expect(201)?;
            let now = ready(c, text(&taken, "id")?)?;
            for snapshot in [&taken, &now] {
                let fields = snapshot.as_object().context("not an object")?;
                let known = FIELDS.iter().all(|field| fields.contains_key(*field));
                ensure!(known && fields.len() == FIELDS.len(), "{snapshot}");
                for (field, value) in [
                    ("instance", &instance["uuid"]),
                    ("instance_name", &instance["name"]),
                    ("disk_size_gib", &instance["disk_size_gib"]),
                    ("reason", &Value::Null),
                    ("planned", &json!(false)),
                ] {
                    expect_field(snapshot, field, value)?;
                }
            }
            let name = text(&now, "name")?;
            ensure!(name.starts_with("snapshot-"), "it is called {name}");
            ensure!(taken["created_at"] == now["created_at"], "{taken}; {now}");
            expect_field(&now, "progress", &Value::Null)?;
            let disk = instance["disk_size_gib"].as_u64();
            let size = now["size_gib"].as_u64();
            ensure!(size >= Some(1) && size <= disk, "{now}");
            ensure!(
                text(&now, "ready_at")? >= text(&now, "created_at")?,
                "{now}"
            );
            let offer = c.me().get("/api/offer/")?.expect(200)?;
            let tiers = offer["cpu_tiers"].as_array().context("no tiers")?;
            let tier = tiers.iter().find(|t| t["name"] == instance["cpu_tier"]);
            let rate = "storage_cost_hourly_usd";
            expect_field(&now, rate, &tier.context("no such tier")?[rate])
        }),
        decision(
            "4",
            "wrong fields of a snapshot are refused, all at once",
            |c| {
                let instance = instance(c)?;
                for (field, value) in [
                    ("name", json!("")),
                    ("name", json!("A")),
                    ("name", json!("-a-")),
                    ("name", json!("x".repeat(64))),
                    ("name", instance["uuid"].clone()),
                    ("name", json!(1)),
                    ("size_gib", json!(1)),
                    ("planned", json!(true)),
                ] {
                    take(c, &instance, &json!({ field: value }))?.refuses(field)?;
                }
                let all = take(c, &instance, &json!({ "name": "A", "id": 1 }))?;
                all.refuses("name")?;
                all.refuses("id")?;
                take(c, &instance, &json!({ "name": null }))?.is(201)
            },
        ),
        decision(
            "4",
            "endpoints of snapshots check type and size of a body",
            |c| {
                let instance = instance(c)?;
                let id = taken(c, &instance)?;
                let of = |action| action_path(uuid(&instance).unwrap_or_default(), action);
                let mut endpoints = snapshot_endpoints(&id);
                endpoints.extend([
                    ("POST", of("snapshot"), json!({})),
                    ("GET", of("snapshot-estimate"), Value::Null),
                    ("GET", of("snapshot-plan"), Value::Null),
                    ("PUT", of("snapshot-plan"), json!({})),
                    ("DELETE", of("snapshot-plan"), Value::Null),
                ]);
                bodies_are_checked(c, &endpoints)?;
                shown(c, &id).map(drop)
            },
        ),
        decision("4", "snapshots have entity tags, in get and list", |c| {
            let instance = instance(c)?;
            let path = snapshot_path(&taken(c, &instance)?);
            has_tag(c, &path)?;
            has_tag(c, SNAPSHOTS)?;
            with(c.me(), "DELETE", &path, ("If-Match", OTHER), &Value::Null)?.is(412)?;
            c.me().get(&path)?.is(200)?;
            with(c.me(), "DELETE", &path, ("If-Match", "*"), &Value::Null)?.is(204)
        }),
        decision("4", "the list of snapshots has pages", |c| {
            let instance = instance(c)?;
            let ids = [taken(c, &instance)?, taken(c, &instance)?].map(Value::from);
            has_pages(c, SNAPSHOTS, &ids)
        }),
        decision(
            "4",
            "a new snapshot with the Idempotency-Key and body of an earlier one gets its answer",
            |c| {
                let instance = instance(c)?;
                let path = action_path(uuid(&instance)?, "snapshot");
                let key = c.name();
                let send = |key: &str, name: &str| {
                    let (header, body) = (("Idempotency-Key", key), json!({ "name": name }));
                    with(c.me(), "POST", &path, header, &body)
                };
                let first = send(&key, "first")?;
                first.is(201)?;
                let again = send(&key, "first")?;
                // It may be further by then.
                let equal = ["id", "name"].map(|field| again.body[field] == first.body[field]);
                ensure!(again.status == 201 && equal == [true; 2], "{again}");
                let other = send(&key, "second")?;
                other.is(422)?;
                ensure!(other.detail()?.contains("another body"), "{other}");
                send("a b", "third")?.refuses("Idempotency-Key")
            },
        ),
        decision(
            "4",
            "the estimate of a snapshot has its time and its cost",
            |c| {
                let instance = instance(c)?;
                let path = action_path(uuid(&instance)?, "snapshot-estimate");
                let estimate = c.me().get(&path)?.expect(200)?;
                let rate = estimate["storage_cost_hourly_usd"].as_f64();
                let (rate, size) = (rate.context("no rate")?, estimate["size_gib"].as_u64());
                let size = size.filter(|size| *size > 0).context("no size")?;
                let hourly = estimate["hourly_usd"].as_f64().context("no cost")?;
                let expected = rate * size as f64;
                ensure!((hourly - expected).abs() < 1e-9, "{estimate}");
                let is_whole = estimate["seconds"].is_u64() && estimate["frozen"].is_boolean();
                ensure!(is_whole, "{estimate}");
                Ok(())
            },
        ),
        decision("4.3", "virtual machines have no snapshots", |c| {
            instance(c)?;
            let machine = uuid(c.sample("vm")?)?;
            let plan = json!({ "every_h": 24, "keep": 7 });
            for (method, action, body) in [
                ("POST", "snapshot", json!({})),
                ("GET", "snapshot-estimate", Value::Null),
                ("PUT", "snapshot-plan", plan),
            ] {
                let answer = c.me().send(method, &action_path(machine, action), &body)?;
                ensure!(answer.status == 400, "{action}: {answer}");
                ensure!(!answer.detail()?.is_empty(), "{action}: {answer}");
            }
            Ok(())
        }),
        decision("4.3", "an instance has no snapshot before it runs", |c| {
            instance(c)?;
            let send = |id: &str| c.me().post(&action_path(id, "snapshot"), &json!({}));
            c.during_provisioning("container", send)?.1.is(400)
        }),
        decision(
            "5",
            "a key sees the parts of a snapshot that it may read",
            |c| {
                let instance = instance(c)?;
                let (writer, of_writer) = keys::create(c, &json!({ "scopes": ["write"] }))?;
                let path = action_path(uuid(&instance)?, "snapshot");
                let taken = writer.post(&path, &json!({}))?.expect(201)?;
                let id = text(&taken, "id")?;
                ensure!(taken.as_object().is_some_and(|o| o.len() == 2), "{taken}");
                ready(c, id)?;
                writer
                    .send("DELETE", &snapshot_path(id), &Value::Null)?
                    .is(204)?;
                keys::revoke(c, &of_writer)
            },
        ),
        decision(
            "8",
            "quota counts a snapshot, and usage has it once it is ready",
            |c| {
                let instance = instance(c)?;
                let id = taken(c, &instance)?;
                let snapshot = shown(c, &id)?;
                let quota = c.me().get("/api/quota/")?.expect(200)?;
                for field in ["n_snapshots", "snapshot_gib"] {
                    let used = quota[field]["used"].as_u64();
                    ensure!(used >= Some(1), "`{field}`: {quota}");
                }
                c.retry(|| {
                    let Some(cost) = cost(c, &id)? else {
                        return Ok(false);
                    };
                    for field in ["size_gib", "name", "instance", "state"] {
                        expect_field(&cost, field, &snapshot[field])?;
                    }
                    Ok(true)
                })
            },
        ),
        decision("6", "a snapshot has events", |c| {
            let instance = instance(c)?;
            let id = taken(c, &instance)?;
            delete(c, &id)?.is(204)?;
            c.retry(|| {
                let types = events(c, "snapshot", &id)?;
                Ok(types == ["snapshot-created", "snapshot-ready", "snapshot-deleted"])
            })
        }),
        decision("6", "snapshots are deleted with their instance", |c| {
            let instance = instance(c)?;
            let id = taken(c, &instance)?;
            c.me().delete(uuid(&instance)?)?.is(204)?;
            c.me().get(&snapshot_path(&id))?.is(404)?;
            ensure!(!listed(c.me(), SNAPSHOTS, &id)?, "it is still listed");
            c.retry(|| {
                let cost = cost(c, &id)?;
                Ok(cost.is_none_or(|cost| cost["state"] == "deleted" && cost["hourly_usd"] == 0.0))
            })
        }),
    ]
}

/// A running container whose engine takes snapshots. Skips the check if there is none.
pub(super) fn instance(c: &Context<'_>) -> Result<Value> {
    let instance = c.running("container")?;
    let estimate = action_path(uuid(&instance)?, "snapshot-estimate");
    match c.me().get(&estimate)? {
        answer if answer.status == 404 => skip("the service has no snapshots"),
        answer if answer.status == 400 => skip("the engine of the instance takes no snapshots"),
        answer => answer.expect(200).map(|_| instance),
    }
}

pub(super) fn take(c: &Context<'_>, instance: &Value, body: &Value) -> Result<Response> {
    c.me().post(&action_path(uuid(instance)?, "snapshot"), body)
}

/// Takes a snapshot of an instance, and waits until it is ready. Returns its id.
pub(super) fn taken(c: &Context<'_>, instance: &Value) -> Result<String> {
    let body = json!({ "name": c.name() });
    let taken = take(c, instance, &body)?.expect(201)?;
    let id = text(&taken, "id")?;
    ready(c, id)?;
    Ok(id.to_owned())
}

/// Waits until a snapshot is ready.
fn ready(c: &Context<'_>, id: &str) -> Result<Value> {
    c.retry(|| match shown(c, id)? {
        now if now["state"] == "error" => bail!("the snapshot is in error: {now}"),
        now => Ok(now["state"] == "ready"),
    })?;
    shown(c, id)
}

pub(super) fn shown(c: &Context<'_>, id: &str) -> Result<Value> {
    c.me().get(&snapshot_path(id))?.expect(200)
}

pub(super) fn delete(c: &Context<'_>, id: &str) -> Result<Response> {
    c.me().send("DELETE", &snapshot_path(id), &Value::Null)
}

/// Whether a user's list has a snapshot.
fn listed(user: &Client, list: &str, id: &str) -> Result<bool> {
    let snapshots = user.get(list)?.expect(200)?;
    let mut snapshots = snapshots.as_array().context("no array")?.iter();
    Ok(snapshots.any(|snapshot| snapshot["id"] == id))
}

/// The cost of a snapshot, if the usage has it.
fn cost(c: &Context<'_>, id: &str) -> Result<Option<Value>> {
    let usage = c.me().get("/api/usage/")?.expect(200)?;
    let costs = usage["snapshots"].as_array().context("no snapshots")?;
    Ok(costs.iter().find(|cost| cost["id"] == id).cloned())
}
