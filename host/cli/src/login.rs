//! `wharf login` and `wharf logout`.

use crate::create::secret_of_stdin;
use crate::device;
use crate::failure::Failure;
use crate::output::note;
use crate::profiles::{Profile, Profiles};
use anyhow::{Context, Result};
use clap::Args;
use wharf_client::{Client, Error as ClientError, Secret};

/// Sign in to a server
#[derive(Args)]
pub struct Login {
    /// URL of the server, such as https://wharf.example.org
    url: String,
    /// Read an API key from stdin instead of signing in with a browser
    #[arg(long)]
    with_key: bool,
    /// Name of the profile; default: host and port of the URL
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

/// Forget the key of a profile
#[derive(Args)]
pub struct Logout {
    /// Also revoke the key on the server
    #[arg(long)]
    revoke: bool,
    /// Name of the profile; default: the current one
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

impl Login {
    pub async fn run(self) -> Result<()> {
        // Fail before the browser or the key.
        let mut profiles = Profiles::load()?;
        let anonymous = Client::new(&self.url, None)?;
        let url = anonymous.url().to_owned();
        let address: http::Uri = url.parse()?;
        let authority = address.authority().context("the URL has no host")?;
        if address.scheme_str() == Some("http") && !is_loopback(authority.host()) {
            note("Warning: plain HTTP shows the key to the network; prefer https.");
        }
        let key = if self.with_key {
            secret_of_stdin()?
        } else {
            device::sign_in(&anonymous).await?
        };
        check(&url, &key).await?;
        let name = self.profile.unwrap_or_else(|| authority.to_string());
        profiles.profile.insert(
            name.clone(),
            Profile {
                url: url.clone(),
                key,
            },
        );
        profiles.current = Some(name.clone());
        profiles.save()?;
        note(&format!("Signed in to {url} as the profile {name}."));
        Ok(())
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Checks that the server accepts the key. A key without the scope `read` is a key as well.
async fn check(url: &str, key: &Secret) -> Result<()> {
    let client = Client::new(url, Some(key.clone()))?;
    match client.get_quota().send().await {
        Ok(_) => Ok(()),
        Err(ClientError::Refused(refusal)) if refusal.status == 403 => Ok(()),
        Err(ClientError::Refused(refusal)) if refusal.status == 401 => {
            let message = format!("{url} does not accept this key; nothing is changed.");
            Err(Failure::NotSignedIn(message).into())
        }
        Err(error) => Err(error.into()),
    }
}

impl Logout {
    pub async fn run(self) -> Result<()> {
        let mut profiles = Profiles::load()?;
        let (name, profile) = profiles.get(self.profile.as_deref())?;
        let (name, profile) = (name.to_owned(), profile.clone());
        if self.revoke {
            let client = Client::new(&profile.url, Some(profile.key.clone()))?;
            let id = key_id(&profile.key).context("the key has no id")?;
            client.revoke_key(id).send().await?;
        }
        profiles.profile.remove(&name);
        if profiles.current.as_ref() == Some(&name) {
            profiles.current = None;
        }
        profiles.save()?;
        let what = if self.revoke {
            "revoked and forgotten"
        } else {
            "forgotten"
        };
        note(&format!("The key of {name} is {what}."));
        Ok(())
    }
}

/// The public id in a key, `wharf_ID_SECRET`.
fn key_id(key: &Secret) -> Option<&str> {
    key.expose().split('_').nth(1)
}
