//! Contradictions between a configuration and the claims in the database.

use super::{ConfigFinding, Severity};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use wharf_config::{Config, GpuConfig, NodeConfig};
use wharf_db::{Db, Read, Rows as _};
use wharf_domain::capacity::Claim;
use wharf_domain::error::Error;
use wharf_ground::users::USERS;
use wharf_instances::nodes::broken_limits;

/// The part of a database that a configuration can contradict.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Books {
    /// The id of the installation in the labels of engine objects.
    pub installation: String,
    /// The claims of all instances.
    pub claims: Vec<Claim>,
    /// The nodes of volumes and snapshots that are not lost, with their sizes in GiB.
    #[serde(default)]
    pub kept: Vec<(String, u32)>,
    /// The number of users.
    #[serde(default)]
    pub users: usize,
    /// The nodes and their ports, addresses and GPUs that something outside Wharf holds. Only a running
    /// server knows them.
    #[serde(default)]
    pub kept_out: Vec<(String, String)>,
    /// The nodes that do not hold the sizes of disks, with the signs.
    #[serde(default)]
    pub broken_limits: Vec<(String, String)>,
    /// The nodes whose last proof of the sizes of disks had no result, with the reasons. Only a running server
    /// knows them.
    #[serde(default)]
    pub unproven_limits: Vec<(String, String)>,
}

impl Books {
    /// Reads them.
    pub fn read(db: &Db) -> Result<Self, Error> {
        let mut books = Self::default();
        db.read(|rows| {
            books.installation = rows.installation()?.hyphenated().to_string();
            books.users = rows.all(&USERS)?.count();
            let broken = broken_limits(rows)?.into_iter();
            books
                .broken_limits
                .extend(broken.map(|(node, broken)| (node.0, broken.to_string())));
            let kept = rows.kept_claims()?.into_iter();
            books
                .kept
                .extend(kept.map(|kept| (kept.node.0, kept.size_gib)));
            rows.each_claim(|_, claim| books.claims.push(claim))
        })?;
        Ok(books)
    }
}

/// The findings about ports, addresses and GPUs that something outside Wharf holds.
pub fn held_outside(books: &Books) -> impl Iterator<Item = ConfigFinding> {
    books.kept_out.iter().map(|(node, what)| ConfigFinding {
        severity: Severity::Warning,
        setting: format!("node.{node}.endpoint"),
        problem: format!("something outside Wharf holds {what}"),
        remedy: "end the program that holds it, or leave it out of the ranges of the configuration"
            .to_owned(),
    })
}

/// The findings about nodes that do not hold the sizes of disks, or do not prove it.
pub fn unlimited(books: &Books) -> impl Iterator<Item = ConfigFinding> {
    let broken = books.broken_limits.iter().map(|(node, why)| ConfigFinding {
        severity: Severity::Warning,
        setting: format!("node.{node}.endpoint"),
        problem: format!(
            "the engine does not hold the sizes of disks and volumes, and the node takes nothing new: {why}"
        ),
        remedy: "mend the engine's storage; on btrfs, `btrfs quota rescan` mends inconsistent quotas"
            .to_owned(),
    });
    let unproven = books.unproven_limits.iter();
    broken.chain(unproven.map(|(node, why)| ConfigFinding {
        severity: Severity::Warning,
        setting: format!("node.{node}.endpoint"),
        problem: format!("nothing proves that the engine holds the sizes of disks and volumes: {why}"),
        remedy: "give the node room and an image of a flavor; see \"Proofs of limits\" in docs/engines.md"
            .to_owned(),
    }))
}

/// Compares the claims of all instances, volumes and snapshots with the nodes of a configuration.
pub fn contradictions(config: &Config, books: &Books) -> Vec<ConfigFinding> {
    let mut of_node: BTreeMap<&str, (Vec<&Claim>, Vec<u32>)> = BTreeMap::new();
    for claim in &books.claims {
        of_node.entry(&claim.node.0).or_default().0.push(claim);
    }
    for (node, size_gib) in &books.kept {
        of_node.entry(node).or_default().1.push(*size_gib);
    }
    let mut findings = Vec::new();
    for (name, (claims, volumes)) in of_node {
        match config.node.iter().find(|node| node.name == name) {
            Some(node) => of(node, &claims, &volumes, &mut findings),
            None => findings.push(error(
                "node".to_owned(),
                match volumes.len() {
                    0 => format!(
                        "{} instances are on node {name}, which the configuration lacks",
                        claims.len()
                    ),
                    volumes => format!(
                        "{} instances and {volumes} volumes or snapshots are on node {name}, which the configuration \
                         lacks",
                        claims.len()
                    ),
                },
                match volumes.len() {
                    0 => "put it back, with `retired = true` if it shall take no new instances, or run `wharf \
                          forget INSTANCE` for those that will never come back"
                        .to_owned(),
                    _ => format!(
                        "put it back, with `retired = true` if it shall take no new instances, or run \
                         `wharf node lost {name}` if it will never come back"
                    ),
                },
            )),
        }
    }
    findings
}

fn of(node: &NodeConfig, claims: &[&Claim], volumes: &[u32], findings: &mut Vec<ConfigFinding>) {
    let compute = || claims.iter().filter(|claim| claim.compute);
    let sum = |part: fn(&Claim) -> u32, of: &mut dyn Iterator<Item = &&Claim>| -> u64 {
        of.map(|claim| u64::from(part(claim))).sum()
    };
    let capacity = node.capacity;
    for (quantity, total, claimed) in [
        (
            "n_vcpus",
            node.claimable_vcpus(),
            sum(|claim| claim.size.n_vcpus, &mut compute()),
        ),
        (
            "mem_gib",
            capacity.mem_gib,
            sum(|claim| claim.size.mem_gib, &mut compute()),
        ),
        (
            "disk_size_gib",
            capacity.disk_size_gib,
            sum(|claim| claim.size.disk_size_gib, &mut claims.iter())
                + volumes.iter().copied().map(u64::from).sum::<u64>(),
        ),
    ] {
        if claimed > u64::from(total) {
            findings.push(error(
                format!("node.{}.capacity.{quantity}", node.name),
                format!("instances claim {claimed}, and {total} may be claimed"),
                format!(
                    "set at least {claimed}, or stop or delete instances until {total} is enough; until \
                     then the node takes no new instance, and a stopped one may not start"
                ),
            ));
        }
    }
    let offered: BTreeSet<_> = node.gpus.iter().flat_map(GpuConfig::device_names).collect();
    let held = claims.iter().flat_map(|claim| &claim.gpus);
    let withdrawn: BTreeSet<_> = held
        .map(|gpu| &gpu.device)
        .filter(|device| !offered.contains(*device))
        .collect();
    for device in withdrawn {
        findings.push(error(
            format!("node.{}.gpus", node.name),
            format!("the device {device} of an instance is not among them"),
            "put it back, or delete the instance; it cannot start without its device".to_owned(),
        ));
    }
    let outside = |claim: &&&Claim| !node.lan_cidr.contains(&claim.lan_ipv4);
    if let Some(claim) = claims.iter().find(outside) {
        findings.push(error(
            format!("node.{}.lan_cidr", node.name),
            format!(
                "an instance has the address {}, which is not in {}",
                claim.lan_ipv4, node.lan_cidr
            ),
            "set the range that contains the addresses of all instances; it can change while the node \
             has none"
                .to_owned(),
        ));
    }
    let mut public = claims.iter().filter_map(|claim| claim.public_ipv4);
    let outside = |address: &_| !node.public_ipv4.iter().any(|net| net.contains(address));
    if let Some(address) = public.find(outside) {
        findings.push(error(
            format!("node.{}.public_ipv4", node.name),
            format!("an instance has the address {address}, which is in none of the networks"),
            "put its network back; the instance cannot start without it".to_owned(),
        ));
    }
}

fn error(setting: String, problem: String, remedy: String) -> ConfigFinding {
    ConfigFinding {
        severity: Severity::Error,
        setting,
        problem,
        remedy,
    }
}
