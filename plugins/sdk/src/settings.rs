//! The node's `settings` table.

use crate::types::{Error, FieldError, Node};
use serde::de::DeserializeOwned;

/// Parses `node.settings` into the driver's own type. Give that type `#[serde(default,
/// deny_unknown_fields)]`, so that a misspelt setting is an error that names it.
///
/// # Errors
/// [`Error::Invalid`] on the field `settings`, with the parser's message.
pub fn settings<T: DeserializeOwned>(node: &Node) -> Result<T, Error> {
    let text = match node.settings.trim() {
        "" => "{}",
        text => text,
    };
    serde_json::from_str(text).map_err(|problem| {
        Error::Invalid(FieldError {
            field: "settings".into(),
            message: format!("settings of node {}: {problem}", node.name),
        })
    })
}
