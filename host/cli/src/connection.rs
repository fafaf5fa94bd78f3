//! The server that a command is for, and the format of its output.

use crate::failure::Failure;
use crate::names;
use crate::output::{OutputFormat, json};
use crate::profiles::Profiles;
use anyhow::Result;
use clap::Args;
use serde::de::DeserializeOwned;
use std::env;
use wharf_client::{Client, Reply, Secret};

const URL: &str = "WHARF_URL";
const KEY: &str = "WHARF_API_KEY";
const PROFILE: &str = "WHARF_PROFILE";

/// The options of all commands for users.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Server and output")]
pub struct Connection {
    /// Profile of `wharf login`; without it WHARF_URL and WHARF_API_KEY, WHARF_PROFILE, or the current one
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Format of the output: columns for people, or JSON for programs
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: OutputFormat,
}

/// The arguments of a command for one instance.
#[derive(Args)]
pub struct InstanceArgs {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    pub name: String,
    #[command(flatten)]
    pub connection: Connection,
}

/// A server, and the key for it.
pub struct ServerAccess {
    pub url: String,
    pub key: Secret,
    /// The profile; none if the environment names the server.
    pub profile: Option<String>,
}

impl Connection {
    /// Finds the server. A key is used for its own server only.
    pub fn target(&self) -> Result<ServerAccess> {
        let variable = |name| {
            env::var(name)
                .ok()
                .filter(|value: &String| !value.is_empty())
        };
        let of_profile = |name: Option<&str>| {
            let profiles = Profiles::load()?;
            let (name, profile) = profiles.get(name)?;
            Ok(ServerAccess {
                url: profile.url.clone(),
                key: profile.key.clone(),
                profile: Some(name.to_owned()),
            })
        };
        if self.profile.is_some() {
            return of_profile(self.profile.as_deref());
        }
        match (variable(URL), variable(KEY)) {
            (Some(url), Some(key)) => Ok(ServerAccess {
                url,
                key: key.into(),
                profile: None,
            }),
            (Some(url), None) => Err(Failure::NotSignedIn(format!(
                "{URL} is {url}, but {KEY} is not set; set both or neither."
            ))
            .into()),
            (None, Some(_)) => Err(Failure::NotSignedIn(format!(
                "{KEY} is set, but {URL} is not; set both or neither."
            ))
            .into()),
            (None, None) => of_profile(variable(PROFILE).as_deref()),
        }
    }

    /// A client of the server.
    pub fn client(&self) -> Result<Client> {
        let ServerAccess { url, key, .. } = self.target()?;
        Ok(Client::new(&url, Some(key))?)
    }

    /// Whether the output is JSON.
    pub fn is_json(&self) -> bool {
        self.output == OutputFormat::Json
    }

    /// Prints the body of a response, as JSON as it was received, or in words.
    pub fn print<T: DeserializeOwned>(
        &self,
        reply: &Reply<T>,
        in_words: impl FnOnce(T) -> Result<()>,
    ) -> Result<()> {
        if self.is_json() {
            return json(reply.value());
        }
        in_words(reply.body()?)
    }
}
