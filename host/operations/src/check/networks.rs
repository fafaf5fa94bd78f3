//! Private networks of nodes whose addresses something else has.

use super::{ConfigFinding, Severity, Surveys};
use ipnet::Ipv4Net;
use std::io;
use wharf_config::{Config, NodeConfig};
use wharf_domain::driver::Surroundings;
use wharf_domain::ids::NodeId;
use wharf_subnets::{InUse, Reservation, overlap, reserved, routes};

/// This machine, as far as its networks matter to nodes on it.
#[derive(Debug)]
pub struct MachineNetworks {
    name: String,
    routes: Vec<InUse>,
    reserved: Vec<InUse>,
    /// The ranges of this installation's nodes on the machine, for other installations.
    _reservations: Vec<Reservation>,
}

impl MachineNetworks {
    /// Reads the networks of this machine. With `reserve`, the ranges of the nodes on it are reserved for
    /// the life of the value.
    ///
    /// # Errors
    /// When the kernel refuses a reservation.
    pub fn read(config: &Config, surveys: &Surveys, reserve: bool) -> io::Result<Self> {
        let holder = config.data_dir.canonicalize();
        let holder = holder.unwrap_or_else(|_| config.data_dir.clone());
        let name = own_name();
        let mut reservations = Vec::new();
        for node in config.node.iter().filter(|_| reserve) {
            let found = surveys.get(&NodeId(node.name.clone()));
            let machine = found.and_then(|found| found.as_ref().ok()?.machine.as_ref());
            if machine == Some(&name) {
                reservations.push(Reservation::of_subnet(&node.lan_cidr, &holder)?);
            }
        }
        Ok(Self {
            routes: routes(),
            reserved: reserved(&holder),
            name,
            _reservations: reservations,
        })
    }
}

impl MachineNetworks {
    /// Whether the surroundings are on this machine.
    pub fn has(&self, found: &Surroundings) -> bool {
        found.machine.as_ref() == Some(&self.name)
    }
}

fn own_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// The nodes whose `lan_cidr` overlaps with a network that is not theirs.
pub fn conflicts(
    config: &Config,
    installation: &str,
    surveys: &Surveys,
    machine: &MachineNetworks,
) -> Vec<(NodeId, ConfigFinding)> {
    let mut findings = Vec::new();
    let mut earlier: Vec<(&NodeConfig, &str)> = Vec::new();
    for node in &config.node {
        let id = NodeId(node.name.clone());
        let Some(Ok(found)) = surveys.get(&id) else {
            continue;
        };
        let on_machine = found.machine.as_deref();
        let beside = earlier.iter().find(|(other, on)| {
            on_machine == Some(*on)
                && overlap(&other.lan_cidr, &node.lan_cidr)
                && !node.shares_lan(other)
        });
        let in_use = match beside {
            Some((other, _)) => Some(InUse {
                subnet: other.lan_cidr,
                owner: format!("node {} on the same machine", other.name),
            }),
            None => owner(&node.lan_cidr, installation, found, machine),
        };
        if let Some(in_use) = in_use {
            let free = free(installation, found, machine);
            let finding = ConfigFinding {
                severity: Severity::Error,
                setting: format!("node.{}.lan_cidr", node.name),
                problem: format!(
                    "{} overlaps with {} of {}",
                    node.lan_cidr, in_use.subnet, in_use.owner
                ),
                remedy: format!("set a range that nothing on the node uses{free}"),
            };
            findings.push((id, finding));
        }
        earlier.extend(on_machine.map(|on| (node, on)));
    }
    findings
}

/// The network that has addresses of a range and is not this installation's.
fn owner(
    range: &Ipv4Net,
    installation: &str,
    found: &Surroundings,
    machine: &MachineNetworks,
) -> Option<InUse> {
    let mut own: Vec<Ipv4Net> = Vec::new();
    for network in &found.networks {
        let owner = network.installation.as_deref();
        if owner == Some(installation) {
            own.extend_from_slice(&network.subnets);
            continue;
        }
        if let Some(subnet) = network.subnets.iter().find(|subnet| overlap(subnet, range)) {
            let of =
                owner.map_or_else(String::new, |id| format!(" of the Wharf installation {id}"));
            return Some(InUse {
                subnet: *subnet,
                owner: format!("the engine's network {}{of}", network.name),
            });
        }
    }
    if !machine.has(found) {
        return None;
    }
    let mut in_use = machine.reserved.iter().chain(&machine.routes);
    let in_use = in_use.find(|in_use| {
        let is_own = own.iter().any(|network| network.contains(&in_use.subnet));
        !is_own && overlap(&in_use.subnet, range)
    });
    in_use.cloned()
}

/// A range for an example.
fn free(installation: &str, found: &Surroundings, machine: &MachineNetworks) -> String {
    let mut ranges = (80..=127).filter_map(|second| format!("10.{second}.0.0/16").parse().ok());
    let free = ranges.find(|range| owner(range, installation, found, machine).is_none());
    free.map_or_else(String::new, |range: Ipv4Net| format!(", such as {range}"))
}

#[cfg(test)]
mod tests {
    use super::{MachineNetworks, owner};
    use std::collections::BTreeMap;
    use wharf_domain::driver::{EngineNetwork, Surroundings};
    use wharf_subnets::InUse;

    fn found(machine: &str, installation: Option<&str>) -> Surroundings {
        Surroundings {
            networks: vec![EngineNetwork {
                name: "net".to_owned(),
                subnets: vec!["10.80.1.0/24".parse().unwrap()],
                installation: installation.map(str::to_owned),
            }],
            missing_images: Vec::new(),
            images_without_ssh: Vec::new(),
            image_contents: BTreeMap::new(),
            own_view: None,
            machine: Some(machine.to_owned()),
        }
    }

    #[test]
    fn a_range_is_its_own_unless_something_else_has_it() {
        let in_use = |subnet: &str, owner: &str| InUse {
            subnet: subnet.parse().unwrap(),
            owner: owner.to_owned(),
        };
        let machine = MachineNetworks {
            name: "here".to_owned(),
            routes: vec![
                in_use("10.80.1.1/32", "interface whfn1"),
                in_use("10.96.0.0/12", "interface eth0"),
            ],
            reserved: vec![in_use("10.82.0.0/16", "another Wharf")],
            _reservations: Vec::new(),
        };
        let owner_of = |range: &str, found: &Surroundings| {
            owner(&range.parse().unwrap(), "a", found, &machine).map(|in_use| in_use.owner)
        };
        let (own, other) = (found("here", Some("a")), found("here", Some("b")));
        // Its own network, with the address of its bridge.
        assert_eq!(owner_of("10.80.0.0/16", &own), None);
        assert!(
            owner_of("10.80.0.0/16", &other)
                .unwrap()
                .contains("installation b")
        );
        assert!(owner_of("10.80.1.128/25", &found("here", None)).is_some());
        assert_eq!(owner_of("10.100.0.0/16", &own).unwrap(), "interface eth0");
        assert_eq!(owner_of("10.0.0.0/8", &own).unwrap(), "another Wharf");
        assert_eq!(owner_of("10.81.0.0/16", &own), None);
        // The routes of this machine say nothing about a node elsewhere.
        assert_eq!(owner_of("10.100.0.0/16", &found("there", Some("a"))), None);
    }
}
