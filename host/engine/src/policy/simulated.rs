//! The policy for the simulated engine.

use super::path::Target;
use super::{Refusal, Sent};
use crate::scope::CallScope;
use http::Method;

/// Allows the requests of the driver for the simulated engine.
pub fn check(
    scope: &CallScope,
    method: &Method,
    target: &Target<'_>,
    body: &Sent,
    job: bool,
) -> Result<(), Refusal> {
    if job {
        return Err(Refusal::new("the simulated engine has no jobs"));
    }
    if method != Method::GET && !scope.changes {
        return Err(Refusal::new(format!(
            "{method} in a call that changes nothing"
        )));
    }
    let own = |id: &str| match &scope.subject {
        Some(subject) if subject.tag.instance.to_string() == id => Ok(()),
        _ => Err(Refusal::new(format!(
            "instance {id:?} is not the one of this call"
        ))),
    };
    match (method.as_str(), target.segments.as_slice()) {
        ("GET", ["info"]) => {
            target.only(&[])?;
            body.nothing()
        }
        ("GET", ["instances"]) => {
            target.only(&["installation", "after", "limit"])?;
            target.fixed("installation", &scope.installation)?;
            target
                .get("installation")
                .ok_or_else(|| Refusal::new("installation is required"))?;
            body.nothing()
        }
        ("GET", ["marks", installation]) => {
            whole_node(scope, installation)?;
            target.only(&[])?;
            body.nothing()
        }
        ("PUT", ["marks", installation]) => {
            whole_node(scope, installation)?;
            target.only(&[])?;
            if scope.mark.is_none() || body.json()?.as_str() != scope.mark.as_deref() {
                return Err(Refusal::new("not the mark of this call"));
            }
            Ok(())
        }
        ("PUT", ["instances", id]) => {
            own(id)?;
            target.only(&[])?;
            let given = body
                .json()?
                .get("installation")
                .and_then(serde_json::Value::as_str);
            if given != Some(scope.installation.as_str())
                || scope.subject.as_ref().is_none_or(|s| s.creation.is_none())
            {
                return Err(Refusal::new(
                    "installation: not this one, or not a call that creates",
                ));
            }
            Ok(())
        }
        ("PATCH", ["instances", id]) | ("PUT", ["instances", id, "ports"]) => {
            own(id)?;
            target.only(&[])?;
            body.json().map(|_| ())
        }
        ("GET" | "DELETE", ["instances", id]) | ("GET", ["instances", id, "usage"]) => {
            own(id)?;
            target.only(&[])?;
            body.nothing()
        }
        ("POST", ["instances", id, "start" | "grow" | "stop"]) => {
            own(id)?;
            target.only(&["grace-ms"])?;
            match body {
                Sent::Json(_) | Sent::Empty => Ok(()),
                Sent::Archive(_) => body.nothing(),
            }
        }
        _ => Err(Refusal::new(format!("{method} on this path"))),
    }
}

/// Requires a call about the whole node and this installation.
fn whole_node(scope: &CallScope, installation: &str) -> Result<(), Refusal> {
    if scope.subject.is_some() || installation != scope.installation {
        return Err(Refusal::new(
            "not a call about the marks of this installation",
        ));
    }
    Ok(())
}
