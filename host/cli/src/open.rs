//! `wharf open`: the page of an instance in a browser, or its files in VS Code.

use crate::config_ssh::DOMAIN;
use crate::connection::Connection;
use crate::editor_key;
use crate::failure::Failure;
use crate::names;
use crate::output::{line, note};
use anyhow::Result;
use clap::Args;
use std::io::{IsTerminal, stdout};
use std::process::{Command, Stdio};

/// Open the page of an instance in a browser, or its home directory in VS Code
///
/// Prints the link. Opens it too, if this computer has a desktop.
#[derive(Args)]
pub struct Open {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// Open the home directory in VS Code, over the SSH entries of `wharf config-ssh`
    #[arg(long)]
    code: bool,
    /// Open the page of a port that `wharf share add` has shared
    #[arg(long, conflicts_with = "code")]
    port: Option<u16>,
    #[command(flatten)]
    connection: Connection,
}

impl Open {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        if let Some(port) = self.port {
            let shares = client.list_shares(&self.name).fetch().await?;
            let mut shares = shares.iter();
            let share = shares.find(|share| share.port == Some(i64::from(port)));
            let Some(url) = share.and_then(|share| share.url.as_ref()) else {
                let name = &self.name;
                let message = format!(
                    "port {port} of {name} has no page; `wharf share add {name} --port {port}` gives it one"
                );
                return Err(Failure::Usage(message).into());
            };
            return show(url);
        }
        let instance = client.get_instance(&self.name).fetch().await?;
        let name = &instance.name;
        if !self.code {
            let Some(url) = &instance.webapp_url else {
                let message = format!("{name} has no page; `wharf ssh {name}` opens a shell");
                return Err(Failure::Usage(message).into());
            };
            return show(url);
        }
        client.check_tunnel(&instance.uuid).await?;
        let user = client.get_session().fetch().await?.login_user;
        match editor_key::public()? {
            None => note(
                "OpenSSH does not know your instances yet; run `wharf config-ssh` once, and open \
                 the link again.",
            ),
            Some(key) => {
                let uuid = &instance.uuid;
                editor_key::append(&self.connection, &client, uuid, &user, &key).await?;
            }
        }
        show(&format!(
            "vscode://vscode-remote/ssh-remote+{name}.{DOMAIN}/home/{user}"
        ))
    }
}

/// Prints a link, and opens it on a desktop.
fn show(link: &str) -> Result<()> {
    line(link)?;
    let has = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if has("DISPLAY") || has("WAYLAND_DISPLAY") {
        "xdg-open"
    } else {
        return Ok(());
    };
    if stdout().is_terminal() {
        let mut opener = Command::new(program);
        opener.arg(link).stdin(Stdio::null()).stderr(Stdio::null());
        if !opener.status().is_ok_and(|status| status.success()) {
            note(&format!("{program} did not open the link."));
        }
    }
    Ok(())
}
