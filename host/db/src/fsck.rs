//! Derives every index again from the instance rows and compares.

use super::apply::{is_pending, names, place};
use super::read::Read;
use super::table::{Rows, Snapshot};
use super::tables as t;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::Instance;

type Known = BTreeMap<InstanceId, Instance>;

/// One line for each contradiction between tables.
pub fn check(rows: &Snapshot) -> Result<Vec<String>, Error> {
    let mut wrong = Vec::new();
    let mut known = Known::new();
    rows.each_instance(|instance| drop(known.insert(instance.id, instance)))?;
    check_indices(rows, &known, &mut wrong)?;
    check_users(rows, &mut wrong)?;
    super::idempotency::check(rows, &mut wrong)?;
    check_claims(rows, &known, &mut wrong)?;
    for (id, instance) in &known {
        check_instance(rows, *id, instance, &mut wrong)?;
    }
    Ok(wrong)
}

/// Names, owners and pending.
fn check_indices(rows: &Snapshot, known: &Known, wrong: &mut Vec<String>) -> Result<(), Error> {
    let mut named = BTreeMap::new();
    let mut owned = BTreeMap::new();
    let mut pending = BTreeMap::new();
    for (id, instance) in known {
        for name in names(Some(instance)) {
            if let Some(other) = named.insert(name.to_owned(), *id) {
                wrong.push(format!("name {name} belongs to {id} and {other}"));
            }
        }
        if let Some((owner, seq)) = place(Some(instance)) {
            owned.insert((owner, seq), *id);
            if seq >= rows.next_seq(owner)? {
                wrong.push(format!("{id}: its place is beyond its owner's counter"));
            }
        }
        if is_pending(Some(instance)) {
            pending.insert(*id, *id);
        }
    }
    let stored = rows.all(&t::NAMES)?;
    let stored = stored.map(|row| row.map(|(name, (), id)| (name, id)));
    compare("names", &named, &stored.collect::<Result<_, _>>()?, wrong);
    let stored = rows.all(&t::OWNED)?;
    let stored = stored.map(|row| row.map(|(owner, seq, id)| ((owner, seq), id)));
    compare("owned", &owned, &stored.collect::<Result<_, _>>()?, wrong);
    let stored = rows.pending()?.into_iter().map(|id| (id, id)).collect();
    compare("pending", &pending, &stored, wrong);
    Ok(())
}

fn check_claims(rows: &Snapshot, known: &Known, wrong: &mut Vec<String>) -> Result<(), Error> {
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
            wrong.push(format!("{id}: a claim without an instance"));
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
        let mut take = |what: String| {
            if let Some(other) = taken.insert(what.clone(), id) {
                wrong.push(format!("{id} and {other} both have {what}"));
            }
        };
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
    for id in known.keys().filter(|id| !claimed.contains(id)) {
        wrong.push(format!("{id}: an instance without a claim"));
    }
    Ok(())
}

fn check_instance(
    rows: &Snapshot,
    id: InstanceId,
    instance: &Instance,
    wrong: &mut Vec<String>,
) -> Result<(), Error> {
    if rows.provisioning_spec(id)?.is_none() {
        wrong.push(format!("{id}: an instance without a provisioning spec"));
    }
    let events = rows.events(id)?;
    if events.len() != instance.events as usize {
        let (found, counted) = (events.len(), instance.events);
        wrong.push(format!("{id}: {found} events, {counted} counted"));
    }
    if !events.is_sorted_by_key(|event| event.at) {
        wrong.push(format!("{id}: its event log runs backwards"));
    }
    if rows.ledger(id)?.len() != instance.ledger_entries as usize {
        wrong.push(format!("{id}: ledger entries are missing"));
    }
    Ok(())
}

/// Users by address, and the other way round.
fn check_users(rows: &Snapshot, wrong: &mut Vec<String>) -> Result<(), Error> {
    let users = rows.all(&t::USERS)?;
    let users = users.map(|row| row.map(|(id, (), email)| (email, id)));
    let emails = rows.all(&t::EMAILS)?;
    let emails = emails.map(|row| row.map(|(email, (), id)| (email, id)));
    let users: BTreeMap<String, UserId> = users.collect::<Result<_, _>>()?;
    if users != emails.collect::<Result<_, _>>()? {
        wrong.push("users and their addresses do not go together".to_owned());
    }
    Ok(())
}

fn compare<K: Ord + Debug>(
    table: &str,
    derived: &BTreeMap<K, InstanceId>,
    stored: &BTreeMap<K, InstanceId>,
    wrong: &mut Vec<String>,
) {
    for (key, id) in derived {
        if stored.get(key) != Some(id) {
            wrong.push(format!("{table} lacks {key:?} of {id}"));
        }
    }
    for (key, id) in stored {
        if !derived.contains_key(key) {
            wrong.push(format!("{table} has {key:?} of {id}, which no row says"));
        }
    }
}
