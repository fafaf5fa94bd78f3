//! The volume that marks the engine's store: its label is the mark, and it holds no data.

use super::{PREFIX, refuse, unlisted};
use crate::policy::json::{Node, required};
use crate::policy::path::Target;
use crate::policy::{Refusal, Sent};
use crate::scope::CallScope;
use http::Method;
use serde_json::Value;

/// The label with the mark.
const MARK: &str = "io.wharf.mark";

/// Allows to read the installation's volume, and to create it in the call that marks the store.
pub fn check(
    scope: &CallScope,
    method: &Method,
    rest: &[&str],
    target: &Target<'_>,
    body: &Sent,
) -> Result<(), Refusal> {
    if scope.subject.is_some() {
        return Err(refuse("volumes in a call about an instance"));
    }
    target.only(&[])?;
    let own = format!("{PREFIX}{}", scope.installation);
    match (method.as_str(), rest) {
        ("GET", [name]) if *name == own => body.nothing(),
        ("POST", ["create"]) => create(body.json()?, &own, scope),
        _ => Err(unlisted(method)),
    }
}

/// Checks the body of the creation. A volume with options could be any directory of the node.
fn create(body: &Value, own: &str, scope: &CallScope) -> Result<(), Refusal> {
    let Some(mark) = &scope.mark else {
        return Err(refuse("only `mark` creates a volume"));
    };
    for (key, member) in Node::root(body).members()? {
        match key {
            "Name" => member.is(own)?,
            "Driver" => member.is("local")?,
            "Labels" => {
                for (key, member) in member.members()? {
                    match key {
                        "io.wharf.installation" => member.is(&scope.installation)?,
                        MARK => member.is(mark)?,
                        _ => return member.unlisted(),
                    }
                }
            }
            _ => return member.unlisted(),
        }
    }
    required(body, "/Name")?;
    required(body, "/Labels/io.wharf.installation")?;
    required(body, "/Labels/io.wharf.mark")
}
