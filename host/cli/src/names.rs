//! Completion of names of instances, volumes, snapshots, buckets and backups from the server.

use crate::block_on;
use crate::connection::Connection;
use crate::snapshot;
use crate::volume::named;
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::time::Duration;
use wharf_client::types::Backup;
use wharf_client::{Client, Request};

/// A shell waits for the names at each press of the key.
const LIMIT: Duration = Duration::from_secs(2);

/// The completer of an argument that names an instance.
pub fn instances() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let list = fetched(|client| client.list_instances(None, None));
        let names = list.iter().flat_map(|list| &list.0);
        fitting(
            current,
            names.map(|instance| (instance.name.clone(), instance.state.to_string())),
        )
    })
}

/// The completer of an argument that names a volume.
pub fn volumes() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| fitting(current, named_volumes("")))
}

/// The completer of an argument that begins with the name of a volume and has a directory then.
pub fn volumes_with_path() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| fitting(current, named_volumes(":/")))
}

/// The completer of an argument that names a snapshot.
pub fn snapshots() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let list = fetched(|client| client.list_snapshots(None, None, None));
        let names = list.iter().flat_map(|list| &list.0);
        let named = names.map(|one| (snapshot::named(one), one.state.to_string()));
        fitting(current, named)
    })
}

/// The completer of an argument that names a bucket.
pub fn buckets() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let list = fetched(|client| client.list_buckets());
        let names = list.iter().flat_map(|list| &list.0);
        let named = names.map(|one| (one.name.clone(), one.endpoint.clone()));
        fitting(current, named)
    })
}

/// The completer of an argument that names a backup.
pub fn backups() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let list = fetched(|client| client.list_backups(None, None, None));
        let names = list.iter().flat_map(|list| &list.0);
        let of = |one: &Backup| {
            one.instance_name
                .clone()
                .or_else(|| one.volume_name.clone())
        };
        let named = names.map(|one| (one.id.to_string(), of(one).unwrap_or_default()));
        fitting(current, named)
    })
}

fn named_volumes(suffix: &str) -> impl Iterator<Item = (String, String)> {
    let list = fetched(|client| client.list_volumes(None, None));
    let names = list.into_iter().flat_map(|list| list.0);
    names.map(move |volume| (named(&volume) + suffix, format!("{} GiB", volume.size_gib)))
}

/// A list from the server; none if it does not answer, since a shell has no place for errors.
fn fetched<T: DeserializeOwned>(list: impl FnOnce(&Client) -> Request<'_, T>) -> Option<T> {
    let fetched = block_on(async {
        let client = Connection::default().client()?;
        Ok(tokio::time::timeout(LIMIT, list(&client).fetch()).await??)
    });
    fetched.ok()
}

/// The names that begin with `current`, each with a word about it.
fn fitting(
    current: &OsStr,
    names: impl Iterator<Item = (String, String)>,
) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fitting = names.filter(|(name, _)| name.starts_with(&*current));
    fitting
        .map(|(name, word)| CompletionCandidate::new(name).help(Some(word.into())))
        .collect()
}
