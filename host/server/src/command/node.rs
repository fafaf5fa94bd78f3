//! `wharf node`.

use super::ConfigFile;
use crate::operation::node::{AcceptNode, ListNodes};
use anyhow::Result;
use clap::{Args, Subcommand};

/// List nodes, and accept an engine after an outage
#[derive(Args)]
pub struct Node {
    #[command(subcommand)]
    command: NodeCommand,
}

#[derive(Subcommand)]
enum NodeCommand {
    /// List nodes: name, driver, number of instances, vCPUs, GiB of RAM and GiB of disk (used/total),
    /// state
    List {
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Accept the engine of a node with an outage as the new one: absent instances have ended
    Accept {
        /// The node's name
        name: String,
        #[command(flatten)]
        config: ConfigFile,
    },
}

impl Node {
    pub fn run(self) -> Result<()> {
        match self.command {
            NodeCommand::List { config } => {
                for node in config.perform(ListNodes {})? {
                    let used = node.used.iter().zip(node.capacity);
                    let used: Vec<_> = used.map(|(used, all)| format!("{used}/{all}")).collect();
                    let retired = if node.retired { "retired, " } else { "" };
                    let (driver, state) = match &node.driver {
                        None => ("-", "not configured"),
                        Some(driver) => (
                            driver.as_str(),
                            node.state.as_deref().unwrap_or("the server does not run"),
                        ),
                    };
                    println!(
                        "{}\t{driver}\t{}\t{}\t{retired}{state}",
                        node.name,
                        node.instances,
                        used.join("\t")
                    );
                }
            }
            NodeCommand::Accept { name, config } => {
                config.perform(AcceptNode { node: name.clone() })?;
                println!("node {name} is accepted; `wharf node list` shows its state");
            }
        }
        Ok(())
    }
}
