//! `wharf keys`.

use crate::connection::Connection;
use crate::output::Column::Text;
use crate::output::{joined, line, note, one_of, table, time};
use anyhow::Result;
use clap::Subcommand;
use wharf_client::types::{Key, KeyRequest, UserScope};

#[derive(Subcommand)]
pub enum Keys {
    /// List your keys
    Ls(Connection),
    /// Create a key and print it; it cannot be shown again
    Create {
        /// A name for the key
        name: Option<String>,
        /// A scope of the key; can be given repeatedly. Default: those of the key in use
        #[arg(long = "scope", value_parser = one_of::<UserScope, 2>(["read", "write"]))]
        scopes: Vec<UserScope>,
        /// Expiry of the key, an ISO 8601 date and time
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        #[command(flatten)]
        connection: Connection,
    },
    /// Revoke a key with immediate effect
    Rm {
        /// The id of the key, as shown by `ls`
        id: String,
        #[command(flatten)]
        connection: Connection,
    },
}

impl Keys {
    pub async fn run(self) -> Result<()> {
        match self {
            Self::Ls(connection) => {
                let keys = connection.client()?.list_keys().send().await?;
                let columns = ["ID", "SCOPES", "CREATED", "EXPIRES", "LAST USED", "NAME"];
                connection.print(&keys, |keys| {
                    table(columns.map(Text), keys.0.iter().map(row))
                })
            }
            Self::Create {
                name,
                scopes,
                expires,
                connection,
            } => {
                let mut body = KeyRequest::new();
                body.name = name;
                body.expires_at = expires;
                body.scopes = Some(scopes).filter(|scopes| !scopes.is_empty());
                let created = connection.client()?.create_key(&body).send().await?;
                connection.print(&created, |created| line(created.key.expose()))
            }
            Self::Rm { id, connection } => {
                connection.client()?.revoke_key(&id).send().await?;
                note(&format!("The key {id} is revoked."));
                Ok(())
            }
        }
    }
}

fn row(key: &Key) -> [String; 6] {
    [
        key.id.clone(),
        joined(&key.scopes),
        time(Some(&key.created_at)),
        time(key.expires_at.as_ref()),
        time(key.last_used_at.as_ref()),
        key.name.clone(),
    ]
}
