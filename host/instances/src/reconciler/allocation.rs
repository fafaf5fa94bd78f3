//! Allocations that something outside Wharf holds on the node: a port, an address or a GPU.

use super::attempt::{Attempt, NextAttempt};
use super::tasks::until_certain;
use super::writer::ObservationWriter;
use crate::SharedInventory;
use crate::moves;
use std::time::Duration;
use tokio::time::Instant;
use wharf_db::{CLAIMS, CORRECTIONS, Changes, MOVES, Read as _, Rows as _, View};
use wharf_domain::driver::{DriverReport, Phase, PluginError, ReportedShortage};
use wharf_domain::error::Error;
use wharf_domain::event::{EventKind, InstanceAddresses};
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::ledger::{BillCorrection, LedgerCost};
use wharf_domain::placement::Allocation;
use wharf_domain::shortage::of_lost;
use wharf_domain::time::Timestamp;

/// The refusals after which an allocation counts as held: a node frees those of removed instances late.
const REFUSALS: u32 = 3;
/// The refusals after which an instance that ran before is stopped, within about six seconds.
const START_REFUSALS: u32 = 7;
/// The number of replacements after which a new instance fails: the cause may be another one.
const MAX_REPLACED: u32 = 10;
/// The time for which an allocation is not handed out again. A program that starts with the machine and
/// ends with it is met at most six times an hour.
const KEPT_OUT: Duration = Duration::from_mins(10);
/// The reason of a correction, for the owner.
const UNBILLED: &str = "something outside Wharf held what the instance needs on its host";

impl Attempt<'_> {
    /// The allocations that a driver reports as held by something else; `None` if it reports none.
    pub fn lost(&self, short: &[ReportedShortage]) -> Result<Option<Vec<Allocation>>, Error> {
        let (id, node) = (self.instance.id, &self.instance.node);
        let claim = self.app.db.read(|rows| {
            let moving = rows.get(&MOVES, id)?.map(|moving| moving.claim);
            match moving.filter(|claim| claim.node == *node) {
                Some(claim) => Ok(Some(claim)),
                None => rows.claim(id),
            }
        })?;
        Ok(claim.and_then(|claim| Allocation::reported(short, &claim)))
    }

    /// Keeps allocations out of later placements.
    pub fn keep_out(&self, lost: &[Allocation]) {
        let node = &self.instance.node;
        let until = self.app.clock.now().plus(KEPT_OUT);
        for what in lost {
            tracing::warn!(%node, %what, "something outside Wharf holds it; it is kept out for a while");
            self.app.inventory.keep_out(node, what.clone(), until);
        }
    }

    /// Goes on from the refusal of a driver: takes another allocation for a new instance, and tells the
    /// owner of an instance that ran before.
    pub async fn without(&mut self, lost: Vec<Allocation>) -> NextAttempt {
        let names: Vec<_> = lost.iter().map(ToString::to_string).collect();
        let why = format!("something outside Wharf holds {}", names.join(", "));
        let since = *self.history.refused_since.get_or_insert_with(Instant::now);
        self.history.refused += 1;
        let bound = match (self.instance.provisioned, self.instance.intent) {
            (true, Intent::Run) => START_REFUSALS,
            _ => REFUSALS,
        };
        if self.history.refused < bound || lost.is_empty() {
            return NextAttempt::Retry(why);
        }
        // An earlier request may still make the instance with what it has now.
        if let Some(wait) = until_certain(self.tasks.unanswered(self.instance.id).creation) {
            return NextAttempt::After(wait);
        }
        if let Err(next) = self.believe_failure().await {
            return next;
        }
        self.history.refused = 0;
        self.history.refused_since = None;
        self.keep_out(&lost);
        if self.instance.provisioned {
            let what = EventKind::RestartShort(of_lost(&lost));
            let (id, generation) = (self.instance.id, self.instance.generation);
            self.app.waiters.refuse(id, generation, what.clone());
            return self.writer.start_lost(what, since.elapsed()).await.into();
        }
        // The engine may have made the instance without them.
        match self.driver.delete(&self.target).await {
            Ok(DriverReport {
                phase: Phase::Absent,
                ..
            })
            | Err(PluginError::NotFound) => {}
            Ok(_) => return NextAttempt::Retry(why),
            Err(error) => return error.into(),
        }
        if let Err(next) = self.believe().await {
            return next;
        }
        self.history.replaced += 1;
        // Observations of the earlier incarnation say nothing about the next one.
        self.history.seen = false;
        self.history.first_absent = None;
        self.history.starts = 0;
        let give_up = self.history.replaced > MAX_REPLACED;
        let inventory = (!give_up).then(|| self.app.inventory.clone());
        self.writer.replaced(lost, inventory).await.into()
    }
}

impl ObservationWriter {
    /// Gives a new instance other allocations, or puts it into error if there are none. The time until
    /// now costs nothing.
    async fn replaced(
        &self,
        lost: Vec<Allocation>,
        inventory: Option<SharedInventory>,
    ) -> Result<bool, Error> {
        self.on_row(move |row, view| replace(row, view, &lost, inventory.as_ref()))
            .await
    }

    /// A stopped instance could not be started without these allocations, for this time.
    async fn start_lost(&self, what: EventKind, time: Duration) -> Result<bool, Error> {
        self.on_row(move |row, view| {
            if row.intent == Intent::Start {
                return crate::restart::refuse_for(row, view, &what);
            }
            let mut row = row;
            let mut changes = unbilled(
                &row,
                view,
                Timestamp(view.now.0.saturating_sub(millis(time))),
            )?;
            row.intend(Intent::Stop, None);
            row.resize = None;
            changes = changes.with(Changes::none().record(row, view.now, what.clone()));
            Ok(changes)
        })
        .await
    }
}

fn replace(
    mut row: Instance,
    view: &View<'_>,
    lost: &[Allocation],
    inventory: Option<&SharedInventory>,
) -> Result<Changes, Error> {
    let id = row.id;
    let mut changes = unbilled(&row, view, Timestamp(i64::MIN))?;
    let request = moves::requirements(view.rows, &row)?;
    let placement = match (view.rows.claim(id)?, inventory) {
        (Some(claim), Some(inventory)) => {
            let placement = inventory.replacement(&claim, &request, lost);
            placement.map(|placement| (claim.node, placement))
        }
        _ => None,
    };
    let Some((from, placement)) = placement else {
        row.failed = true;
        row.intend(Intent::Stop, None);
        let what = EventKind::AllocationLost(lost.to_vec(), None);
        changes = changes.with(Changes::none().record(row, view.now, what));
        return Ok(changes);
    };
    let deadline = row.deadline;
    let mut row = moves::relocated(row, &placement.claim, &placement.ssh_host);
    // A late answer about the earlier object is not one about the next.
    row.incarnation += 1;
    row.intend(Intent::Run, deadline);
    let addresses = InstanceAddresses {
        ssh_host: row.ssh_host.clone(),
        ssh_port: row.ssh_port,
        lan_ipv4: row.lan_ipv4,
        public_ipv4: row.public_ipv4,
    };
    let what = EventKind::AllocationLost(lost.to_vec(), Some(addresses));
    changes = changes.with(
        Changes::none()
            .remove(&CLAIMS, (from.0, id))
            .put_claim(id, placement.claim)
            .record(row, view.now, what),
    );
    Ok(changes)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Takes the cost since a time off the bill, at most since the last entry of the ledger.
fn unbilled(row: &Instance, view: &View<'_>, since: Timestamp) -> Result<Changes, Error> {
    let (entries, all) = (view.rows.ledger(row.id)?, view.rows.corrections(row.id)?);
    let Some(last) = entries.last() else {
        return Ok(Changes::none());
    };
    let since = since.max(last.at);
    // The operator's corrections stay.
    let own = all.iter().filter(|one| one.reason == UNBILLED);
    let own: Vec<_> = own.cloned().collect();
    let cost = LedgerCost::of(&entries, &own, since, view.now).nano_usd();
    if cost <= 0 {
        return Ok(Changes::none());
    }
    let correction = BillCorrection {
        at: view.now,
        owner: row.owner,
        nano_usd: -cost,
        reason: UNBILLED.to_owned(),
    };
    let number = u32::try_from(all.len()).map_err(Error::internal)?;
    Ok(Changes::none().put(&CORRECTIONS, (row.id, number), correction))
}
