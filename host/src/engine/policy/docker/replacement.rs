//! A container with a larger disk that replaces an instance's container. It has a first name until it
//! has all of the old container's content, and a second one until the old container is gone. Then it
//! gets the instance's name.

use super::{Refusal, creation, own_container, own_name, refuse, subject};
use crate::engine::policy::path::Target;
use crate::engine::scope::CallScope;

/// Suffix of the instance's name while the content is incomplete.
const PART: &str = "-part";
/// Suffix of the instance's name once the content is complete.
const WHOLE: &str = "-whole";

/// Checks a transfer: from the instance's container into its replacement.
pub fn transfer(
    scope: &CallScope,
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

/// Checks the name of a container to create.
pub fn made_as(scope: &CallScope, name: &str) -> Result<(), Refusal> {
    match is(scope, name, PART)? {
        true => Ok(()),
        false => own_name(scope, name),
    }
}

/// Checks for either name, or the instance's container.
pub fn own(scope: &CallScope, name: &str) -> Result<(), Refusal> {
    match is(scope, name, PART)? || is(scope, name, WHOLE)? {
        true => Ok(()),
        false => own_container(scope, name),
    }
}

/// Checks a change from one name to the next.
pub fn renamed(scope: &CallScope, from: &str, to: Option<&str>) -> Result<(), Refusal> {
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

fn is(scope: &CallScope, name: &str, suffix: &str) -> Result<bool, Refusal> {
    let own = format!("{}{}", super::PREFIX, subject(scope)?.tag.instance);
    Ok(name.strip_suffix(suffix) == Some(&own))
}
