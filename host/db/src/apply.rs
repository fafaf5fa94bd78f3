//! Applies changes to the rows, indices included.

use super::batch::{Change, Changes};
use super::codec::internal;
use super::projection::Projected;
use super::read::Read;
use super::rows::{BilledAs, OwnerRow};
use super::table::{Draft, Rows, Table};
use super::tables as t;
use super::wakes::Topic;
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::ledger::Cost;
use wharf_domain::month::Month;
use wharf_domain::secret::Encrypted;

impl Draft<'_> {
    /// Applies one use case's changes to the rows and to the projection of the claims.
    pub(super) fn apply(
        &mut self,
        changes: Changes,
        projected: &mut Projected,
    ) -> Result<(), Error> {
        for change in changes.0 {
            self.apply_one(change, projected)?;
        }
        Ok(())
    }

    /// Notes the topic of a change, for the owner's receivers.
    fn note_topic(&mut self, change: &Change) -> Result<(), Error> {
        let (owner, topic) = match change {
            Change::Audit(record) => (record.owner, Topic::Audit),
            Change::PutHostKeys(id, _) => {
                let instance = self.get(&t::INSTANCES, id, ())?;
                (instance.map(|i| i.owner), Topic::HostKeys)
            }
            Change::PutKey(key) => (Some(key.user), Topic::Keys),
            Change::PutSshKey(owner, ..) | Change::DropSshKey(owner, _) => {
                (Some(*owner), Topic::SshKeys)
            }
            Change::PutWebhook(webhook) => (Some(webhook.owner), Topic::Webhooks),
            Change::DropWebhook(owner, _) | Change::PutDelivery(owner, ..) => {
                (Some(*owner), Topic::Webhooks)
            }
            _ => return Ok(()),
        };
        self.woken.topics.extend(owner.map(|owner| (owner, topic)));
        Ok(())
    }

    fn apply_one(&mut self, change: Change, projected: &mut Projected) -> Result<(), Error> {
        self.note_topic(&change)?;
        match change {
            Change::PutInstance(instance) => self.put_instance(&instance, projected)?,
            Change::DropInstance(id) => self.drop_instance(id, projected)?,
            Change::PutClaim(id, claim) => {
                let before = self.put(&t::CLAIMS, &*claim.node.0, id, &claim)?;
                projected.change(before, Some(claim));
            }
            Change::PutProvisioningSpec(id, spec) => {
                self.put(&t::PROVISIONING_SPECS, &id, (), &*spec)?;
            }
            Change::PutSecrets(id, password, secrets) => {
                self.put_secrets(id, password, secrets)?;
            }
            Change::PutKeyFingerprint(fingerprint) => {
                self.put(&t::KEY_FINGERPRINT, &(), (), &fingerprint)?;
            }
            Change::Event(number, row) => self.append_event(number, *row)?,
            Change::TrimEvents(owner, through) => self.trim_events(owner, through)?,
            Change::Entry(number, entry) => {
                self.put(&t::LEDGER, &entry.instance, number, &entry)?;
                if number == 0 {
                    self.put(&t::RECORDED, &entry.owner, entry.instance, &())?;
                }
            }
            Change::Correction(id, number, correction) => {
                self.put(&t::CORRECTIONS, &id, number, &correction)?;
            }
            Change::CloseLedger(owner, id, months) => self.close_ledger(owner, id, &months)?,
            Change::DropEvents(id) => self.drop_events(id)?,
            Change::Forget(owner, id) => {
                self.remove(&t::RECORDED, &owner, id)?;
            }
            Change::PutUser(id, email) => {
                self.put(&t::EMAILS, &*email, (), &id)?;
                self.put(&t::USERS, &id, (), &email)?;
            }
            Change::PutUserLimits(id, limits) => {
                self.put(&t::USER_LIMITS, &id, (), &limits)?;
            }
            Change::PutNode(node, row) => {
                self.put(&t::NODES, &*node.0, (), &row)?;
            }
            Change::Drain(node, drained) => {
                let before = match drained {
                    true => self.put(&t::DRAINED, &*node.0, (), &())?,
                    false => self.remove(&t::DRAINED, &*node.0, ())?,
                };
                projected.drain(node, before.is_some(), drained);
            }
            Change::Suspend(id, Some(suspension)) => {
                self.put(&t::SUSPENDED, &(), id, &suspension)?;
            }
            Change::Suspend(id, None) => {
                self.remove(&t::SUSPENDED, &(), id)?;
            }
            Change::SuspendUser(id, Some(suspension)) => {
                self.put(&t::SUSPENDED_USERS, &(), id, &suspension)?;
            }
            Change::SuspendUser(id, None) => {
                self.remove(&t::SUSPENDED_USERS, &(), id)?;
            }
            Change::PutStart(id, Some(start)) => {
                self.put(&t::STARTS, &(), id, &start)?;
            }
            Change::PutStart(id, None) => {
                self.remove(&t::STARTS, &(), id)?;
            }
            Change::PutMove(id, Some(row)) => {
                let before = self.put(&t::MOVES, &(), id, &*row)?;
                projected.reserve(before, Some(*row));
            }
            Change::PutMove(id, None) => {
                let before = self.remove(&t::MOVES, &(), id)?;
                projected.reserve(before, None);
            }
            Change::DropClaim(node, id) => {
                let before = self.remove(&t::CLAIMS, &*node.0, id)?;
                projected.change(before, None);
            }
            Change::Lost(id, lost) => self.note_lost(id, lost, projected)?,
            Change::LetMove(user, true) => {
                self.put(&t::MOVABLE, &user, (), &())?;
            }
            Change::LetMove(user, false) => {
                self.remove(&t::MOVABLE, &user, ())?;
            }
            Change::PutHostKeys(id, keys) => {
                self.put(&t::HOST_KEYS, &(), id, &keys)?;
            }
            Change::PutClock(row) => {
                self.put(&t::CLOCK, &(), (), &row)?;
            }
            Change::PutKey(key) => self.put_key(&key)?,
            Change::DropKey(id) => self.drop_key(&id)?,
            Change::PutKeyTerms(id, terms) => {
                self.put(&t::KEY_TERMS, &*id, (), &terms)?;
            }
            Change::PutKeyUse(id, at) => {
                if self.get(&t::KEYS, &*id, ())?.is_some() {
                    self.put(&t::KEY_USES, &*id, (), &at)?;
                }
            }
            Change::Account(change) => self.apply_account(change)?,
            Change::Way(change) => self.apply_way(change)?,
            Change::PutSshKey(user, id, row) => {
                self.put(&t::SSH_KEYS, &user, id, &row)?;
            }
            Change::DropSshKey(user, id) => {
                self.remove(&t::SSH_KEYS, &user, id)?;
            }
            Change::Audit(record) => self.append_audit(&record)?,
            Change::PutWebhook(webhook) => {
                self.put(&t::WEBHOOKS, &webhook.owner, webhook.id, &*webhook)?;
            }
            Change::DropWebhook(owner, id) => self.drop_webhook(owner, id)?,
            Change::PutDelivery(owner, id, number, delivery) => {
                self.put_delivery(owner, (id, number), &delivery)?;
            }
            Change::DropAudit(number) => self.drop_audit(number)?,
            Change::PutIdempotentPassword(owner, digest, password) => {
                let key = (owner, digest);
                if let Some(mut create) = self.get(&t::IDEMPOTENT, &(), key)? {
                    create.instance.password = password;
                    self.put(&t::IDEMPOTENT, &(), key, &create)?;
                }
            }
            Change::PutIdempotent(digest, create, expired_before) => {
                self.put_idempotent(digest, &create, expired_before)?;
            }
        }
        Ok(())
    }

    fn close_ledger(
        &mut self,
        owner: UserId,
        id: InstanceId,
        months: &[(Month, Cost)],
    ) -> Result<(), Error> {
        for (month, cost) in months {
            self.put(&t::CLOSED, &owner, (month.0, id), cost)?;
        }
        match months {
            [] => drop(self.remove(&t::BILLED_AS, &id, ())?),
            _ => self.keep_billed_as(id)?,
        }
        self.remove_under(&t::LEDGER, &id)?;
        self.remove_under(&t::CORRECTIONS, &id)
    }

    fn drop_events(&mut self, id: InstanceId) -> Result<(), Error> {
        if self.keys_under(&t::LEDGER, &id)?.next().is_some() {
            self.keep_billed_as(id)?;
        }
        self.remove_under(&t::EVENTS, &id)
    }

    /// Keeps what only the events have of an instance that an earlier version purged.
    fn keep_billed_as(&mut self, id: InstanceId) -> Result<(), Error> {
        if let Some(known) = self.billed_as(id)? {
            self.put(&t::BILLED_AS, &id, (), &known)?;
        }
        Ok(())
    }

    fn remove_under<V: serde::de::DeserializeOwned>(
        &mut self,
        table: &Table<InstanceId, u32, V>,
        id: &InstanceId,
    ) -> Result<(), Error> {
        let numbers: Vec<u32> = self.keys_under(table, id)?.collect::<Result<_, _>>()?;
        for number in numbers {
            self.remove(table, id, number)?;
        }
        Ok(())
    }

    fn put_instance(&mut self, new: &Instance, projected: &mut Projected) -> Result<(), Error> {
        let old = self.put(&t::INSTANCES, &new.id, (), new)?;
        // A use case reads the row that it changes.
        if new.version != old.as_ref().map_or(0, |old| old.version) + 1 {
            return Err(internal(format!(
                "{} was changed without being read",
                new.id
            )));
        }
        let before = old.as_ref().map_or(0, |old| old.wan_ports.len());
        projected.count_ports(new.owner, before, new.wan_ports.len());
        self.index(old.as_ref(), Some(new))
    }

    fn put_secrets(
        &mut self,
        id: InstanceId,
        password: Option<Encrypted>,
        secrets: Option<Encrypted>,
    ) -> Result<(), Error> {
        let missing = || internal(format!("{id} is missing"));
        if let Some(password) = password {
            let mut row = self.get(&t::INSTANCES, &id, ())?.ok_or_else(missing)?;
            row.password = password;
            self.put(&t::INSTANCES, &id, (), &row)?;
        }
        if let Some(secrets) = secrets {
            let spec = self.get(&t::PROVISIONING_SPECS, &id, ())?;
            let mut spec = spec.ok_or_else(missing)?;
            spec.secrets = secrets;
            self.put(&t::PROVISIONING_SPECS, &id, (), &spec)?;
        }
        Ok(())
    }

    fn drop_instance(&mut self, id: InstanceId, projected: &mut Projected) -> Result<(), Error> {
        let Some(old) = self.remove(&t::INSTANCES, &id, ())? else {
            return Ok(());
        };
        self.put(&t::BILLED_AS, &id, (), &BilledAs::from(&old))?;
        self.remove(&t::PROVISIONING_SPECS, &id, ())?;
        self.remove(&t::SUSPENDED, &(), id)?;
        self.remove(&t::HOST_KEYS, &(), id)?;
        self.remove(&t::STARTS, &(), id)?;
        let lost = self.remove(&t::LOST, &(), id)?.is_some();
        let reserved = self.remove(&t::MOVES, &(), id)?;
        projected.reserve(reserved, None);
        if let Some(claim) = self.remove(&t::CLAIMS, &*old.node.0, id)? {
            projected.change(Some(claim), None);
        }
        if !lost {
            projected.count_ports(old.owner, old.wan_ports.len(), 0);
        }
        self.index(Some(&old), None)
    }

    /// The open ports of a lost VM do not count.
    fn note_lost(
        &mut self,
        id: InstanceId,
        lost: bool,
        projected: &mut Projected,
    ) -> Result<(), Error> {
        let before = match lost {
            true => self.put(&t::LOST, &(), id, &())?,
            false => self.remove(&t::LOST, &(), id)?,
        };
        if let Some(row) = self.get(&t::INSTANCES, &id, ())?
            && before.is_some() != lost
        {
            let ports = row.wan_ports.len();
            let (before, after) = if lost { (ports, 0) } else { (0, ports) };
            projected.count_ports(row.owner, before, after);
        }
        Ok(())
    }

    /// Makes names, owners and pending follow a changed instance row.
    fn index(&mut self, old: Option<&Instance>, new: Option<&Instance>) -> Result<(), Error> {
        let Some(id) = new.or(old).map(|i| i.id) else {
            return Ok(());
        };
        let (before, after) = (names(old), names(new));
        for name in before.iter().filter(|name| !after.contains(name)) {
            self.remove(&t::NAMES, *name, ())?;
        }
        for name in after.iter().filter(|name| !before.contains(name)) {
            self.put(&t::NAMES, *name, (), &id)?;
        }
        let (before, after) = (place(old), place(new));
        if let Some((owner, seq)) = after.or(before) {
            let counters = self.get(&t::OWNERS, &owner, ())?.unwrap_or_default();
            let counters = OwnerRow {
                version: counters.version + 1,
                last_seq: counters.last_seq.max(seq),
            };
            self.put(&t::OWNERS, &owner, (), &counters)?;
            match after {
                Some(_) if before.is_some() => {}
                Some(_) => {
                    self.put(&t::OWNED, &owner, seq, &id)?;
                }
                None => {
                    self.remove(&t::OWNED, &owner, seq)?;
                }
            }
        }
        match (is_pending(old), is_pending(new)) {
            (false, true) => {
                self.put(&t::PENDING, &id, (), &())?;
            }
            (true, false) => {
                self.remove(&t::PENDING, &id, ())?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The names that lead to an instance: its own and one reserved by a change under way.
pub(super) fn names(instance: Option<&Instance>) -> Vec<&str> {
    match instance {
        Some(i) if i.intent != Intent::Delete => {
            let reserved = i.resize.as_ref().and_then(|r| r.name.as_ref());
            let mut names = vec![i.name.as_str()];
            names.extend(reserved.map(wharf_domain::name::Name::as_str));
            names
        }
        _ => Vec::new(),
    }
}

/// Its key in the owner's list. It never changes while the instance is listed.
pub(super) fn place(instance: Option<&Instance>) -> Option<(UserId, u64)> {
    instance
        .filter(|i| i.intent != Intent::Delete)
        .map(|i| (i.owner, i.seq))
}

/// Whether the reconciler has work on it.
pub(super) fn is_pending(instance: Option<&Instance>) -> bool {
    instance.is_some_and(|i| i.progress == Progress::Pending)
}
