//! Shares of volumes with other users.

use super::volume_mounts::container;
use super::volumes::{delete, listed, share_path, shown};
use crate::check::{Check, decision};
use crate::client::{VOLUMES, volume_path};
use crate::context::text;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4",
            "a volume is shared with a user, who only reads it",
            |c| {
                let volume = c.volume()?;
                let id = text(&volume, "id")?;
                let (path, other) = (share_path(id), c.other()?);
                let reader = address(other)?;
                ensure!(
                    c.me().get(&path)?.expect(200)? == json!([]),
                    "it has shares"
                );
                let body = json!({ "user": reader.to_uppercase() });
                let share = c.me().post(&path, &body)?.expect(201)?;
                ensure!(share["user"] == reader, "{share}");
                ensure!(
                    c.me().get(&path)?.expect(200)? == json!([share]),
                    "not listed"
                );
                c.me()
                    .post(&path, &json!({ "user": reader }))?
                    .refuses("user")?;
                ensure!(listed(other, id)?, "its reader does not see it");
                let name = text(&volume, "name")?;
                // A name alone means one's own volumes.
                other.get(&volume_path(name))?.is(404)?;
                let named = format!("{}%2F{name}", text(&volume, "owner_email")?);
                for selector in [id, &named] {
                    let seen = other.get(&volume_path(selector))?.expect(200)?;
                    ensure!(seen["shared"] == true && seen["id"] == id, "{seen}");
                    ensure!(seen["owner_email"] == volume["owner_email"], "{seen}");
                }
                let of_share = format!("{path}{}/", text(&share, "id")?);
                for (method, path, body) in [
                    ("PATCH", volume_path(id), json!({ "name": c.name() })),
                    ("DELETE", volume_path(id), Value::Null),
                    ("POST", path.clone(), json!({ "user": "carol@example.org" })),
                ] {
                    let answer = other.send(method, &path, &body)?;
                    ensure!(answer.status == 404, "{method} {path}: {answer}");
                }
                c.me().send("DELETE", &of_share, &Value::Null)?.is(204)?;
                c.me().send("DELETE", &of_share, &Value::Null)?.is(404)?;
                ensure!(!listed(other, id)?, "the user still sees it");
                other.get(&volume_path(id))?.is(404)?;
                other.get(&path)?.is(404)
            },
        ),
        decision("4", "a reader ends the own share of a volume alone", |c| {
            let volume = c.volume()?;
            let id = text(&volume, "id")?;
            let (path, other) = (share_path(id), c.other()?);
            let shared = |user: &str| c.me().post(&path, &json!({ "user": user }))?.expect(201);
            let (of_third, own) = (shared("carol@example.org")?, shared(&address(other)?)?);
            ensure!(
                other.get(&path)?.expect(200)? == json!([own]),
                "not its own alone"
            );
            let end = |share: &Value| -> Result<_> {
                let path = format!("{path}{}/", text(share, "id")?);
                other.send("DELETE", &path, &Value::Null)
            };
            end(&of_third)?.is(404)?;
            end(&own)?.is(204)?;
            ensure!(!listed(other, id)?, "the user still sees it");
            let left = c.me().get(&path)?.expect(200)?;
            ensure!(left == json!([of_third]), "{left}");
            Ok(())
        }),
        decision(
            "4",
            "a shared volume has the name of its owner before its own",
            |c| {
                let volume = c.volume()?;
                let (other, name) = (c.other()?, text(&volume, "name")?);
                let body = json!({ "user": address(other)? });
                c.me()
                    .post(&share_path(text(&volume, "id")?), &body)?
                    .is(201)?;
                let mounts =
                    |named: &str| json!([{ "volume": named, "path": "/data", "read_only": true }]);
                c.try_create(other, &container(c, &mounts(name)))?
                    .refuses("volumes")?;
                let named = format!("{}/{name}", text(&volume, "owner_email")?);
                let made = c.create_as(other, &container(c, &mounts(&named)))?;
                ensure!(made["volumes"][0]["volume"] == volume["id"], "{made}");
                Ok(())
            },
        ),
        decision("4", "wrong readers of a volume are refused", |c| {
            let volume = c.volume()?;
            let path = share_path(text(&volume, "id")?);
            for wrong in [
                json!({}),
                json!({ "user": "" }),
                json!({ "user": "bob" }),
                json!({ "user": 1 }),
                json!({ "user": volume["owner_email"] }),
            ] {
                let answer = c.me().post(&path, &wrong)?;
                let right = answer.refuses("user");
                ensure!(right.is_ok(), "{wrong}: {answer}");
            }
            let body = json!({ "user": "carol@example.org", "read_only": false });
            c.me().post(&path, &body)?.refuses("read_only")
        }),
        decision("4", "instances of a reader hold a shared volume", |c| {
            let volume = c.volume()?;
            let id = text(&volume, "id")?;
            let (path, other) = (share_path(id), c.other()?);
            let reader = address(other)?;
            let share = c
                .me()
                .post(&path, &json!({ "user": reader }))?
                .expect(201)?;
            let mounts = |read_only: bool| json!([{ "volume": id, "path": "/data", "read_only": read_only }]);
            let written = c.try_create(other, &container(c, &mounts(false)))?;
            written.refuses("volumes")?;
            let read = c.create_as(other, &container(c, &mounts(true)))?;
            ensure!(read["volumes"][0]["volume"] == id, "{read}");
            let seen = other.get(&volume_path(id))?.expect(200)?;
            ensure!(seen["attached_to"][0]["instance"] == read["uuid"], "{seen}");
            let attached = json!([{
                "instance": null, "name": null, "owner_email": reader, "path": null, "read_only": true,
            }]);
            ensure!(
                shown(c, id)?["attached_to"] == attached,
                "{}",
                shown(c, id)?
            );
            let refused = delete(c, id)?;
            refused.is(400)?;
            let words = refused.detail()?;
            ensure!(words.contains(&reader), "{words}");
            ensure!(!words.contains(text(&read, "name")?), "{words}");
            // The owner writes only what nobody reads.
            let body = container(c, &mounts(false));
            c.try_create(c.me(), &body)?.refuses("volumes")?;
            c.create(&container(c, &mounts(true)))?;
            let of_share = format!("{path}{}/", text(&share, "id")?);
            c.me().send("DELETE", &of_share, &Value::Null)?.is(204)?;
            let late = c.try_create(other, &container(c, &mounts(true)))?;
            late.refuses("volumes")?;
            let kept = other.instance(text(&read, "uuid")?)?.expect(200)?;
            ensure!(kept["volumes"] == read["volumes"], "{kept}");
            delete(c, id)?.is(400)
        }),
        decision("5", "volumes of two users may have one name", |c| {
            let mine = c.volume()?;
            let body = json!({ "name": mine["name"], "size_gib": 1 });
            let theirs = c.other()?.post(VOLUMES, &body)?;
            c.delete_later(c.other()?, &theirs);
            let theirs = theirs.expect(201)?;
            let path = share_path(text(&mine, "id")?);
            let body = json!({ "user": address(c.other()?)? });
            c.me().post(&path, &body)?.is(201)?;
            // One's own volume comes first.
            let by_name = c.other()?.get(&volume_path(text(&mine, "name")?))?;
            ensure!(by_name.expect(200)?["id"] == theirs["id"], "another one");
            Ok(())
        }),
    ]
}

/// The address of a user.
fn address(user: &crate::client::Client) -> Result<String> {
    let session = user.get("/api/session/")?.expect(200)?;
    Ok(session["email"].as_str().context("no address")?.to_owned())
}
