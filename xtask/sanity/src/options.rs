//! The command line.

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Parser};
use std::path::PathBuf;
use std::time::Duration;
use wharf_config::{Config, NodeConfig};

/// Check a driver against the promises of its interface, on a real engine, one line for each
///
/// The instances have an installation of their own and are removed at the end. No server of the node
/// needs to run; one may.
#[derive(Parser, Clone)]
#[command(name = "wharf-sanity", group(ArgGroup::new("reached").required(true)))]
pub struct Options {
    /// Configuration of a server, with the node
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// The node's name in the configuration
    #[arg(long, value_name = "NAME")]
    pub node: String,
    /// Image of the instances, in the engine's syntax
    #[arg(long, value_name = "IMAGE")]
    pub image: String,
    /// Instances of the image have SSH on port 22
    #[arg(long, group = "reached")]
    pub ssh: bool,
    /// Instances of the image have a web page on this port
    #[arg(long, value_name = "PORT", group = "reached")]
    pub web_port: Option<u16>,
    /// Path of the page that answers without a password
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub web_path: String,
    /// Address at which published ports of the node are reached
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub connect: String,
    /// Longest time in seconds until an instance is up
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub deadline: u64,
    /// Only rules whose names contain the text
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
}

impl Options {
    /// The configuration, with this node and another one of its cluster, if there is one.
    pub fn load(&self) -> Result<Config> {
        let path = self.config.display();
        let mut config = Config::load(&self.config).with_context(|| format!("{path}"))?;
        let nodes = std::mem::take(&mut config.node);
        let Some(own) = nodes.iter().find(|node| node.name == self.node) else {
            bail!("--node: {path} has no node {:?}", self.node);
        };
        let peer = nodes.iter().find(|node| {
            node.name != own.name
                && node.driver == own.driver
                && own.cluster.is_some()
                && node.cluster == own.cluster
        });
        config.node = std::iter::once(own).chain(peer).cloned().collect();
        Ok(config)
    }

    pub fn deadline(&self) -> Duration {
        Duration::from_secs(self.deadline)
    }
}

/// The node of a configuration that [`Options::load`] returns.
pub fn node(config: &Config) -> Result<&NodeConfig> {
    config.node.first().context("no node")
}
