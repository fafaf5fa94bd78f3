//! Section 8: `GET` and `PATCH /api/preferences/`.

use crate::check::{Check, decision, skip};
use crate::client::Response;
use crate::context::Context;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

const PATH: &str = "/api/preferences/";

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "8",
            "preferences keep a change, and an empty one changes nothing",
            |c| {
                let before = asked(c)?.body["allow_moves"].clone();
                ensure!(before.is_boolean(), "`allow_moves`: {before}");
                for wanted in [json!(true), json!(false), before] {
                    let change = json!({ "allow_moves": wanted });
                    for body in [&change, &json!({})] {
                        let changed = changed(c, body)?;
                        changed.is(200)?;
                        ensure!(changed.body == change, "{}", changed.body);
                    }
                    ensure!(asked(c)?.body == change, "not {change}");
                }
                Ok(())
            },
        ),
        decision("8", "preferences need a key", |c| {
            asked(c)?;
            c.anonymous().get(PATH)?.is(401)?;
            c.anonymous().send("PATCH", PATH, &json!({}))?.is(401)
        }),
        decision(
            "8",
            "preferences refuse unknown fields, other types and other media types",
            |c| {
                asked(c)?;
                let plain = [("Content-Type", "text/plain")];
                c.me().raw("PATCH", PATH, &plain, Some(b"{}"))?.is(415)?;
                let refused = changed(c, &json!({ "allow_moves": "yes", "moves": true }))?;
                refused.is(400)?;
                for field in ["allow_moves", "moves"] {
                    ensure!(
                        refused.body[field].is_array(),
                        "`{field}`: {}",
                        refused.body
                    );
                }
                Ok(())
            },
        ),
    ]
}

fn changed(c: &Context<'_>, body: &Value) -> Result<Response> {
    c.me().send("PATCH", PATH, body)
}

fn asked(c: &Context<'_>) -> Result<Response> {
    let answer = c.me().get(PATH)?;
    if answer.status == 404 {
        return skip("the service has no preferences");
    }
    answer.is(200)?;
    Ok(answer)
}
