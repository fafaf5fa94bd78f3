//! Operations for the operator. A subcommand of `wharf` is one operation: its arguments are the request to
//! the running server, over the admin socket, and its reply prints itself. If no server runs, it runs on
//! the database. A new one is a file of [`crate::command`], and a line in its list of commands.

use crate::http::AdminClient;
use crate::server::open_db;
use anyhow::{Result, bail};
use serde::{Serialize, de::DeserializeOwned};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use wharf_accounts::Accounts;
use wharf_cli::output::json;
use wharf_config::Config;
use wharf_db::Db;
use wharf_domain::error::Error;
use wharf_ground::clock::Clock;
use wharf_ground::config::SharedConfig;
use wharf_instances::SharedInventory;
use wharf_operations::{Operator, SecretsSource};

/// An operation with its arguments. The admin socket carries it as JSON.
pub trait Operation: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Path on the admin socket.
    const PATH: &'static str;
    /// The time that a running server has for it.
    const TIMEOUT: Duration = Duration::from_secs(10);
    /// The result. Its JSON may hold a secret, so it needs no `Debug`.
    type Reply: Serialize + DeserializeOwned + Send;

    /// Runs it. An error of an argument is [`Error::Fields`] and names the argument.
    fn run(
        &self,
        operator: Operator<'_>,
    ) -> impl Future<Output = Result<Self::Reply, Error>> + Send;

    /// Prints the reply in words. An operation without a result prints nothing.
    fn print(&self, _: &Self::Reply) -> Result<()> {
        Ok(())
    }

    /// Prints the reply as JSON.
    fn print_json(&self, reply: &Self::Reply) -> Result<()> {
        match serde_json::to_string(reply)?.as_str() {
            "null" => Ok(()),
            _ => json(reply),
        }
    }

    /// The operation for the next page of a long list.
    fn next(&self, _: &Self::Reply) -> Option<Self> {
        None
    }

    /// Fails if the reply is bad news, after it was printed.
    fn verdict(&self, _: &Self::Reply) -> Result<()> {
        Ok(())
    }
}

/// The running server of a configuration, or its database if no server runs.
pub enum Performer {
    Server(AdminClient),
    Database(Box<OpenedDatabase>),
}

/// An open database, and the parts that operations need.
pub struct OpenedDatabase {
    db: Db,
    inventory: SharedInventory,
    clock: Clock,
    accounts: Accounts,
    config: Arc<Config>,
}

impl Performer {
    pub async fn find(config: &Config) -> Result<Self> {
        if let Some(server) = AdminClient::connect(&config.admin_socket()).await? {
            return Ok(Self::Server(server));
        }
        let (db, inventory, clock) = open_db(config)?;
        let config = Arc::new(config.clone());
        let shared = SharedConfig::new(Arc::clone(&config));
        let accounts = Accounts::load(db.clone(), clock.clone(), shared)?;
        Ok(Self::Database(Box::new(OpenedDatabase {
            db,
            inventory,
            clock,
            accounts,
            config,
        })))
    }

    /// Runs an operation.
    pub async fn perform<O: Operation>(&self, operation: &O) -> Result<O::Reply> {
        let opened = match self {
            Self::Server(server) => return Ok(server.perform(operation).await?),
            Self::Database(opened) => opened,
        };
        let operator = Operator {
            db: &opened.db,
            accounts: &opened.accounts,
            inventory: &opened.inventory,
            config: Arc::clone(&opened.config),
            clock: &opened.clock,
            secrets: SecretsSource::In(&opened.config.data_dir),
            app: None,
        };
        match operation.run(operator).await {
            Ok(reply) => Ok(reply),
            Err(Error::Fields(errors)) => bail!("{errors}"),
            Err(error) => bail!("{}", error.chain()),
        }
    }
}
