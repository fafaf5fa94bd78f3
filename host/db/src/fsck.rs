//! Derives every index again from the instance rows and compares.

use super::apply::{is_pending, names, place};
use super::findings::{Finding, Findings, Fix, Known, compare};
use super::history;
use super::read::Read;
use super::recorded;
use super::tables as t;
use std::collections::{BTreeMap, BTreeSet};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::Intent;

/// The most unreadable rows of a check: a file with more cannot be checked.
const MAX_UNREADABLE: usize = 100;

/// The contradictions between tables. An error of a table ends the check of it alone.
pub(super) fn check(rows: &impl Read) -> Vec<Finding> {
    let mut wrong = Findings::default();
    let checks = [
        check_indices,
        check_users,
        check_claims,
        check_idempotency,
        check_audit,
        super::keys::check,
        history::check,
        super::events::check,
        super::webhooks::check,
        check_recorded,
        check_extras,
        check_accounts,
    ];
    match known(rows, &mut wrong) {
        Ok(known) => {
            for check in checks {
                if let Err(error) = check(rows, &known, &mut wrong) {
                    wrong.push(format!("rows cannot be read: {}", error.chain()));
                }
            }
        }
        Err(error) => wrong.push(format!("instances cannot be read: {}", error.chain())),
    }
    wrong.0
}

fn check_recorded(rows: &impl Read, _: &Known, wrong: &mut Findings) -> Result<(), Error> {
    let mut lines = Vec::new();
    recorded::check(rows, &mut lines)?;
    lines.into_iter().for_each(|line| wrong.push(line));
    Ok(())
}

/// Suspensions and host keys are of instances that exist.
fn check_extras(rows: &impl Read, known: &Known, wrong: &mut Findings) -> Result<(), Error> {
    for id in rows.keys_under(&t::SUSPENDED, &())? {
        let id = id?;
        if !known.contains_key(&id) {
            let fix = Fix::remove(&t::SUSPENDED, &(), &id);
            wrong.fixable(format!("{id}: a suspension without an instance"), fix);
        }
    }
    for id in rows.keys_under(&t::HOST_KEYS, &())? {
        let id = id?;
        if !known.contains_key(&id) {
            let fix = Fix::remove(&t::HOST_KEYS, &(), &id);
            wrong.fixable(format!("{id}: host keys without an instance"), fix);
        }
    }
    for id in rows.keys_under(&t::LOST, &())? {
        let id = id?;
        if !known.contains_key(&id) {
            let fix = Fix::remove(&t::LOST, &(), &id);
            wrong.fixable(format!("{id}: lost without an instance"), fix);
        }
    }
    Ok(())
}

fn check_accounts(rows: &impl Read, _: &Known, wrong: &mut Findings) -> Result<(), Error> {
    let ways = super::sign_in_ways::check(rows)?;
    for line in super::accounts::check(rows)?.into_iter().chain(ways) {
        wrong.push(line);
    }
    Ok(())
}

fn check_audit(rows: &impl Read, _: &Known, wrong: &mut Findings) -> Result<(), Error> {
    for line in super::audit::verify(rows, None)?.1 {
        wrong.push(line);
    }
    Ok(())
}

fn known(rows: &impl Read, wrong: &mut Findings) -> Result<Known, Error> {
    let (mut known, mut unreadable) = (Known::new(), 0);
    for row in rows.all(&t::INSTANCES)? {
        match row {
            Ok((id, (), instance)) => {
                if id != instance.id {
                    wrong.push(format!("{id}: its row is of {}", instance.id));
                }
                known.insert(id, instance);
            }
            Err(error) => {
                wrong.push(format!("an instance cannot be read: {}", error.chain()));
                unreadable += 1;
                if unreadable == MAX_UNREADABLE {
                    break;
                }
            }
        }
    }
    Ok(known)
}

/// Names, owners and pending.
fn check_indices(rows: &impl Read, known: &Known, wrong: &mut Findings) -> Result<(), Error> {
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
    let stored = stored.collect::<Result<_, _>>()?;
    compare("names", &named, &stored, wrong, |name, id| match id {
        Some(id) => Fix::put(&t::NAMES, name.as_str(), &(), &id),
        None => Ok(Fix::remove(&t::NAMES, name.as_str(), &())),
    })?;
    let stored = rows.all(&t::OWNED)?;
    let stored = stored.map(|row| row.map(|(owner, seq, id)| ((owner, seq), id)));
    let stored = stored.collect::<Result<_, _>>()?;
    compare(
        "owned",
        &owned,
        &stored,
        wrong,
        |(owner, seq), id| match id {
            Some(id) => Fix::put(&t::OWNED, owner, seq, &id),
            None => Ok(Fix::remove(&t::OWNED, owner, seq)),
        },
    )?;
    let stored = rows.pending()?.into_iter().map(|id| (id, id)).collect();
    compare(
        "pending",
        &pending,
        &stored,
        wrong,
        |id, there| match there {
            Some(_) => Fix::put(&t::PENDING, id, &(), &()),
            None => Ok(Fix::remove(&t::PENDING, id, &())),
        },
    )
}

fn check_claims(rows: &impl Read, known: &Known, wrong: &mut Findings) -> Result<(), Error> {
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
            let fix = Fix::remove(&t::CLAIMS, node.as_str(), &id);
            wrong.fixable(format!("{id}: a claim without an instance"), fix);
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
    for (id, moving) in rows.moves()? {
        let Some(instance) = known.get(&id) else {
            let fix = Fix::remove(&t::MOVES, &(), &id);
            wrong.fixable(format!("{id}: a move without an instance"), fix);
            continue;
        };
        let claim = moving.claim;
        let fits = matches!(instance.intent, Intent::Stop | Intent::Delete)
            && is_pending(Some(instance))
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
    for (id, instance) in known {
        if claimed.contains(id) == rows.is_lost(*id)? {
            wrong.push(match claimed.contains(id) {
                true => format!("{id}: a lost instance with a claim"),
                false => format!("{id}: an instance without a claim"),
            });
        }
        if instance.id == *id && rows.provisioning_spec(*id)?.is_none() {
            wrong.push(format!("{id}: an instance without a provisioning spec"));
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

fn check_idempotency(rows: &impl Read, _: &Known, wrong: &mut Findings) -> Result<(), Error> {
    let mut lines = Vec::new();
    super::idempotency::check(rows, &mut lines)?;
    lines.into_iter().for_each(|line| wrong.push(line));
    Ok(())
}

/// Users by address, and the other way round.
fn check_users(rows: &impl Read, _: &Known, wrong: &mut Findings) -> Result<(), Error> {
    let users = rows.all(&t::USERS)?;
    let users = users.map(|row| row.map(|(id, (), email)| (email, id)));
    let emails = rows.all(&t::EMAILS)?;
    let emails = emails.map(|row| row.map(|(email, (), id)| (email, id)));
    let users: BTreeMap<String, UserId> = users.collect::<Result<_, _>>()?;
    let emails = emails.collect::<Result<_, _>>()?;
    compare("emails", &users, &emails, wrong, |email, id| match id {
        Some(id) => Fix::put(&t::EMAILS, email.as_str(), &(), &id),
        None => Ok(Fix::remove(&t::EMAILS, email.as_str(), &())),
    })
}
