//! Completion of names of instances from the server.

use crate::block_on;
use crate::connection::Connection;
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;
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
        let list = tokio::time::timeout(LIMIT, client.list_instances(None, None).fetch());
        Ok(list.await??.0)
    });
    let list = list.unwrap_or_default().into_iter();
    let fitting = list.filter(|instance| instance.name.starts_with(&*current));
    fitting
        .map(|instance| {
            let state = instance.state.to_string();
            CompletionCandidate::new(&instance.name).help(Some(state.into()))
        })
        .collect()
}
