//! Requests about the server, its cluster, its networks and its images.

use super::model::{Member, Network, Resources, Server};
use super::{Api, Reply};
use wharf_guest::{Call, Error, Path};

/// The engine walks the machine's devices, ms.
const RESOURCES_MS: u32 = 30_000;

impl Api<'_> {
    /// Reads the server's version and name.
    pub fn server(&self) -> Result<Reply<Server>, Error> {
        self.get(&Path::new("/1.0"))
    }

    /// Reads the member's machine.
    pub fn resources(&self) -> Result<Reply<Resources>, Error> {
        let path = self.at_member(Path::new("/1.0/resources"));
        self.read(&Call::get(&path).timeout_ms(RESOURCES_MS))
    }

    /// Reads the member's state in the cluster.
    pub fn member(&self) -> Result<Reply<Member>, Error> {
        self.get(&Path::new("/1.0/cluster/members").segment(&self.member))
    }

    /// Reads a network that the project may use.
    pub fn network(&self, name: &str) -> Result<Reply<Network>, Error> {
        self.get(&self.in_project(Path::new("/1.0/networks").segment(name)))
    }

    /// Lists the names of the project's images.
    pub fn aliases(&self) -> Result<Reply<Vec<String>>, Error> {
        let path = self.in_project(Path::new("/1.0/images/aliases"));
        let listed = self.get::<Option<Vec<String>>>(&path)?;
        Ok(listed.map(|paths| paths.iter().flatten().map(|path| alias(path)).collect()))
    }
}

/// The name in `/1.0/images/aliases/NAME?project=P`, whose slashes are encoded.
fn alias(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let encoded = path.strip_prefix("/1.0/images/aliases/").unwrap_or(path);
    encoded.replace("%2F", "/").replace("%3A", ":")
}
