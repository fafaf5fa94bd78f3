//! Filters of lists: a list is restricted to this installation's objects.

use super::refuse;
use crate::engine::policy::Refusal;
use crate::engine::policy::json::Node;
use crate::engine::policy::path::Target;
use crate::engine::scope::CallScope;
use serde_json::Value;

/// Requires `filters` with this installation's label.
pub fn owned(target: &Target<'_>, scope: &CallScope) -> Result<(), Refusal> {
    let filters = target
        .get("filters")
        .ok_or_else(|| refuse("filters: a list asks for its own label"))?;
    let filters: Value =
        serde_json::from_str(filters).map_err(|_| refuse("filters: not valid JSON"))?;
    let own = format!("io.wharf.installation={}", scope.installation);
    let mut labelled = false;
    for (key, member) in Node::root(&filters).members()? {
        for item in member.items()? {
            let text = item.text()?;
            labelled |= key == "label" && text == own;
        }
        if !matches!(key, "label" | "name" | "status") {
            return member.unlisted();
        }
    }
    if labelled {
        Ok(())
    } else {
        Err(refuse(format!("filters: label {own:?} is required")))
    }
}
