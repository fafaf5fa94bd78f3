//! The state that operations for the operator work on.

use super::App;
use super::Selector;
use super::account::Accounts;
use super::account::user::user_of_email;
use super::clock::Clock;
use super::inventory::SharedInventory;
use super::key::Keys;
use super::vault::{Vault, VaultError};
use std::path::Path;
use std::sync::Arc;
use wharf_config::Config;
use wharf_db::{Db, Rows};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::UserId;

/// The user with an e-mail address that an operator named in this field.
pub(crate) fn user_named(rows: &impl Rows, field: &str, email: &str) -> Result<UserId, Error> {
    let missing = || FieldErrors::one(field, format!("no user has the address {email:?}"));
    Ok(user_of_email(rows, email)?.ok_or_else(missing)?)
}

/// The refusal of a name or UUID that an operator gave.
pub(crate) fn no_instance(named: &Selector) -> Error {
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
    pub keys: &'a Keys,
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

impl Operator<'_> {
    /// Returns the keys of the secrets. Operations that need none work without the key file.
    pub async fn vault(&self) -> Result<Vault, VaultError> {
        match self.secrets {
            SecretsSource::Open(vault) => Ok(vault.clone()),
            SecretsSource::In(dir) => Vault::open(dir, self.db).await,
        }
    }
}

impl App {
    /// Returns the state for operations.
    pub fn operator(&self) -> Operator<'_> {
        Operator {
            db: &self.db,
            keys: &self.keys,
            accounts: &self.accounts,
            inventory: &self.inventory,
            config: self.config(),
            clock: &self.clock,
            secrets: SecretsSource::Open(&self.vault),
            app: Some(self),
        }
    }
}
