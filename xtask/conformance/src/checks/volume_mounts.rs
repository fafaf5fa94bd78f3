//! Volumes of instances.

use super::conditional::with;
use super::keys;
use super::volumes::{delete, ready, shown};
use crate::check::{Check, decision, skip};
use crate::client::action_path;
use crate::context::{Context, text, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Volumes that are made to find one on the host of an instance.
const TRIES: usize = 12;
/// Directories that no volume covers.
const OF_THE_SYSTEM: [&str; 7] = [
    "/proc", "/sys", "/dev", "/etc", "/proc/a", "/dev/shm", "/usr",
];

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4.3",
            "an instance has its volume until it is deleted",
            |c| {
                let volume = c.volume()?;
                let (id, name) = (text(&volume, "id")?, text(&volume, "name")?);
                let mounts = json!([{ "volume": name, "path": "/data/genome" }]);
                let created = c.running_with(&container(c, &mounts))?;
                let mounted = |read_only: bool, name: &str| json!([{ "volume": id, "name": name, "path": "/data/genome", "read_only": read_only }]);
                ensure!(created["volumes"] == mounted(false, name), "{created}");
                let attached = json!([{
                    "instance": created["uuid"],
                    "name": created["name"],
                    "owner_email": created["owner_email"],
                    "path": "/data/genome",
                    "read_only": false,
                }]);
                ensure!(
                    ready(c, id)?["attached_to"] == attached,
                    "{}",
                    shown(c, id)?
                );
                let renamed = c.name();
                let path = crate::client::volume_path(id);
                c.me()
                    .send("PATCH", &path, &json!({ "name": renamed }))?
                    .is(200)?;
                let instance = uuid(&created)?;
                let now = c.me().instance(instance)?.expect(200)?;
                ensure!(now["volumes"] == mounted(false, &renamed), "{now}");
                refuses_delete(c, id, &created)?;
                c.me().act(instance, "stop")?.is(200)?;
                refuses_delete(c, id, &created)?;
                c.me().act(instance, "restart")?.is(200)?;
                c.me().delete(instance)?.is(204)?;
                c.retry(|| Ok(delete(c, id)?.status == 204))
            },
        ),
        decision(
            "4.3",
            "a volume has one writer, or any number of readers",
            |c| {
                let written = c.volume()?;
                let mount = |volume: &Value, read_only: bool| json!([{ "volume": volume["id"], "path": "/data", "read_only": read_only }]);
                c.create(&container(c, &mount(&written, false)))?;
                for read_only in [false, true] {
                    let body = container(c, &mount(&written, read_only));
                    c.try_create(c.me(), &body)?.refuses("volumes")?;
                }
                let read = c.volume()?;
                for _ in 0..2 {
                    let reader = c.create(&container(c, &mount(&read, true)))?;
                    ensure!(reader["volumes"][0]["read_only"] == true, "{reader}");
                }
                let body = container(c, &mount(&read, false));
                c.try_create(c.me(), &body)?.refuses("volumes")
            },
        ),
        decision("4.3", "wrong volumes of a new instance are refused", |c| {
            let [one, two] = [c.volume()?, c.volume()?].map(|volume| volume["id"].clone());
            let mount = |volume: &Value, path: &str| json!({ "volume": volume, "path": path });
            let mut wrong: Vec<Value> = OF_THE_SYSTEM
                .map(|path| json!([mount(&one, path)]))
                .to_vec();
            for path in ["/", "data", "/data/", "/data/../x", "/a//b", "/a b", ""] {
                wrong.push(json!([mount(&one, path)]));
            }
            wrong.extend([
                json!([mount(&json!(c.name()), "/data")]),
                json!([mount(&one, "/data"), mount(&one, "/other")]),
                json!([mount(&one, "/data"), mount(&two, "/data")]),
                json!([mount(&one, "/data"), mount(&two, "/data/inner")]),
                json!([{ "volume": one }]),
                json!([{ "volume": one, "path": "/data", "mode": "ro" }]),
                json!([{ "volume": one, "path": "/data", "read_only": "yes" }]),
                json!(
                    (0..9)
                        .map(|n| mount(&one, &format!("/d{n}")))
                        .collect::<Vec<_>>()
                ),
                json!({}),
                json!("one"),
            ]);
            for volumes in wrong {
                let answer = c.try_create(c.me(), &container(c, &volumes))?;
                let right = answer.refuses("volumes");
                ensure!(right.is_ok(), "{volumes}: {answer}");
            }
            let of_vm = c.small_with("vm", &json!({ "volumes": [mount(&one, "/data")] }));
            c.try_create(c.me(), &of_vm)?.refuses("volumes")?;
            // Another user's volume is not found.
            let body = container(c, &json!([mount(&one, "/data")]));
            c.try_create(c.other()?, &body)?.refuses("volumes")?;
            let none = c.create(&container(c, &json!([])))?;
            ensure!(none["volumes"] == json!([]), "{none}");
            let none = c.create(&container(c, &Value::Null))?;
            ensure!(none["volumes"] == json!([]), "{none}");
            Ok(())
        }),
        decision(
            "4.3",
            "an instance that does not fit the host of its volume is a 422 that names it",
            |c| {
                let volume = c.volume()?;
                let mounts = json!([{ "volume": volume["id"], "path": "/data" }]);
                let largest = json!({
                    "n_vcpus": 256, "mem_gib": 512, "disk_size_gib": 2000, "volumes": mounts,
                });
                let body = c.small_with("container", &largest);
                let refused = c.try_create(c.me(), &body)?;
                if refused.status == 201 {
                    return skip("the service has capacity for the largest container");
                }
                let refused = refused.expect(422)?;
                let detail = &refused["detail"];
                let fields = detail["bottleneck"].as_array().into_iter().flatten();
                let fields: Vec<_> = fields.filter_map(Value::as_str).collect();
                ensure!(fields.contains(&"volumes"), "{refused}");
                ensure!(fields.contains(&"mem_gib"), "{refused}");
                let message = text(detail, "message")?;
                ensure!(message.contains(text(&volume, "name")?), "{message}");
                let estimate = c.me().post("/api/estimate/", &body)?.expect(200)?;
                // Other rules create and delete at the same time.
                let short = &estimate["shortage"]["bottleneck"];
                let fields = short.as_array().into_iter().flatten();
                ensure!(
                    fields.into_iter().any(|field| field == "volumes"),
                    "{estimate}"
                );
                Ok(())
            },
        ),
        decision(
            "4.3",
            "a volume is attached to an instance and detached, or the answer says why not",
            |c| {
                let volume = c.volume()?;
                ready(c, text(&volume, "id")?)?;
                // The first volume brings the instance to a host of its tier.
                let first = c.volume_with(&tier())?;
                let mounts = json!([{ "volume": first["id"], "path": "/a" }]);
                let created = c.running_with(&container(c, &mounts))?;
                let instance = uuid(&created)?;
                let (attach, detach) = (
                    action_path(instance, "attach-volume"),
                    action_path(instance, "detach-volume"),
                );
                let mount = json!({ "volume": volume["id"], "path": "/data", "read_only": null });
                let of = json!({ "volume": volume["id"] });
                for (field, wrong) in [
                    ("path", json!({ "volume": volume["id"] })),
                    ("path", json!({ "volume": volume["id"], "path": "data" })),
                    ("path", json!({ "volume": volume["id"], "path": "/etc" })),
                    ("volume", json!({ "path": "/data" })),
                    ("volume", json!({ "volume": c.name(), "path": "/data" })),
                    (
                        "mode",
                        json!({ "volume": volume["id"], "path": "/data", "mode": "ro" }),
                    ),
                ] {
                    let answer = c.me().post(&attach, &wrong)?;
                    let right = answer.refuses(field);
                    ensure!(right.is_ok(), "{wrong}: {answer}");
                }
                c.me().post(&detach, &json!({}))?.refuses("volume")?;
                for (path, body) in [(&attach, &mount), (&detach, &of)] {
                    let tag = ("If-Match", "\"another-representation\"");
                    with(c.me(), "POST", path, tag, body)?.is(412)?;
                    c.other()?.post(path, body)?.is(404)?;
                }
                let none = c.me().post(&detach, &of)?.expect(200)?;
                ensure!(none["volumes"] == created["volumes"], "{none}");
                let Some((volume, attached)) = on_the_host(c, &attach)? else {
                    return Ok(());
                };
                let mount = json!({ "volume": volume["id"], "path": "/data", "read_only": null });
                let of = json!({ "volume": volume["id"] });
                ensure!(attached["volumes"][1]["path"] == "/data", "{attached}");
                let again = c.me().post(&attach, &mount)?.expect(200)?;
                ensure!(again["volumes"] == attached["volumes"], "{again}");
                refuses_delete(c, text(&volume, "id")?, &created)?;
                let (writer, of_writer) = keys::create(c, &json!({ "scopes": ["write"] }))?;
                let detached = writer.post(&detach, &of)?.expect(200)?;
                let only = json!({ "uuid": instance, "state": "running" });
                ensure!(detached == only, "{detached}");
                keys::revoke(c, &of_writer)?;
                let none = c.me().post(&detach, &of)?.expect(200)?;
                ensure!(none["volumes"] == created["volumes"], "{none}");
                Ok(())
            },
        ),
        decision("4.3", "virtual machines have no volumes", |c| {
            let volume = c.volume()?;
            let machine = c.running("vm")?;
            let body = json!({ "volume": volume["id"], "path": "/data" });
            let attach = action_path(uuid(&machine)?, "attach-volume");
            c.me().post(&attach, &body)?.is(400)?;
            ensure!(machine["volumes"] == json!([]), "{machine}");
            Ok(())
        }),
    ]
}

/// The tier that fewer hosts offer.
fn tier() -> Value {
    json!({ "cpu_tier": "high-performance" })
}

/// A new volume that is attached to an instance, and the answer; none if the answer says that the engine
/// cannot do it.
fn on_the_host(c: &Context<'_>, attach: &str) -> Result<Option<(Value, Value)>> {
    for _ in 0..TRIES {
        let volume = c.volume_with(&tier())?;
        ready(c, text(&volume, "id")?)?;
        let body = json!({ "volume": volume["id"], "path": "/data" });
        let answer = c.me().post(attach, &body)?;
        if answer.status == 200 {
            return Ok(Some((volume, answer.body)));
        }
        answer.is(400)?;
        if answer.body["volume"].is_null() {
            ensure!(!answer.detail()?.is_empty(), "{answer}");
            return Ok(None);
        }
        ensure!(answer.body.to_string().contains("another host"), "{answer}");
    }
    skip("no volume is on the host of the instance")
}

/// A small container with these volumes.
pub(super) fn container(c: &Context<'_>, volumes: &Value) -> Value {
    c.small_with("container", &json!({ "volumes": volumes }))
}

/// Fails unless the deletion of a volume is refused with words that name an instance.
fn refuses_delete(c: &Context<'_>, id: &str, instance: &Value) -> Result<()> {
    let refused = delete(c, id)?;
    refused.is(400)?;
    let words = refused.detail()?;
    ensure!(words.contains(text(instance, "name")?), "{words}");
    Ok(())
}
