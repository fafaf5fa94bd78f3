//! Plans that take snapshots.

use super::snapshots::instance;
use crate::check::{Check, decision};
use crate::client::action_path;
use crate::context::{expect_field, text, uuid};
use anyhow::ensure;
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4",
            "a plan of snapshots is set, shown, replaced and ended",
            |c| {
                let instance = instance(c)?;
                let path = action_path(uuid(&instance)?, "snapshot-plan");
                for method in ["GET", "DELETE"] {
                    c.me().send(method, &path, &Value::Null)?.is(404)?;
                }
                let body = json!({ "every_h": 24, "keep": 7 });
                let set = c.me().send("PUT", &path, &body)?.expect(200)?;
                ensure!(set.as_object().is_some_and(|plan| plan.len() == 5), "{set}");
                for (field, value) in [
                    ("every_h", json!(24)),
                    ("keep", json!(7)),
                    ("keep_days", Value::Null),
                ] {
                    expect_field(&set, field, &value)?;
                }
                ensure!(text(&set, "next_at")? > text(&set, "created_at")?, "{set}");
                ensure!(
                    c.me().get(&path)?.expect(200)? == set,
                    "another plan is shown"
                );
                let body = json!({ "every_h": 1, "keep": 32, "keep_days": 30 });
                let replaced = c.me().send("PUT", &path, &body)?.expect(200)?;
                for field in ["every_h", "keep", "keep_days"] {
                    expect_field(&replaced, field, &body[field])?;
                }
                for method in ["GET", "PUT", "DELETE"] {
                    let body = if method == "PUT" { &body } else { &Value::Null };
                    c.other()?.send(method, &path, body)?.is(404)?;
                }
                c.me().send("DELETE", &path, &Value::Null)?.is(204)?;
                c.me().get(&path)?.is(404)
            },
        ),
        decision(
            "4",
            "wrong fields of a plan are refused, all at once",
            |c| {
                let instance = instance(c)?;
                let path = action_path(uuid(&instance)?, "snapshot-plan");
                for (field, value) in [
                    ("every_h", json!(0)),
                    ("every_h", json!(8761)),
                    ("every_h", json!(1.5)),
                    ("keep", json!(0)),
                    ("keep", json!(33)),
                    ("keep", json!("7")),
                    ("keep_days", json!(0)),
                    ("kind", json!("backup")),
                ] {
                    let mut body = json!({ "every_h": 24, "keep": 7 });
                    body[field] = value;
                    c.me().send("PUT", &path, &body)?.refuses(field)?;
                }
                let none = c.me().send("PUT", &path, &json!({}))?;
                none.refuses("every_h")?;
                none.refuses("keep")?;
                c.me().get(&path)?.is(404)
            },
        ),
    ]
}
