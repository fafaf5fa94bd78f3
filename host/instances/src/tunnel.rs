//! Tunnels to the ports of instances. Wharf passes on the bytes of the SSH port as they are. It reaches
//! any other port through the SSH server inside, with the instance's own password.

use super::App;
use super::connection_record::Opening;
use super::find::Selector;
use super::host_keys::{known_keys, known_only};
use super::terminal::{opener, reachable};
use wharf_db::Read as _;
use wharf_domain::blueprint::SSH_PORT;
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;
use wharf_domain::instance::Instance;
use wharf_domain::state::InstanceState;
use wharf_ground::caller::Caller;
use wharf_terminal::{
    InstancePorts, OverLimit, PortReader, PortUnreached, PortUser, PortWriter, TerminalEnd,
    TunnelPermit,
};

/// The opening of a tunnel.
const OPENING: Opening = Opening {
    operation: "tunnel.open",
    verb: "open a tunnel to",
};

/// An open tunnel. Its connection ends when the halves are dropped.
pub struct Tunnel {
    pub permit: TunnelPermit,
    pub reader: PortReader,
    pub writer: PortWriter,
}

impl App {
    /// Checks that a tunnel can be opened, without opening it.
    pub fn check_tunnel(&self, caller: &Caller, selector: &Selector) -> Result<(), Error> {
        self.tunnel_instance(caller, selector)?;
        let limit = self.config().limits.tunnels_per_user;
        self.tunnels.check(caller.user, limit).map_err(refused)
    }

    /// Opens a tunnel to a port of an instance. The audit log has it before any byte passes.
    pub async fn open_tunnel(
        &self,
        caller: &Caller,
        selector: &Selector,
        port: u16,
    ) -> Result<Tunnel, Error> {
        let instance = self.tunnel_instance(caller, selector)?;
        let limit = self.config().limits.tunnels_per_user;
        let permit = (self.tunnels)
            .admit(opener(caller, &instance), limit)
            .map_err(refused)?;
        let (reader, writer) = self.dial_port(caller, &instance, port).await?;
        let subject = Some(port.to_string());
        self.record_opening(caller, selector, OPENING, subject, "opened")
            .await?;
        Ok(Tunnel {
            permit,
            reader,
            writer,
        })
    }

    /// Connects to a port inside an instance for a visitor of its page, whose right is decided before. An SSH
    /// host key that is not known is refused, because the visitor is not the owner.
    pub async fn dial_page(
        &self,
        id: InstanceId,
        incarnation: u64,
        visitor: PortUser,
        port: u16,
    ) -> Result<(PortReader, PortWriter), Error> {
        let found = (self.db).read(|rows| Ok((rows.instance(id)?, known_keys(rows, id)?)));
        let (instance, known) = found?;
        let instance = instance.filter(|instance| {
            instance.incarnation == incarnation && instance.state() == InstanceState::Running
        });
        let instance = instance.ok_or(Error::NotFound)?;
        let target = self.ssh_target(&instance, known_only(known))?;
        let connected = (self.page_ports).open(id, incarnation, visitor, port, target);
        connected.await.map_err(unconnected)
    }

    /// Connects to a port of an instance. Whether the caller may is decided before.
    async fn dial_port(
        &self,
        caller: &Caller,
        instance: &Instance,
        port: u16,
    ) -> Result<(PortReader, PortWriter), Error> {
        let connected = if port == SSH_PORT {
            let (host, port) = self.ssh_address(instance);
            InstancePorts::open_ssh(&host, port).await
        } else {
            let is_known = self.host_key_check(caller, instance.id);
            let target = self.ssh_target(instance, is_known)?;
            let (id, incarnation) = (instance.id, instance.incarnation);
            let user = PortUser {
                user: caller.user,
                network: None,
            };
            (self.tunnel_ports)
                .open(id, incarnation, user, port, target)
                .await
        };
        connected.map_err(unconnected)
    }

    fn tunnel_instance(&self, caller: &Caller, selector: &Selector) -> Result<Instance, Error> {
        let instance = (self.db).read(|rows| reachable(rows, caller, selector, &OPENING))?;
        match self.config().limits.tunnels_per_user {
            0 => Err(Error::NotApplicable("this service offers no tunnels")),
            _ => Ok(instance),
        }
    }
}

fn refused(full: OverLimit) -> Error {
    match full {
        OverLimit::User(limit) => Error::TooManyTunnels(limit),
        OverLimit::Service => Error::Overloaded,
    }
}

fn unconnected(why: PortUnreached) -> Error {
    Error::Unconnected(match why {
        PortUnreached::Closed => "nothing in the instance accepts connections on this port",
        PortUnreached::Forbidden => {
            "the SSH server of the instance forbids forwarding, so its other ports cannot be reached"
        }
        PortUnreached::Refused => "the SSH server of the instance did not connect to this port",
        PortUnreached::NoLogin(TerminalEnd::HostKey) => {
            "the instance shows another SSH host key than the known one, so Wharf did not sign in; \
             if you replaced the key, stop and restart the instance"
        }
        PortUnreached::NoLogin(TerminalEnd::Password) => {
            "the instance does not accept its original password any more, so its ports cannot be \
             reached; its SSH port still can, and `ssh -L` passes on others"
        }
        PortUnreached::NoLogin(_) => "the SSH server of the instance could not be reached",
    })
}
