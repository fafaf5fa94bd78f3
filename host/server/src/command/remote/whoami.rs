//! `wharf whoami`.

use super::connection::Connection;
use super::output::{cell, json, list};
use anyhow::Result;
use clap::Args;
use wharf_client::Client;

/// Show the server, and the user or the key that you are signed in with
#[derive(Args)]
pub struct Whoami {
    #[command(flatten)]
    connection: Connection,
}

impl Whoami {
    pub async fn run(self) -> Result<()> {
        let target = self.connection.target()?;
        let client = Client::new(&target.url, Some(target.key.clone()))?;
        let who = client.get_session().send().await?.into_value();
        if self.connection.is_json() {
            return json(&who);
        }
        let profile = target.profile.unwrap_or_else(|| "-".to_owned());
        let mut rows = vec![("profile", profile), ("url", client.url().to_owned())];
        let fields = who.as_object().into_iter().flatten();
        rows.extend(fields.map(|(name, value)| (name.as_str(), cell(value))));
        list(&rows)
    }
}
