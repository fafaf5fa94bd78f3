//! The settings, with their units and defaults. An unknown key is an error that names it.

mod acme;
mod check;
mod clock;
mod flavor;
pub mod host;
mod limits;
mod mirrors;
mod node;
mod oidc;
mod outbound;
mod pages;
mod proxies;
mod quota;
mod rates;
mod registry;
mod reload;
mod retention;
mod retired;
mod session;

pub use acme::{AcmeConfig, ExternalAccount};
pub use clock::ClockConfig;
pub use flavor::{FlavorConfig, Minimum};
pub use limits::LimitsConfig;
pub use mirrors::PackageMirrors;
pub use node::{EngineTls, GpuConfig, NodeCapacity, NodeConfig};
pub use oidc::{Issuer, OidcConfig, is_protected};
pub use outbound::OutboundConfig;
pub use pages::{Domain, PagesConfig};
pub use proxies::TrustedProxies;
pub use quota::QuotaConfig;
pub use rates::{Decimal, RatesConfig, TierRates};
pub use registry::RegistryConfig;
pub use retention::RetentionConfig;
pub use session::{BaseUrl, SessionConfig};

use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, Deserializer};

/// The configuration file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address and port of the REST interface, required. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// Address and port of `GET /metrics` without a key, over plain HTTP. Default: none; a key with the
    /// scope `metrics` reads it from the REST interface.
    pub metrics_listen: Option<SocketAddr>,
    /// Directory of the database, the key file, the admin socket and the compiled plugins, required.
    pub data_dir: PathBuf,
    /// Public URL of the console, such as `https://wharf.example.org`. Default: `http://localhost` with
    /// the port of `listen`.
    pub base_url: Option<BaseUrl>,
    /// Addresses and networks of proxies, such as `"127.0.0.1"`. Default: none.
    ///
    /// The client of a request of a trusted proxy is the last address of `X-Forwarded-For` that is not
    /// a proxy's. Any program on such an address can name any client.
    #[serde(default)]
    pub trusted_proxies: TrustedProxies,
    /// Login host shown in `ssh_command`. Default `127.0.0.1`. A node may override it.
    #[serde(default = "loopback", deserialize_with = "host::read")]
    pub ssh_host: String,
    /// Login account inside every instance. Default `user`.
    #[serde(default = "login_user")]
    pub login_user: String,
    /// Maximum time in seconds for an instance to become reachable. Default 600. A new instance that
    /// takes longer enters the state `error`.
    #[serde(default = "provisioning_deadline_s")]
    pub provisioning_deadline_s: u64,
    /// SSH ports on the login host, one for each instance. Default 20000 to 29999.
    #[serde(default)]
    pub ssh_ports: SshPorts,
    /// Host and ports of the instances' web pages. Default `127.0.0.1`, 30000 to 32000.
    #[serde(default)]
    pub web: WebConfig,
    /// Pages of instances by name, below a domain. Default: none; pages are at the host and ports of `web`.
    pub pages: Option<PagesConfig>,
    /// Prices per hour. Defaults exist for both CPU tiers and common GPU models.
    #[serde(default)]
    pub rates: RatesConfig,
    /// Machines that run instances; at least one is required.
    #[serde(default)]
    pub node: Vec<NodeConfig>,
    /// Certificate and key for TLS. Default: plain HTTP.
    pub tls: Option<TlsConfig>,
    /// Flavors from images of the operator's. Default: none.
    #[serde(default)]
    pub flavor: Vec<FlavorConfig>,
    /// Accounts at registries of images. Default: none.
    #[serde(default)]
    pub registry: Vec<RegistryConfig>,
    /// Files with certificates in PEM format that new containers trust. Default: none.
    #[serde(default)]
    pub trust_ca: Vec<PathBuf>,
    /// Mirrors and proxies for the package managers of new containers.
    #[serde(default)]
    pub package_mirrors: PackageMirrors,
    /// Directory of additional plugins. Default: none. A plugin in it replaces the built-in plugin with
    /// its name.
    pub plugins_dir: Option<PathBuf>,
    /// The most that one user's instances hold together. Default: no limits, except on ports.
    #[serde(default)]
    pub quota: QuotaConfig,
    /// Conditions on the plugins of `plugins_dir`.
    #[serde(default)]
    pub plugins: PluginConditions,
    /// Sessions of the console.
    #[serde(default)]
    pub session: SessionConfig,
    /// Sign-in with a provider of OpenID Connect. Default: none.
    pub oidc: Option<OidcConfig>,
    /// How long the records of purged instances are kept.
    #[serde(default)]
    pub retention: RetentionConfig,
    /// The addresses that events are sent to.
    #[serde(default)]
    pub webhook: OutboundConfig,
    /// The addresses that users' buckets may have.
    #[serde(default)]
    pub buckets: OutboundConfig,
    /// Changes of the system's clock that are followed.
    #[serde(default)]
    pub clock: ClockConfig,
    /// Limits on time, size and number.
    #[serde(default)]
    pub limits: LimitsConfig,
    /// The certificates of `trust_ca`.
    #[serde(skip)]
    authorities: String,
    /// The file.
    #[serde(skip)]
    path: PathBuf,
    /// The content of the file, without the settings of `retired`.
    #[serde(skip)]
    source: toml::Table,
    /// The settings of the file that have no effect any more.
    #[serde(skip)]
    retired: Vec<String>,
}

/// A range of ports, both ends included.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SshPorts {
    /// First port. Default 20000.
    pub from: u16,
    /// Last port. Default 29999.
    pub to: u16,
}

impl Default for SshPorts {
    fn default() -> Self {
        Self {
            from: 20_000,
            to: 29_999,
        }
    }
}

/// The host and ports of the instances' web pages.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebConfig {
    /// Host in `webapp_url`. Default `127.0.0.1`.
    #[serde(default = "loopback", deserialize_with = "host::read")]
    pub host: String,
    /// First port. Default 30000.
    #[serde(default = "web_from")]
    pub from: u16,
    /// Last port. Default 32000.
    #[serde(default = "web_to")]
    pub to: u16,
}

impl Default for WebConfig {
    fn default() -> Self {
        Self {
            host: loopback(),
            from: web_from(),
            to: web_to(),
        }
    }
}

/// Conditions on the plugins of `plugins_dir`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PluginConditions {
    /// Whether a driver needs a report of its proof, `driver-x.proof.json`. Default: false.
    #[serde(default)]
    pub require_proof: bool,
    /// Hashes of plugins, such as `"driver-x.wasm" = "sha256:…"`. Default: none. With any, a plugin of
    /// `plugins_dir` without its hash is refused. A request file, `driver-x.requests.toml`, always needs one.
    #[serde(flatten)]
    pub hashes: BTreeMap<String, String>,
}

/// TLS files in PEM format.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// Path of the certificate chain, required.
    pub cert: PathBuf,
    /// Path of the private key, required.
    pub key: PathBuf,
}

fn loopback() -> String {
    "127.0.0.1".to_owned()
}

fn login_user() -> String {
    "user".to_owned()
}

fn provisioning_deadline_s() -> u64 {
    600
}

fn web_from() -> u16 {
    30_000
}

fn web_to() -> u16 {
    32_000
}

/// An error in the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The file is not TOML, or has an unknown key or a value of the wrong type.
    #[error("{path}: {message}")]
    Parse {
        path: PathBuf,
        /// Line, key and reason.
        message: String,
    },
    /// A value is not valid.
    #[error("setting `{setting}`: {message}")]
    Value {
        /// Dotted key of the setting.
        setting: String,
        /// The rule for valid values.
        message: String,
    },
    /// Settings differ that cannot change while the server runs.
    #[error("only a restart can change {}", quoted(.0))]
    Fixed(Vec<String>),
}

fn quoted(settings: &[String]) -> String {
    let quoted: Vec<String> = settings.iter().map(|s| format!("`{s}`")).collect();
    quoted.join(", ")
}

impl Config {
    /// Reads and checks a file. Relative paths in it are resolved against its directory.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        let parse = |mut error: toml::de::Error| {
            // It has a place in the file, and quotes the line from there.
            error.set_input(Some(&text));
            ConfigError::Parse {
                path: path.to_owned(),
                message: error.to_string().trim_end().to_owned(),
            }
        };
        let mut file = DeTable::parse(&text).map_err(parse)?;
        let retired = retired::take(file.get_mut());
        let mut config = Self::deserialize(Deserializer::from(file.clone())).map_err(parse)?;
        config.source = toml::Table::deserialize(Deserializer::from(file)).map_err(parse)?;
        config.retired = retired;
        path.clone_into(&mut config.path);
        let base = path.parent().unwrap_or(Path::new(""));
        let absolute = |p: &mut PathBuf| *p = base.join(&*p);
        absolute(&mut config.data_dir);
        config.plugins_dir.as_mut().map(absolute);
        if let Some(tls) = &mut config.tls {
            absolute(&mut tls.cert);
            absolute(&mut tls.key);
        }
        if let Some(pages) = &mut config.pages {
            pages.cert.as_mut().map(absolute);
            pages.key.as_mut().map(absolute);
            let acme = pages.acme.as_mut();
            if let Some(account) = acme.and_then(|acme| acme.external_account.as_mut()) {
                absolute(&mut account.key_file);
            }
        }
        if let Some(oidc) = &mut config.oidc {
            absolute(&mut oidc.client_secret_file);
        }
        for account in &mut config.registry {
            absolute(&mut account.password_file);
        }
        config.trust_ca.iter_mut().for_each(absolute);
        for tls in config.node.iter_mut().filter_map(|node| node.tls.as_mut()) {
            absolute(&mut tls.cert);
            absolute(&mut tls.key);
            tls.ca.as_mut().map(absolute);
            tls.server_cert.as_mut().map(absolute);
        }
        check::check(&config)?;
        config.quota.share(config.ssh_ports);
        config.authorities = mirrors::read(&config.trust_ca)?;
        Ok(config)
    }

    /// Returns the settings of the file that have no effect any more.
    pub fn retired(&self) -> &[String] {
        &self.retired
    }

    /// Returns the path of the admin service's socket.
    pub fn admin_socket(&self) -> PathBuf {
        self.data_dir.join("admin.sock")
    }

    /// Returns the login host for instances on a node.
    pub fn ssh_host_of(&self, node: &NodeConfig) -> String {
        node.ssh_host
            .clone()
            .unwrap_or_else(|| self.ssh_host.clone())
    }
}
