//! The store of credentials: API keys, sessions, the ways to sign in, and the programs that users approve.

pub mod access;
pub mod device;
pub mod disabled;
pub mod end_access;
mod hashing;
pub mod identity;
pub mod invite;
pub mod key;
mod key_end;
pub mod key_rows;
mod known_browser;
mod last_use;
pub mod passkey;
pub mod password;
pub mod recent_sign_in;
pub mod session;
pub mod sign_in_methods;
pub mod ssh_key;
mod ticket;
mod upkeep;

use arc_swap::ArcSwap;
use device::Devices;
use hashing::Hashing;
use key::ApiKeys;
use parking_lot::Mutex;
use passkey::Ceremonies;
use prometheus_client::registry::Registry;
use session::Sessions;
use std::net::IpAddr;
use std::sync::Arc;
use ticket::Tickets;
use wharf_db::{Db, FeatureTables};
use wharf_domain::audit::{Actor, Origin};
use wharf_domain::error::Error;
use wharf_ground::clock::Clock;
use wharf_ground::config::SharedConfig;

/// The tables of this crate, by feature.
pub const TABLES: &[FeatureTables] = &[
    session::TABLES,
    invite::TABLES,
    password::TABLES,
    disabled::TABLES,
    passkey::TABLES,
    identity::TABLES,
    key_rows::TABLES,
    ssh_key::TABLES,
];

/// The store of credentials. The database has all of them; memory holds the valid keys and the sessions
/// for authentication.
pub struct Accounts {
    pub keys: ApiKeys,
    db: Db,
    clock: Clock,
    config: SharedConfig,
    hashing: Hashing,
    devices: Devices,
    ceremonies: Ceremonies,
    tickets: Tickets,
    /// The map is replaced as a whole on each change, so that authentication needs no lock.
    sessions: ArcSwap<Sessions>,
    /// Held while memory follows the rows of a user.
    refreshing: Mutex<()>,
}

impl Accounts {
    /// Loads the keys and the sessions from the database.
    pub fn load(db: Db, clock: Clock, config: SharedConfig) -> Result<Self, Error> {
        let sessions = session::load(&db)?;
        Ok(Self {
            keys: ApiKeys::load(db.clone(), clock.clone())?,
            db,
            clock,
            config,
            hashing: Hashing::new(),
            devices: Devices::default(),
            ceremonies: Ceremonies::default(),
            tickets: Tickets::default(),
            sessions: ArcSwap::from_pointee(sessions),
            refreshing: Mutex::default(),
        })
    }

    /// Adds the figures of accounts to a registry.
    pub fn register_metrics(&self, registry: &mut Registry) {
        registry.register(
            "password_hashes",
            "Hashes of passwords since the start; each sign-in by password computes one",
            self.hashing.hashes(),
        );
    }
}

/// The sender of a request without a credential.
#[derive(Debug, Clone)]
pub struct AnonymousSender {
    /// Address of the client.
    pub peer: Option<IpAddr>,
    /// Network of the client, which limits count.
    pub network: Option<IpAddr>,
    /// Id of the request in the log.
    pub request_id: Arc<str>,
}

impl AnonymousSender {
    /// The source of the changes that begin a session.
    fn origin(&self, session: &str) -> Origin {
        Origin {
            actor: Actor::Session(session.to_owned()),
            peer: self.peer,
            request_id: Some(self.request_id.to_string()),
        }
    }
}
