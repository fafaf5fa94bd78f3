//! The addresses at which Wharf reaches the ports of instances. A public port is on its user's path. A private
//! one has the node's `private_address`, and only Wharf reaches it.

use super::App;
use std::net::Ipv4Addr;
use wharf_config::Config;
use wharf_config::host::plain;
use wharf_db::{INSTANCES, Read, Rows, Table, tables};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::instance::Instance;

tables! {
    /// Instances whose page has a private port. The page of any other instance has a public one.
    pub const PRIVATE_PAGES: Table<(), InstanceId, ()> = Table::part_of(&INSTANCES, b'x', 6);
}

/// The host and the port of a TCP address.
pub(super) type HostPort = (String, u16);

/// Whether an SSH server listens in an instance. Earlier versions made pages without one.
pub(super) fn has_shell(rows: &impl Read, instance: &Instance) -> Result<bool, Error> {
    let spec = rows.provisioning_spec(instance.id)?;
    Ok(spec.map_or(instance.ssh, |spec| spec.blueprint.ssh))
}

/// The answer to a user who wants a shell or a port of an instance without one.
pub(super) const NO_SHELL: Error = Error::NotApplicable(
    "the image of this instance has no SSH server; create it again with a newer image",
);

/// Whether the page of an instance has a private port.
pub(super) fn has_private_page(rows: &impl Rows, id: InstanceId) -> Result<bool, Error> {
    Ok(rows.get(&PRIVATE_PAGES, id)?.is_some())
}

/// Whether pages of new instances get private ports.
pub(super) fn web_is_private(config: &Config) -> bool {
    config.pages.is_some()
}

impl App {
    /// The address of the SSH port of an instance.
    pub(super) fn ssh_address(&self, instance: &Instance) -> HostPort {
        let private = if instance.ssh {
            None
        } else {
            self.private_host(&instance.node)
        };
        let host = private.or_else(|| self.probe_host(&instance.node));
        (
            host.unwrap_or_else(|| plain(&instance.ssh_host)),
            instance.ssh_port,
        )
    }

    /// The address of the page of an instance; `None` if it has no page.
    pub(super) fn web_address(&self, instance: &Instance, is_private: bool) -> Option<HostPort> {
        let private = is_private.then(|| self.private_host(&instance.node));
        let host = private
            .flatten()
            .or_else(|| self.probe_host(&instance.node));
        let port = instance.web_port?;
        Some((host.unwrap_or_else(|| self.config().web.host.clone()), port))
    }

    /// The address of a node's private ports; `None` if they have that of public ones.
    pub(super) fn private_address(&self, node: &NodeId) -> Option<Ipv4Addr> {
        let config = self.config();
        let node = config.node.iter().find(|known| known.name == node.0)?;
        node.private_address()
    }

    fn private_host(&self, node: &NodeId) -> Option<String> {
        let address = self.private_address(node);
        address.map(|address| address.to_string())
    }
}
