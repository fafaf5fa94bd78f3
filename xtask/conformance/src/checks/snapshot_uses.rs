//! Restoring instances from snapshots, and cloning them.

use super::conditional::with;
use super::keys;
use super::snapshots::{delete, instance, shown, take, taken};
use super::volumes::{LARGEST, try_create};
use crate::check::{Check, decision, skip};
use crate::client::{Response, SNAPSHOTS, snapshot_path};
use crate::context::{Context, expect_field, uuid};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

/// The most volumes that fill disks.
const MANY: usize = 12;
/// More than a node has.
const TOO_MANY_VCPUS: u64 = 256;

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4",
            "an instance is restored from its snapshot while it is stopped",
            |c| {
                let instance = instance(c)?;
                let id = uuid(&instance)?;
                let snapshot = taken(c, &instance)?;
                let running = restore(c, &snapshot, &json!({}))?;
                running.is(400)?;
                ensure!(!running.detail()?.is_empty(), "{running}");
                for (field, value) in [("snapshot_first", json!("yes")), ("force", json!(true))] {
                    restore(c, &snapshot, &json!({ field: value }))?.refuses(field)?;
                }
                c.me().act(id, "stop")?.is(200)?;
                let stopped = c.wait(id, "exited")?;
                let answer =
                    restore(c, &snapshot, &json!({ "snapshot_first": null }))?.expect(200)?;
                ensure!(
                    answer["uuid"] == id && answer["state"] == "exited",
                    "{answer}"
                );
                restored(c, id)?;
                let after = c.wait(id, "exited")?;
                ensure!(after == stopped, "{after}; {stopped}");
                c.me().act(id, "restart")?.is(200)?;
                c.wait(id, "running")?;
                ensure!(
                    shown(c, &snapshot)?["state"] == "ready",
                    "the snapshot is gone"
                );
                Ok(())
            },
        ),
        decision(
            "4",
            "a restore takes a snapshot of the present disk first, if asked",
            |c| {
                let instance = instance(c)?;
                let id = uuid(&instance)?;
                let snapshot = taken(c, &instance)?;
                c.me().act(id, "stop")?.is(200)?;
                let (writer, of_writer) = keys::create(c, &json!({ "scopes": ["write"] }))?;
                let path = format!("{}restore/", snapshot_path(&snapshot));
                let answer = writer.post(&path, &json!({ "snapshot_first": true }))?;
                let answer = answer.expect(200)?;
                ensure!(
                    answer == json!({ "uuid": id, "state": "exited" }),
                    "{answer}"
                );
                keys::revoke(c, &of_writer)?;
                restored(c, id)?;
                let list = format!("{SNAPSHOTS}?instance={id}");
                let list = c.me().get(&list)?.expect(200)?;
                let list = list.as_array().context("no array")?;
                let are_ready = list.iter().all(|snapshot| snapshot["state"] == "ready");
                ensure!(list.len() == 2 && are_ready, "{list:?}");
                Ok(())
            },
        ),
        decision(
            "4",
            "a snapshot that its node has no room for is a 422, also before a restore",
            |c| {
                let instance = instance(c)?;
                let id = uuid(&instance)?;
                let snapshot = taken(c, &instance)?;
                c.me().act(id, "stop")?.is(200)?;
                fill_disks(c)?;
                let first = restore(c, &snapshot, &json!({ "snapshot_first": true }))?;
                for refused in [take(c, &instance, &json!({}))?, first] {
                    let detail = &refused.expect(422)?["detail"];
                    ensure!(detail["bottleneck"] == json!(["disk_size_gib"]), "{detail}");
                    let wanted = &detail["requested"]["disk_size_gib"];
                    ensure!(*wanted == instance["disk_size_gib"], "{detail}");
                }
                restore(c, &snapshot, &json!({}))?.is(200)?;
                restored(c, id)
            },
        )
        .exclusive(),
        decision("4", "a clone is an instance of its own", |c| {
            let source = instance(c)?;
            let snapshot = taken(c, &source)?;
            let body = json!({ "n_vcpus": 1, "mem_gib": 2, "disk_size_gib": 11, "name": c.name() });
            let created = clone(c, &snapshot, &body)?.expect(201)?;
            for field in ["flavor", "resource_type", "cpu_tier", "owner_email"] {
                ensure!(created[field] == source[field], "`{field}`: {created}");
            }
            for field in ["name", "n_vcpus", "mem_gib", "disk_size_gib"] {
                expect_field(&created, field, &body[field])?;
            }
            for field in ["uuid", "original_service_password", "wan_ssh_port"] {
                ensure!(created[field] != source[field], "both have one `{field}`");
            }
            let id = uuid(&created)?;
            c.wait(id, "running")?;
            delete(c, &snapshot)?.is(204)?;
            c.me().delete(uuid(&source)?)?.is(204)?;
            c.me().act(id, "stop")?.is(200)?;
            c.me().act(id, "restart")?.is(200)?;
            c.wait(id, "running").map(drop)
        }),
        decision(
            "4",
            "wrong fields of a clone are refused, all at once",
            |c| {
                let source =
                    c.running_with(&c.small_with("container", &json!({ "disk_size_gib": 12 })))?;
                // It skips the check where there are no snapshots.
                instance(c)?;
                let snapshot = taken(c, &source)?;
                for (field, value) in [
                    ("flavor", json!("base")),
                    ("resource_type", json!("container")),
                    ("n_vcpus", json!(0)),
                    ("n_vcpus", Value::Null),
                    ("mem_gib", json!("2")),
                    ("disk_size_gib", json!(9)),
                    ("disk_size_gib", json!(11)),
                    ("name", source["name"].clone()),
                    ("public_key", json!("none")),
                    ("volumes", json!([{ "volume": c.name(), "path": "/data" }])),
                ] {
                    let mut body = sizes(12);
                    body[field] = value;
                    let answer = clone(c, &snapshot, &body)?;
                    let right = answer.refuses(field);
                    ensure!(right.is_ok(), "{body}: {answer}");
                }
                let all = clone(c, &snapshot, &json!({ "flavor": "base" }))?;
                for field in ["flavor", "n_vcpus", "mem_gib", "disk_size_gib"] {
                    all.refuses(field)?;
                }
                Ok(())
            },
        ),
        decision("4", "a clone that its node has no room for is a 422", |c| {
            let source = instance(c)?;
            let snapshot = taken(c, &source)?;
            let mut body = sizes(10);
            body["n_vcpus"] = json!(TOO_MANY_VCPUS);
            let refused = clone(c, &snapshot, &body)?.expect(422)?;
            let bottleneck = refused["detail"]["bottleneck"].as_array();
            let bottleneck = bottleneck.context("no bottleneck")?;
            ensure!(bottleneck.contains(&json!("n_vcpus")), "{refused}");
            let near = refused["detail"]["nearest_available"]["n_vcpus"].as_u64();
            ensure!(near < Some(TOO_MANY_VCPUS), "{refused}");
            Ok(())
        }),
        decision(
            "4",
            "a clone with the Idempotency-Key and body of an earlier one gets its answer",
            |c| {
                let source = instance(c)?;
                let path = format!("{}clone/", snapshot_path(&taken(c, &source)?));
                let key = c.name();
                let send = |body: &Value| -> Result<Response> {
                    let answer = with(c.me(), "POST", &path, ("Idempotency-Key", &key), body)?;
                    c.delete_later(c.me(), &answer);
                    Ok(answer)
                };
                let first = send(&sizes(10))?;
                first.is(201)?;
                let again = send(&sizes(10))?;
                ensure!(again.status == 201, "{again}");
                ensure!(again.body["uuid"] == first.body["uuid"], "another instance");
                send(&sizes(11))?.is(422)
            },
        ),
    ]
}

/// Takes the free disks of all nodes for volumes. Skips the check if they are too many.
fn fill_disks(c: &Context<'_>) -> Result<()> {
    let mut size = LARGEST;
    for _ in 0..MANY {
        let answer = try_create(c, &json!({ "name": c.name(), "size_gib": size }))?;
        if answer.status == 201 {
            continue;
        }
        let near = &answer.expect(422)?["detail"]["nearest_available"]["size_gib"];
        match near.as_u64().context("no integer")? {
            0 => return Ok(()),
            near => size = near,
        }
    }
    skip("the service has disks for many of the largest volumes")
}

fn sizes(disk: u64) -> Value {
    json!({ "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": disk })
}

fn restore(c: &Context<'_>, snapshot: &str, body: &Value) -> Result<Response> {
    c.me()
        .post(&format!("{}restore/", snapshot_path(snapshot)), body)
}

/// Clones a snapshot. The instance is deleted at the end of the check.
fn clone(c: &Context<'_>, snapshot: &str, body: &Value) -> Result<Response> {
    let answer = c
        .me()
        .post(&format!("{}clone/", snapshot_path(snapshot)), body)?;
    c.delete_later(c.me(), &answer);
    Ok(answer)
}

/// Waits for the end of a restore.
fn restored(c: &Context<'_>, instance: &str) -> Result<()> {
    c.retry(|| {
        let path = format!("/api/event/?instance={instance}&limit=1000");
        let events = c.me().get(&path)?.expect(200)?;
        let events = events.as_array().context("no array")?.iter();
        let mut types = events.filter_map(|event| event["type"].as_str());
        match types.rfind(|kind| ["restored", "restore-failed"].contains(kind)) {
            Some("restore-failed") => bail!("the restore failed"),
            found => Ok(found.is_some()),
        }
    })
}
