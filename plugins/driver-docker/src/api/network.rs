//! Requests about networks.

use super::model::NetworkDetails;
use super::{Api, Reply};
use crate::network::Which;
use wharf_guest::Error;
use wharf_guest::NamedRequest;

impl Api<'_> {
    /// Creates a network.
    pub fn create_network(&self, network: Which) -> Result<Reply<()>, Error> {
        self.send(&network.named("create-network"))
    }

    /// Creates a network through Podman's own interface.
    pub fn create_network_podman(&self, network: Which) -> Result<Reply<()>, Error> {
        self.send(&network.named("create-network-podman"))
    }

    /// Lists the networks of all owners.
    pub fn networks(&self) -> Result<Reply<Vec<NetworkDetails>>, Error> {
        self.read(&NamedRequest::new("survey-networks"))
    }

    /// Reads a network.
    pub fn network_details(&self, network: Which) -> Result<Reply<NetworkDetails>, Error> {
        self.read(&network.named("read-network"))
    }

    /// Returns the name of a network, if it is not the operator's.
    pub fn network_name(&self, network: Which) -> Result<String, Error> {
        let written = network.named("read-network").show(self.engine)?;
        let name = written.target.rsplit('/').next().unwrap_or_default();
        Ok(name.to_owned())
    }

    /// Removes a network without running containers.
    pub fn remove_network(&self, network: Which) -> Result<Reply<()>, Error> {
        self.send(&network.named("delete-network"))
    }

    /// Attaches a container to a network.
    pub fn connect(&self, network: Which, container: &str) -> Result<Reply<()>, Error> {
        self.send(&network.named("connect").with("container", container))
    }

    /// Detaches a container from a network.
    pub fn disconnect(&self, network: Which, container: &str) -> Result<Reply<()>, Error> {
        self.send(&network.named("disconnect").with("container", container))
    }
}
