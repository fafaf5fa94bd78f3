//! A container that takes the place of another of the same instance, with a larger disk. It is made
//! under a name of its own, gets another one once it has all of the old one's content, and the
//! instance's when that is gone.

use super::{Refusal, creation, own_container, own_name, refuse, subject};
use crate::engine::policy::path::Target;
use crate::engine::scope::Scope;

/// After the instance's name, while content is put in.
const PART: &str = "-part";
/// After the instance's name, once all of it is there.
const WHOLE: &str = "-whole";

/// Everything that is in the instance's container, into the one that is to replace it.
pub fn transfer(
    scope: &Scope,
    read: &Target<'_>,
    changes: &Target<'_>,
    write: &Target<'_>,
) -> Result<(), Refusal> {
    creation(scope)?;
    match container(read) {
        Some((name, "export")) => {
            own_container(scope, name)?;
            read.only(&[])?;
        }
        _ => return Err(refuse("a transfer reads an export")),
    }
    match container(changes) {
        Some((name, "changes")) => {
            own_container(scope, name)?;
            changes.only(&[])?;
        }
        _ => return Err(refuse("a transfer looks at changes")),
    }
    match container(write) {
        Some((name, "archive")) if is(scope, name, PART)? => {
            write.only(&["path"])?;
            write
                .get("path")
                .filter(|path| *path == "/")
                .ok_or_else(|| refuse("path=/ is required"))
                .map(|_| ())
        }
        _ => Err(refuse("a transfer writes to what it is made for")),
    }
}

/// `/containers/NAME/VERB`
fn container<'a>(target: &Target<'a>) -> Option<(&'a str, &'a str)> {
    match super::versioned(target).1 {
        ["containers", name, verb] => Some((name, verb)),
        _ => None,
    }
}

/// What a container may be made as.
pub fn made_as(scope: &Scope, name: &str) -> Result<(), Refusal> {
    match is(scope, name, PART)? {
        true => Ok(()),
        false => own_name(scope, name),
    }
}

/// Either name, or the instance's container.
pub fn own(scope: &Scope, name: &str) -> Result<(), Refusal> {
    match is(scope, name, PART)? || is(scope, name, WHOLE)? {
        true => Ok(()),
        false => own_container(scope, name),
    }
}

/// From one to the next.
pub fn renamed(scope: &Scope, from: &str, to: Option<&str>) -> Result<(), Refusal> {
    creation(scope)?;
    let to = to.ok_or_else(|| refuse("name is required"))?;
    if is(scope, from, PART)? && is(scope, to, WHOLE)? {
        return Ok(());
    }
    if is(scope, from, WHOLE)? {
        return own_name(scope, to);
    }
    Err(refuse(format!("renaming {from:?} to {to:?}")))
}

fn is(scope: &Scope, name: &str, suffix: &str) -> Result<bool, Refusal> {
    let own = format!("{}{}", super::PREFIX, subject(scope)?.tag.instance);
    Ok(name.strip_suffix(suffix) == Some(&own))
}
