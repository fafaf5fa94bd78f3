//! Checks the rows of all tables against each other.

use super::findings::{Findings, Fix, FsckFinding, check_tables};
use super::history;
use super::read::Read;
use super::schema::DbSchema;
use super::tables as t;
use super::tree::{ReadRows, Rows as _};
use std::collections::{BTreeMap, BTreeSet};
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;
use wharf_domain::instance::{Instance, Intent, Progress};

/// The instances by id.
pub(super) type Known = BTreeMap<InstanceId, Instance>;

/// The contradictions between rows. An error of a part of the check ends that part alone.
pub(super) fn check(rows: &ReadRows, schema: &DbSchema) -> Vec<FsckFinding> {
    let mut findings = Findings::default();
    check_tables(rows, schema, &mut findings);
    match known(rows) {
        Ok(known) => {
            for part in [check_instances, check_claims, history::check] {
                if let Err(error) = part(rows, &known, &mut findings) {
                    findings.failed(&error);
                }
            }
        }
        Err(error) => findings.failed(&error),
    }
    findings.0
}

/// The instances whose rows can be read.
fn known(rows: &ReadRows) -> Result<Known, Error> {
    let readable = rows.all(&t::INSTANCES)?.filter_map(Result::ok);
    Ok(readable.map(|(id, (), instance)| (id, instance)).collect())
}

fn check_instances(rows: &ReadRows, known: &Known, wrong: &mut Findings) -> Result<(), Error> {
    for (id, instance) in known {
        if *id != instance.id {
            wrong.push(format!("{id}: its row is of {}", instance.id));
        }
        let is_listed = instance.intent != Intent::Delete;
        if is_listed && instance.seq >= rows.next_seq(instance.owner)? {
            wrong.push(format!("{id}: its place is beyond its owner's counter"));
        }
        if rows.get(&t::PROVISIONING_SPECS, *id)?.is_none() {
            wrong.push(format!("{id}: an instance without a provisioning spec"));
        }
    }
    Ok(())
}

fn check_claims(rows: &ReadRows, known: &Known, wrong: &mut Findings) -> Result<(), Error> {
    let mut taken = BTreeMap::new();
    let mut claimed = BTreeSet::new();
    for row in rows.all(&t::CLAIMS)? {
        let (node, id, claim) = row?;
        if node != claim.node.0 || !claimed.insert(id) {
            wrong.push(format!(
                "{id}: a claim under node {node}, which is not its own"
            ));
        }
        let Some(instance) = known.get(&id) else {
            // The claim of a row that cannot be read keeps its ports, since its machine may run.
            if !rows.has(&t::INSTANCES.key(&id, &()))? {
                let fix = Fix::remove(t::CLAIMS.key(&node, &id));
                wrong.fixable(format!("{id}: a claim without an instance"), fix);
            }
            continue;
        };
        let same = claim.node == instance.node
            && claim.owner == instance.owner
            && claim.ssh_port == instance.ssh_port
            && claim.lan_ipv4 == instance.lan_ipv4
            && claim.public_ipv4 == instance.public_ipv4
            && claim.web_port == instance.web_port;
        if !same {
            wrong.push(format!(
                "{id}: its claim is of other addresses than its row"
            ));
        }
        let mut take = |what: String| take(&mut taken, id, what, wrong);
        take(format!(
            "SSH port {} of {}",
            claim.ssh_port, instance.ssh_host
        ));
        take(format!("LAN address {} of node {node}", claim.lan_ipv4));
        if let Some(port) = claim.web_port {
            take(format!("web port {port}"));
        }
        if let Some(address) = claim.public_ipv4 {
            take(format!("public address {address} of node {node}"));
        }
        // A stopped instance holds no GPU.
        for gpu in claim.gpus.iter().filter(|_| claim.compute) {
            take(format!("GPU {} of node {node}", gpu.device));
        }
    }
    for row in rows.under(&t::MOVES, &())? {
        let (id, moving) = row?;
        let Some(instance) = known.get(&id) else {
            continue;
        };
        let claim = moving.claim;
        let fits = matches!(instance.intent, Intent::Stop | Intent::Delete)
            && instance.progress == Progress::Pending
            && claim.node != instance.node
            && claim.owner == instance.owner;
        if !fits {
            wrong.push(format!("{id}: a move that is not its own"));
        }
        let node = &claim.node;
        take(
            &mut taken,
            id,
            format!("LAN address {} of node {node}", claim.lan_ipv4),
            wrong,
        );
        if !moving.keeps_ssh_port {
            let port = format!("SSH port {} of {}", claim.ssh_port, moving.ssh_host);
            take(&mut taken, id, port, wrong);
        }
    }
    for id in known.keys() {
        match (claimed.contains(id), rows.is_lost(*id)?) {
            (true, true) => wrong.push(format!("{id}: a lost instance with a claim")),
            (false, false) => wrong.push(format!("{id}: an instance without a claim")),
            _ => {}
        }
    }
    Ok(())
}

/// Notes the holder of something that only one instance can have.
fn take(
    taken: &mut BTreeMap<String, InstanceId>,
    id: InstanceId,
    what: String,
    wrong: &mut Findings,
) {
    if let Some(other) = taken.insert(what.clone(), id) {
        wrong.push(format!("{id} and {other} both have {what}"));
    }
}
