//! Completion of names of instances from the server.

use super::block_on;
use super::connection::Connection;
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;
use serde_json::Value;
use std::ffi::OsStr;
use std::time::Duration;

/// A shell waits for the names at each press of the key.
const LIMIT: Duration = Duration::from_secs(2);

/// The completer of an argument that names an instance.
pub fn instances() -> ArgValueCompleter {
    ArgValueCompleter::new(names)
}

/// The names that begin with `current`; none if the server does not answer, since a shell has no place
/// for errors.
fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let list = block_on(async {
        let client = Connection::default().client()?;
        let list = tokio::time::timeout(LIMIT, client.list_instances(None, None).send());
        Ok(list.await??.into_value())
    });
    let list = list.unwrap_or_default();
    let names = list.as_array().into_iter().flatten();
    names
        .filter_map(|instance| {
            let name = instance.get("name").and_then(Value::as_str)?;
            let state = instance.get("state").and_then(Value::as_str)?;
            let candidate = CompletionCandidate::new(name).help(Some(state.to_owned().into()));
            name.starts_with(&*current).then_some(candidate)
        })
        .collect()
}
