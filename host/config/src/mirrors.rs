//! `trust_ca` and `[package_mirrors]`: certificate authorities and mirrors inside instances.

use super::{Config, ConfigError};
use crate::check::wrong;
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// The file with all authorities that an instance trusts.
const TRUSTED: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The variables of programs that do not read this file by themselves.
const TRUSTING: [&str; 4] = [
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
];

/// Mirrors of package sources, and proxies, for the package managers of new containers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PackageMirrors {
    /// Mirror of Debian's archive for apt. Default: that of the image.
    pub apt: Option<String>,
    /// Package index for pip and uv. Default: theirs.
    pub pip: Option<String>,
    /// Registry for npm. Default: its own.
    pub npm: Option<String>,
    /// Proxy for HTTP. Default: none.
    pub http_proxy: Option<String>,
    /// Proxy for HTTPS. Default: none.
    pub https_proxy: Option<String>,
    /// Hosts without a proxy, separated by commas. Default: none.
    pub no_proxy: Option<String>,
}

impl PackageMirrors {
    fn urls(&self) -> [(&'static str, &Option<String>); 5] {
        [
            ("apt", &self.apt),
            ("pip", &self.pip),
            ("npm", &self.npm),
            ("http_proxy", &self.http_proxy),
            ("https_proxy", &self.https_proxy),
        ]
    }
}

/// Reads the certificates of the files. Users could read credentials in URLs, so none are accepted.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    for (key, url) in config.package_mirrors.urls() {
        let Some(url) = url else { continue };
        let setting = format!("package_mirrors.{key}");
        let rest = ["http://", "https://"]
            .iter()
            .find_map(|scheme| url.strip_prefix(scheme));
        if !rest.is_some_and(|rest| !rest.is_empty() && is_plain(rest)) {
            return wrong(
                &setting,
                "must be a URL with http or https, without spaces and quotes",
            );
        }
        if url.contains('@') {
            return wrong(
                &setting,
                "must have no user name and no password: every user can read it",
            );
        }
    }
    if let Some(hosts) = &config.package_mirrors.no_proxy
        && !is_plain(hosts)
    {
        return wrong(
            "package_mirrors.no_proxy",
            "must be host names with commas and without spaces",
        );
    }
    Ok(())
}

/// The concatenated certificates of `trust_ca`.
pub(super) fn read(files: &[PathBuf]) -> Result<String, ConfigError> {
    let mut all = String::new();
    for file in files {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => {
                return wrong(
                    "trust_ca",
                    &format!("cannot read {}: {error}", file.display()),
                );
            }
        };
        if !text.contains("-----BEGIN CERTIFICATE-----") || text.contains("PRIVATE KEY-----") {
            return wrong(
                "trust_ca",
                &format!(
                    "{} must have certificates in PEM format, and no key",
                    file.display()
                ),
            );
        }
        all.push_str(text.trim());
        all.push('\n');
    }
    Ok(all)
}

/// Whether a shell, pam_env and apt all read a value unchanged.
fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_graphic() && !b"'\"`$\\#;".contains(&byte))
}

impl Config {
    /// The files in the directory of a container's first start that bring authorities and mirrors, by
    /// name.
    pub fn machine_files(&self) -> Vec<(&'static str, String)> {
        let mut files = Vec::new();
        let mut environment = String::new();
        let mut set = |name: &str, value: &str| {
            let _ = writeln!(environment, "{name}={value}");
        };
        if !self.authorities.is_empty() {
            files.push(("authorities.crt", self.authorities.clone()));
            TRUSTING.iter().for_each(|name| set(name, TRUSTED));
        }
        let mirrors = &self.package_mirrors;
        for (names, value) in [
            (&["PIP_INDEX_URL", "UV_DEFAULT_INDEX"], &mirrors.pip),
            (
                &["NPM_CONFIG_REGISTRY", "npm_config_registry"],
                &mirrors.npm,
            ),
            (&["http_proxy", "HTTP_PROXY"], &mirrors.http_proxy),
            (&["https_proxy", "HTTPS_PROXY"], &mirrors.https_proxy),
            (&["no_proxy", "NO_PROXY"], &mirrors.no_proxy),
        ] {
            let value = value.iter();
            value.for_each(|value| names.iter().for_each(|name| set(name, value)));
        }
        if !environment.is_empty() {
            files.push(("environment", environment));
        }
        files.extend(
            mirrors
                .apt
                .iter()
                .map(|url| ("apt_mirror", format!("{url}\n"))),
        );
        files
    }
}
