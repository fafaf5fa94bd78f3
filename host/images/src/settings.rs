//! The machine's settings for package sources, for builds in the engine. They do not remain in an image,
//! and never contain credentials, because layers keep files that later layers remove.

use crate::download::Downloaded;
use crate::process::{command, output};
use anyhow::Result;
use serde_json::{Map, Value};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The name of the directory.
pub(crate) const MACHINE: &str = "machine";
/// The path of the directory in a build, for `wharf-install` and `setup`.
const PATH_IN_BUILD: &str = "/tmp/wharf/machine";
/// Certificate authorities of a Debian or Ubuntu machine, including those of an intercepting proxy.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The variables of package managers for the authorities. Some versions of pip prefer that of `requests`.
const AUTHORITIES_VARIABLES: [&str; 4] = [
    "SSL_CERT_FILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
];
/// pip's settings for package indexes, and the variables of pip and uv for each.
const INDEXES: [(&str, [&str; 2]); 2] = [
    ("index-url", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX"]),
    ("extra-index-url", ["PIP_EXTRA_INDEX_URL", "UV_INDEX"]),
];
/// Build arguments that engines keep out of an image's history.
const PROXIES: [&str; 6] = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// The directories `machine` and `downloads` of a build's context.
pub(crate) struct Settings {
    context: TempDir,
}

impl Settings {
    /// Reads the settings of this machine.
    pub fn read() -> Result<Self> {
        let context = tempfile::tempdir()?;
        let directory = context.path().join(MACHINE);
        fs::create_dir(&directory)?;
        let mut variables = Vec::new();
        let own = env::var_os("SSL_CERT_FILE").map_or_else(|| AUTHORITIES.into(), PathBuf::from);
        if fs::copy(own, directory.join("authorities.crt")).is_ok() {
            let file = format!("{PATH_IN_BUILD}/authorities.crt");
            variables.extend(AUTHORITIES_VARIABLES.map(|name| (name, file.clone())));
        }
        variables.extend(package_indexes());
        fs::write(directory.join("environment"), assignments(&variables))?;
        Ok(Self { context })
    }

    /// Adds a file of the cache to the directory `downloads`.
    pub fn add(&self, download: &Downloaded) -> Result<()> {
        let directory = self.context.path().join("downloads");
        fs::create_dir_all(&directory)?;
        // The archive of the context has the file in place of the link.
        Ok(symlink(
            fs::canonicalize(&download.file)?,
            directory.join(&download.name),
        )?)
    }

    /// The directory to add to a recipe.
    pub fn directory(&self) -> &Path {
        self.context.path()
    }

    /// The proxies, as build arguments.
    pub fn proxies(&self) -> Map<String, Value> {
        PROXIES
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), env::var(name).ok()?.into())))
            .collect()
    }
}

/// The package indexes in the configurations of pip and npm, where these are installed.
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

/// A URL, unless it contains credentials.
fn plain_url(output: Result<String>) -> Option<String> {
    let url = output.ok()?.trim().to_owned();
    (url.starts_with("http") && !url.contains('@')).then_some(url)
}

/// Assignments for a shell.
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
    fn credentials_are_not_passed_on() {
        let url = |text: &str| plain_url(Ok(text.to_owned()));
        assert_eq!(
            url("https://mirror.example/simple\n").as_deref(),
            Some("https://mirror.example/simple")
        );
        assert_eq!(url("https://me:secret@mirror.example/simple"), None);
        assert_eq!(url("undefined"), None);
    }

    #[test]
    fn a_shell_reads_values_unchanged() {
        let text = assignments(&[("A", "it's $HOME".to_owned())]);
        assert_eq!(text, "A='it'\\''s $HOME'\n");
    }
}
