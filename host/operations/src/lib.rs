//! The operations of the operator: a subcommand of `wharf` calls one of them, on a running server or on its
//! database. The tables of all crates are here too, as this one is above the others.

pub mod bill;
pub mod check;
pub mod drain;
pub mod engines;
pub mod forget;
pub mod history;
pub mod lost;
pub mod move_instance;
pub mod node_list;
pub mod restore_node;
pub mod schema;
pub mod secrets;
pub mod suspend;
pub mod users;

use std::path::Path;
use std::sync::Arc;
use wharf_accounts::Accounts;
use wharf_config::Config;
use wharf_db::Db;
use wharf_domain::error::{Error, FieldErrors};
use wharf_ground::clock::Clock;
use wharf_ground::vault::{Vault, VaultError};
use wharf_instances::{App, Selector, SharedInventory};

/// The refusal of a name or UUID that an operator gave.
fn no_instance(named: &Selector) -> Error {
    let message = match named {
        Selector::Id(id) => format!("no instance has the UUID {id}"),
        Selector::Name(name) => {
            format!("no instance is called {name:?}; name a deleted instance by its UUID")
        }
    };
    FieldErrors::one("instance", message).into()
}

/// The state of a running server, or of a database that no server has open.
#[derive(Clone)]
pub struct Operator<'a> {
    pub db: &'a Db,
    pub accounts: &'a Accounts,
    pub inventory: &'a SharedInventory,
    pub config: Arc<Config>,
    pub clock: &'a Clock,
    pub secrets: SecretsSource<'a>,
    /// The running server.
    pub app: Option<&'a App>,
}

/// The way to the keys of the secrets.
#[derive(Clone, Copy)]
pub enum SecretsSource<'a> {
    /// The server has them open.
    Open(&'a Vault),
    /// They are in a data directory.
    In(&'a Path),
}

impl<'a> Operator<'a> {
    /// The state of a running server.
    pub fn of(app: &'a App, accounts: &'a Accounts) -> Self {
        Self {
            db: app.db(),
            accounts,
            inventory: app.inventory(),
            config: app.config(),
            clock: app.clock(),
            secrets: SecretsSource::Open(app.vault()),
            app: Some(app),
        }
    }

    /// Returns the keys of the secrets. Operations that need none work without the key file.
    pub async fn vault(&self) -> Result<Vault, VaultError> {
        match self.secrets {
            SecretsSource::Open(vault) => Ok(vault.clone()),
            SecretsSource::In(dir) => Vault::open(dir, self.db).await,
        }
    }
}
