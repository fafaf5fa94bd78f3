//! `[pages.acme]`: a certificate authority that issues the certificate of the pages.

use super::check::wrong;
use super::{ConfigError, PagesConfig};
use http::Uri;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An authority with the protocol ACME (RFC 8555), and a program that changes the DNS.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcmeConfig {
    /// URL of the authority's directory, required.
    pub directory: String,
    /// Whether the operator accepts the authority's terms of service. Must be true.
    #[serde(default)]
    pub accept_terms: bool,
    /// E-mail address for messages of the authority. Default: none.
    pub contact: Option<String>,
    /// Program and arguments, required. It gets three more: `present` or `cleanup`, the name of a TXT
    /// record, and its value.
    pub hook: Vec<String>,
    /// Maximum time for one run of the program. Default 120.
    #[serde(default = "hook_timeout_s")]
    pub hook_timeout_s: u64,
    /// Time from the end of the program until the authority looks for the record. Default 30.
    #[serde(default = "propagation_s")]
    pub propagation_s: u64,
    /// An account with the authority that exists already. Default: none.
    pub external_account: Option<ExternalAccount>,
}

/// The binding of an account of the protocol to one that the authority has by other means.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalAccount {
    /// The authority's name for the key.
    pub key_id: String,
    /// Path of a file with the key, in base64url.
    pub key_file: PathBuf,
}

fn hook_timeout_s() -> u64 {
    120
}

fn propagation_s() -> u64 {
    30
}

/// The longest time of a setting in seconds.
const HOUR: u64 = 3600;

impl AcmeConfig {
    /// The program that changes the DNS.
    pub fn program(&self) -> Option<&Path> {
        self.hook.first().map(Path::new)
    }

    pub fn hook_timeout(&self) -> Duration {
        Duration::from_secs(self.hook_timeout_s)
    }

    pub fn propagation(&self) -> Duration {
        Duration::from_secs(self.propagation_s)
    }

    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        let is_https = |url: &str| {
            let uri = url.parse::<Uri>();
            uri.is_ok_and(|uri| uri.scheme_str() == Some("https") && uri.host().is_some())
        };
        let is_address = |contact: &String| {
            contact.split_once('@').is_some_and(|(user, host)| {
                !user.is_empty() && !host.is_empty() && !contact.contains([' ', ',', ':', '?'])
            })
        };
        if !is_https(&self.directory) {
            Some(("directory", "must be an https URL"))
        } else if !self.accept_terms {
            let rule = "must be true: the authority has terms of service";
            Some(("accept_terms", rule))
        } else if !self.contact.as_ref().is_none_or(is_address) {
            Some(("contact", "must be an e-mail address"))
        } else if !self.program().is_some_and(Path::is_absolute) {
            let rule = "must begin with the absolute path of a program";
            Some(("hook", rule))
        } else if !(1..=HOUR).contains(&self.hook_timeout_s) {
            Some(("hook_timeout_s", "must be 1 to 3600"))
        } else if self.propagation_s > HOUR {
            Some(("propagation_s", "must be at most 3600"))
        } else {
            None
        }
    }
}

/// Checks the section of these pages.
pub(super) fn check(pages: &PagesConfig) -> Result<(), ConfigError> {
    let Some(acme) = &pages.acme else {
        return Ok(());
    };
    if pages.cert.is_some() || pages.key.is_some() {
        return wrong(
            "pages.acme",
            "must not be set with `pages.cert` and `pages.key`",
        );
    }
    match acme.broken_rule() {
        Some((key, rule)) => wrong(&format!("pages.acme.{key}"), rule),
        None => Ok(()),
    }
}
