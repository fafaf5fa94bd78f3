//! Requests to `/networks`.

use super::model::NetworkDetails;
use super::{Api, Reply};
use serde::Serialize;
use wharf_guest::{Call, Error, Method, Path};

impl Api<'_> {
    fn network(&self, name: &str) -> Path {
        self.path("/networks").segment(name)
    }

    /// Creates a network.
    pub fn create_network<T: Serialize>(&self, body: &T) -> Result<Reply<()>, Error> {
        self.send(&Call::post(&self.path("/networks/create")).json(body)?)
    }

    /// Creates a network through Podman's own interface.
    pub fn create_network_libpod<T: Serialize>(&self, body: &T) -> Result<Reply<()>, Error> {
        let path = self.libpod("/networks/create");
        self.send(&Call::post(&path).json(body)?)
    }

    /// Lists the networks of all owners.
    pub fn networks(&self) -> Result<Reply<Vec<NetworkDetails>>, Error> {
        self.get(&self.path("/networks"))
    }

    /// Reads a network.
    pub fn network_details(&self, name: &str) -> Result<Reply<NetworkDetails>, Error> {
        self.get(&self.network(name))
    }

    /// Removes a network without running containers.
    pub fn remove_network(&self, name: &str) -> Result<Reply<()>, Error> {
        self.act(Method::Delete, &self.network(name))
    }

    /// Attaches a container to a network.
    pub fn connect<T: Serialize>(&self, name: &str, body: &T) -> Result<Reply<()>, Error> {
        self.send(&Call::post(&self.network(name).segment("connect")).json(body)?)
    }

    /// Detaches a container from a network.
    pub fn disconnect<T: Serialize>(&self, name: &str, body: &T) -> Result<Reply<()>, Error> {
        self.send(&Call::post(&self.network(name).segment("disconnect")).json(body)?)
    }
}
