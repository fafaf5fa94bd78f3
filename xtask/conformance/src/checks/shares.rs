//! Shares of the pages and ports of an instance. A service without pages by name refuses to make them.

use crate::check::{Check, decision};
use crate::context::uuid;
use anyhow::ensure;
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4",
            "a share is made, changed and withdrawn for its owner, if the service has pages by name",
            |c| {
                let instance = c.running("container")?;
                let path = format!("/api/instance/{}/share/", uuid(&instance)?);
                ensure!(
                    c.me().get(&path)?.expect(200)? == json!([]),
                    "it has shares"
                );
                let body = json!({ "port": 8000, "access": "owner" });
                c.other()?.post(&path, &body)?.is(404)?;
                c.other()?.get(&path)?.is(404)?;
                let of_port = format!("{path}8000/");
                let change = json!({ "access": "users", "users": ["Bob@example.com"] });
                c.me().send("PATCH", &of_port, &change)?.is(404)?;
                let made = c.me().post(&path, &body)?;
                if made.status == 400 {
                    let why = made.body.to_string();
                    ensure!(why.contains("[pages]"), "{made}");
                    return Ok(());
                }
                let made = made.expect(201)?;
                ensure!(made["id"] == "8000" && made["users"] == json!([]), "{made}");
                c.me().post(&path, &body)?.refuses("port")?;
                c.me()
                    .send("PATCH", &of_port, &json!({ "access": "users" }))?
                    .refuses("users")?;
                let changed = c.me().send("PATCH", &of_port, &change)?.expect(200)?;
                ensure!(changed["users"] == json!(["bob@example.com"]), "{changed}");
                ensure!(changed["url"] == made["url"], "{changed}");
                ensure!(
                    c.me().get(&path)?.expect(200)? == json!([changed]),
                    "it is not listed"
                );
                for method in ["PATCH", "DELETE"] {
                    let body = if method == "PATCH" {
                        &change
                    } else {
                        &Value::Null
                    };
                    c.other()?.send(method, &of_port, body)?.is(404)?;
                }
                c.me().send("DELETE", &of_port, &Value::Null)?.is(204)?;
                c.me().send("DELETE", &of_port, &Value::Null)?.is(404)
            },
        ),
        decision("4", "wrong fields of a share are refused", |c| {
            let instance = c.sample("container")?;
            let path = format!("/api/instance/{}/share/", uuid(instance)?);
            for (body, field) in [
                (json!({}), "access"),
                (json!({ "access": "all" }), "access"),
                (json!({ "access": "users" }), "users"),
                (json!({ "access": "owner", "port": 70000 }), "port"),
                (
                    json!({ "access": "owner", "expires_at": "soon" }),
                    "expires_at",
                ),
            ] {
                c.me().post(&path, &body)?.refuses(field)?;
            }
            let plain = [("Content-Type", "text/plain")];
            for (method, path) in [("POST", path.clone()), ("PATCH", format!("{path}page/"))] {
                c.me().raw(method, &path, &plain, Some(b"{}"))?.is(415)?;
            }
            Ok(())
        }),
    ]
}
