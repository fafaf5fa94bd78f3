//! The node's `settings` table.

use crate::types::{Error, FieldError, Node};
use serde::de::DeserializeOwned;

/// Reads `node.settings` into the driver's own type. Give that type `#[serde(default,
/// deny_unknown_fields)]`: a misspelt setting is then an error that names it.
///
/// # Errors
/// [`Error::Invalid`] on the field `settings`, with what is wrong with it.
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
