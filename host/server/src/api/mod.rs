//! One file per endpoint: parse, call the use case, render. This module knows no HTTP; the statuses
//! of the responses are in `http`.

pub mod account;
pub mod attach;
pub mod audit;
pub mod backups;
pub mod create;
pub mod delete;
pub mod device;
pub mod estimate;
pub mod events;
pub mod flavors;
pub mod get;
pub mod host_key;
pub mod kept;
pub mod keys;
pub mod list;
mod list_cache;
pub mod offer;
pub mod page;
pub mod passkeys;
pub mod ports;
pub mod preferences;
pub mod public_key;
pub mod quota;
pub mod recreate;
pub mod restart;
mod s3_url;
pub mod shares;
pub mod shortage;
pub mod snapshots;
pub mod ssh_keys;
pub mod stats;
pub mod stop;
pub mod tag;
pub mod terminal;
#[cfg(test)]
mod tied;
pub mod update;
pub mod usage;
pub mod volume_shares;
pub mod volumes;
pub mod webhooks;
mod wire;

pub use wire::Sight;

use crate::schema::{SchemaError, Schemas};
use bytes::Bytes;
use list_cache::ListCache;
use serde::Serialize;
use std::sync::Arc;
use wharf_accounts::Accounts;
use wharf_backups::Backups;
use wharf_domain::error::Error;
use wharf_ground::caller::Caller;
use wharf_hooks::Webhooks;
use wharf_instances::{App, InstanceCondition, InstanceView};

/// The size limit of the cache of rendered lists in bytes: thousands of lists of ten instances. An entry is
/// valid until one of its instances changes.
const LIST_CACHE_BYTES: u64 = 64 << 20;

/// The state that endpoints share.
pub struct Api {
    app: Arc<App>,
    accounts: Arc<Accounts>,
    webhooks: Arc<Webhooks>,
    backups: Arc<Backups>,
    schemas: Schemas,
    lists: ListCache,
}

impl Api {
    /// Compiles the schemas.
    pub fn new(
        app: Arc<App>,
        accounts: Arc<Accounts>,
        webhooks: Arc<Webhooks>,
        backups: Arc<Backups>,
    ) -> Result<Self, SchemaError> {
        Ok(Self {
            lists: ListCache::new(LIST_CACHE_BYTES),
            schemas: Schemas::compile()?,
            app,
            accounts,
            webhooks,
            backups,
        })
    }

    /// The use cases of instances.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// The store of credentials.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }
}

/// A request of a caller to an endpoint.
pub struct EndpointRequest<At = (), B = ()> {
    pub api: Arc<Api>,
    pub caller: Caller,
    /// The object that the path names.
    pub at: At,
    /// The condition on the instance that the request changes.
    pub condition: InstanceCondition,
    /// The JSON body, not parsed yet.
    pub body: B,
}

impl<At, B> EndpointRequest<At, B> {
    /// The state, the caller, and the object that the path names.
    fn parts(&self) -> (&Api, &Caller, &At) {
        (&self.api, &self.caller, &self.at)
    }
}

/// The result of a request to an endpoint.
pub type EndpointResult = Result<EndpointReply, Error>;

/// The reply of an endpoint; bodies are JSON.
#[derive(Debug, PartialEq, Eq)]
pub enum EndpointReply {
    /// The request was done with this result.
    Done(Bytes),
    /// The request was done; the result is the part of the instance that the caller sees.
    Instance(Bytes, Sight),
    /// An instance was created.
    Created(Bytes, Sight),
    /// An API key or a webhook, whose secret the result has, an SSH key, a share, a bucket or a backup was created.
    KeyCreated(Bytes),
    /// The request was done; the result has a secret.
    Secret(Bytes),
    /// The request was done with a result of this age, in seconds.
    Aged(Bytes, u64),
    /// The request will be done; the result says when.
    Accepted(Bytes),
    /// The request is refused; the result says why, for programs too.
    Refused(Bytes),
    /// The request was done, and there is no result.
    Gone,
}

impl EndpointReply {
    /// A list of objects, each of about this number of bytes.
    fn list<T: Serialize>(objects: impl Iterator<Item = T>, bytes: usize) -> EndpointResult {
        let objects: Vec<T> = objects.collect();
        Ok(Self::Done(render(&objects, bytes * objects.len() + 2)?))
    }

    /// The part of an instance that the caller sees.
    fn instance(caller: &Caller, view: &InstanceView) -> EndpointResult {
        let sight = Sight::of(caller.scopes);
        Ok(Self::Instance(wire::instance(view, sight)?, sight))
    }
}

/// The message about a time that cannot be read.
const TIME: &str = "must be an ISO 8601 time or date, such as 2027-01-01T00:00:00Z";

/// Serialises into a buffer of this capacity.
fn render<T: Serialize>(value: &T, capacity: usize) -> Result<Bytes, Error> {
    let mut out = Vec::with_capacity(capacity);
    serde_json::to_writer(&mut out, value)
        .map_err(|error| Error::caused("cannot render an answer", error))?;
    Ok(out.into())
}
