//! `wharf preferences`.

use super::connection::Connection;
use super::output::{field, json};
use anyhow::Result;
use clap::{ArgAction, Args};
use wharf_client::types::PreferencesRequest;

/// Show your preferences, or change them
#[derive(Args)]
pub struct Preferences {
    /// Whether running instances may be stopped, moved and started again for the maintenance of a node
    #[arg(long, value_name = "true|false", action = ArgAction::Set)]
    allow_moves: Option<bool>,
    #[command(flatten)]
    connection: Connection,
}

impl Preferences {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let preferences = match self.allow_moves {
            None => client.get_preferences().send().await?.into_value(),
            allow_moves => {
                let mut body = PreferencesRequest::new();
                body.allow_moves = allow_moves;
                client.update_preferences(&body).send().await?.into_value()
            }
        };
        if self.connection.is_json() {
            return json(&preferences);
        }
        println!("allow_moves: {}", field(&preferences, "allow_moves"));
        Ok(())
    }
}
