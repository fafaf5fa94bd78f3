//! Users of the console: invitations, the ways to sign in, sessions, and the programs that they
//! approve.

mod browser;
pub mod device;
mod end_access;
mod hashing;
pub(crate) mod identity;
pub(crate) mod invite;
pub(crate) mod lasting;
pub(crate) mod passkey;
pub(crate) mod password;
pub(crate) mod session;
mod session_use;
pub(crate) mod state;
mod ticket;
pub(crate) mod user;
pub(crate) mod ways;

pub use end_access::EndedAccess;
pub use identity::{Identity, IdentityError, ProvenIdentity};
pub use invite::{Invitation, Invite};
pub use lasting::Expiry;
pub use passkey::{Passkey, RelyingParty};
pub use session::{NewSession, SessionInfo};
pub(crate) use session::{name as id_name, parse as parse_id};

use super::access::Access;
use super::clock::Clock;
use arc_swap::ArcSwap;
use device::Devices;
use hashing::Hashing;
use parking_lot::Mutex;
use passkey::Ceremonies;
use prometheus_client::metrics::counter::Counter;
use session::Sessions;
use std::net::IpAddr;
use std::sync::Arc;
use ticket::Tickets;
use wharf_db::Db;
use wharf_domain::audit::{Actor, Origin};
use wharf_domain::error::Error;

/// The accounts. The database stores all of them; memory holds the sessions for authentication.
pub struct Accounts {
    db: Db,
    clock: Clock,
    access: Access,
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
    /// Loads the sessions from the database.
    pub fn load(db: Db, clock: Clock, access: Access) -> Result<Self, Error> {
        let sessions = session::load(&db)?;
        Ok(Self {
            db,
            clock,
            access,
            hashing: Hashing::new(),
            devices: Devices::default(),
            ceremonies: Ceremonies::default(),
            tickets: Tickets::default(),
            sessions: ArcSwap::from_pointee(sessions),
            refreshing: Mutex::default(),
        })
    }

    /// The number of hashes of passwords since the start. A sign-in computes one, whether the user
    /// exists or not.
    pub(crate) fn hashes(&self) -> Counter {
        self.hashing.hashes()
    }
}

/// The sender of a request without a credential.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// Address of the client.
    pub peer: Option<IpAddr>,
    /// Network of the client, which limits count.
    pub network: Option<IpAddr>,
    /// Id of the request in the log.
    pub request_id: Arc<str>,
}

impl Visitor {
    /// The source of the changes that begin a session.
    fn origin(&self, session: &str) -> Origin {
        Origin {
            actor: Actor::Session(session.to_owned()),
            peer: self.peer,
            request_id: Some(self.request_id.to_string()),
        }
    }
}
