//! How this machine reaches package sources, for the builds that it starts: they are not on its
//! file system. Nothing of it is kept in an image's files, and credentials are never handed on, since
//! layers keep what is removed from them.

use crate::process::{command, output};
use anyhow::Result;
use serde_json::{Map, Value};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Where `wharf-install` sees the directory.
const SEEN_AT: &str = "/tmp/wharf/machine";
/// Certificate authorities of a Debian or Ubuntu machine, an intercepting proxy's among them.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The variables by which the package managers take them.
const AUTHORITIES_VARIABLES: [&str; 3] = ["SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS"];
/// What pip calls an index, and the variables by which pip and uv take it.
const INDEXES: [(&str, [&str; 2]); 2] = [
    ("index-url", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX"]),
    ("extra-index-url", ["PIP_EXTRA_INDEX_URL", "UV_INDEX"]),
];
/// Engines know these by themselves and keep them out of an image's history.
const PROXIES: [&str; 6] = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// A directory that goes into a build's context, called `machine`.
pub(super) struct Settings {
    context: TempDir,
}

impl Settings {
    /// Those of this machine, as they are now.
    pub fn read() -> Result<Self> {
        let context = tempfile::tempdir()?;
        let directory = context.path().join("machine");
        fs::create_dir(&directory)?;
        let mut variables = Vec::new();
        let own = env::var_os("SSL_CERT_FILE").map_or_else(|| AUTHORITIES.into(), PathBuf::from);
        if fs::copy(own, directory.join("authorities.crt")).is_ok() {
            let file = format!("{SEEN_AT}/authorities.crt");
            variables.extend(AUTHORITIES_VARIABLES.map(|name| (name, file.clone())));
        }
        variables.extend(package_indexes());
        fs::write(directory.join("environment"), assignments(&variables))?;
        Ok(Self { context })
    }

    /// What to put beside a recipe.
    pub fn directory(&self) -> &Path {
        self.context.path()
    }

    /// Proxies, as an engine's build arguments.
    pub fn proxies(&self) -> Map<String, Value> {
        PROXIES
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), env::var(name).ok()?.into())))
            .collect()
    }
}

/// From pip's and npm's own configuration, where they are installed.
fn package_indexes() -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for (setting, variables) in INDEXES {
        let mut pip = command("python3");
        pip.args(["-m", "pip", "config", "get", &format!("global.{setting}")]);
        if let Some(url) = plain_url(output(&mut pip)) {
            found.extend(variables.map(|name| (name, url.clone())));
        }
    }
    let registry = output(command("npm").args(["config", "get", "registry"]));
    found.extend(plain_url(registry).map(|url| ("NPM_CONFIG_REGISTRY", url)));
    found
}

/// An address without credentials.
fn plain_url(answer: Result<String>) -> Option<String> {
    let url = answer.ok()?.trim().to_owned();
    (url.starts_with("http") && !url.contains('@')).then_some(url)
}

/// Lines for a shell to read.
fn assignments(variables: &[(&str, String)]) -> String {
    variables
        .iter()
        .fold(String::new(), |mut text, (name, value)| {
            let _ = writeln!(text, "{name}='{}'", value.replace('\'', r"'\''"));
            text
        })
}

#[cfg(test)]
mod tests {
    use super::{assignments, plain_url};

    #[test]
    fn credentials_are_not_handed_on() {
        let given = |text: &str| plain_url(Ok(text.to_owned()));
        assert_eq!(
            given("https://mirror.example/simple\n").as_deref(),
            Some("https://mirror.example/simple")
        );
        assert_eq!(given("https://me:secret@mirror.example/simple"), None);
        assert_eq!(given("undefined"), None);
    }

    #[test]
    fn a_shell_reads_values_as_they_are() {
        let text = assignments(&[("A", "it's $HOME".to_owned())]);
        assert_eq!(text, "A='it'\\''s $HOME'\n");
    }
}
