//! Every setting, with its unit and default. Unknown keys are refused by name.

mod check;
mod limits;
mod node;
mod rates;

pub use limits::Limits;
pub use node::{Capacity, Gpu, NodeConfig};
pub use rates::{Decimal, RatesConfig, TierRates};

use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The configuration file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address and port of the REST interface; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Where Wharf keeps its database, the journal of that, its key file, its admin socket and compiled
    /// plugins.
    pub data_dir: PathBuf,
    /// Login host shown in `ssh_command`; a node may name its own. Default `127.0.0.1`.
    #[serde(default = "loopback")]
    pub ssh_host: String,
    /// Account inside every instance. Default `user`.
    #[serde(default = "login_user")]
    pub login_user: String,
    /// How long an instance may take to become reachable, seconds. Default 600.
    #[serde(default = "provisioning_deadline_s")]
    pub provisioning_deadline_s: u64,
    /// Ports for SSH on the login host.
    #[serde(default)]
    pub ssh_ports: SshPorts,
    /// Host and ports of the web pages.
    #[serde(default)]
    pub web: Web,
    /// What things cost per hour.
    #[serde(default)]
    pub rates: RatesConfig,
    /// The machines.
    #[serde(default)]
    pub node: Vec<NodeConfig>,
    /// Serve TLS with this certificate. Default: plain HTTP.
    pub tls: Option<Tls>,
    /// Plugins here replace or add to those in the binary. Default: none.
    pub plugins_dir: Option<PathBuf>,
    /// Bounds.
    #[serde(default)]
    pub limits: Limits,
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

/// Where web pages of instances are reached.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// Host in `webapp_url`. Default `127.0.0.1`.
    #[serde(default = "loopback")]
    pub host: String,
    /// First port. Default 30000.
    #[serde(default = "web_from")]
    pub from: u16,
    /// Last port. Default 32000.
    #[serde(default = "web_to")]
    pub to: u16,
}

impl Default for Web {
    fn default() -> Self {
        Self {
            host: loopback(),
            from: web_from(),
            to: web_to(),
        }
    }
}

/// TLS files, PEM.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Certificate chain.
    pub cert: PathBuf,
    /// Private key.
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

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not TOML, an unknown key, or a value of another type.
    #[error("{path}: {message}")]
    Parse {
        /// Which file.
        path: PathBuf,
        /// Line, key and reason.
        message: String,
    },
    /// A value that cannot work.
    #[error("setting `{setting}`: {message}")]
    Value {
        /// Dotted name.
        setting: String,
        /// What would be right.
        message: String,
    },
}

impl Config {
    /// Reads and checks a file. Relative paths in it are relative to it.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut config: Self = toml::from_str(&text).map_err(|error| ConfigError::Parse {
            path: path.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        let base = path.parent().unwrap_or(Path::new(""));
        let absolute = |p: &mut PathBuf| *p = base.join(&*p);
        absolute(&mut config.data_dir);
        config.plugins_dir.as_mut().map(absolute);
        if let Some(tls) = &mut config.tls {
            absolute(&mut tls.cert);
            absolute(&mut tls.key);
        }
        check::check(&config)?;
        Ok(config)
    }

    /// The socket of the admin service.
    pub fn admin_socket(&self) -> PathBuf {
        self.data_dir.join("admin.sock")
    }

    /// The login host for instances on a node.
    pub fn ssh_host_of(&self, node: &NodeConfig) -> String {
        node.ssh_host
            .clone()
            .unwrap_or_else(|| self.ssh_host.clone())
    }
}
