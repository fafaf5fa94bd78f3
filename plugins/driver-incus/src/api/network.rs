//! Requests about the networks of owners, the forwards of their published ports, and the operator's part of
//! both.

use super::model::{Acl, Forward, Network, Project};
use super::{Api, Reply};
use serde::Serialize;
use wharf_guest::{Call, Error, Path};

/// A network changes on all members of the cluster, ms.
const NETWORK_MS: u32 = 30_000;

impl Api<'_> {
    fn own_network(&self, name: &str) -> Path {
        Path::new("/1.0/networks").segment(name)
    }

    fn forward(&self, network: &str, address: &str) -> Path {
        let forwards = self.own_network(network).segment("forwards");
        self.in_project(forwards.segment(address))
    }

    /// Reads the operator's network behind the owners' networks, which is in no project.
    pub fn uplink(&self, name: &str) -> Result<Reply<Network>, Error> {
        self.get(&Path::new("/1.0/networks").segment(name))
    }

    /// Reads the rules of the owners' networks.
    pub fn acl(&self, name: &str) -> Result<Reply<Acl>, Error> {
        self.get(&self.in_project(Path::new("/1.0/network-acls").segment(name)))
    }

    /// Reads the project.
    pub fn project(&self) -> Result<Reply<Project>, Error> {
        self.get(&Path::new("/1.0/projects").segment(&self.project))
    }

    /// Creates a network on all members.
    pub fn create_network<T: Serialize>(&self, body: &T) -> Result<Reply<()>, Error> {
        let path = self.in_project(Path::new("/1.0/networks"));
        self.send(&Call::post(&path).json(body)?.timeout_ms(NETWORK_MS))
    }

    /// Removes an unused network with its forwards.
    pub fn remove_network(&self, name: &str) -> Result<Reply<()>, Error> {
        let path = self.in_project(self.own_network(name));
        self.send(&Call::delete(&path).timeout_ms(NETWORK_MS))
    }

    /// Lists the forwards of a network.
    pub fn forwards(&self, network: &str) -> Result<Reply<Vec<Forward>>, Error> {
        let path = self.in_project(self.own_network(network).segment("forwards"));
        let listed = self.get::<Option<Vec<Forward>>>(&path.query("recursion", "1"))?;
        Ok(listed.map(Option::unwrap_or_default))
    }

    /// Creates a forward.
    pub fn create_forward<T: Serialize>(
        &self,
        network: &str,
        body: &T,
    ) -> Result<Reply<()>, Error> {
        let path = self.in_project(self.own_network(network).segment("forwards"));
        self.send(&Call::post(&path).json(body)?.timeout_ms(NETWORK_MS))
    }

    /// Replaces a forward.
    pub fn replace_forward<T: Serialize>(
        &self,
        network: &str,
        address: &str,
        body: &T,
    ) -> Result<Reply<()>, Error> {
        let call = Call::put(&self.forward(network, address)).json(body)?;
        self.send(&call.timeout_ms(NETWORK_MS))
    }

    /// Removes a forward.
    pub fn remove_forward(&self, network: &str, address: &str) -> Result<Reply<()>, Error> {
        let call = Call::delete(&self.forward(network, address));
        self.send(&call.timeout_ms(NETWORK_MS))
    }
}
