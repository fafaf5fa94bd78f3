//! The bill of a user, and corrections of it.

use super::audit::record;
use super::{Operator, Selector};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wharf_db::{Change, Changes, Read, View};
use wharf_domain::audit::Origin;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::{Event, What};
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::ledger::{Correction, Cost};
use wharf_domain::month::Month;
use wharf_domain::time::Timestamp;

/// The longest reason of a correction in bytes.
const MAX_REASON: usize = 500;

/// The cost of one instance in a time span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillLine {
    /// UUID of the instance, which may be deleted.
    pub uuid: String,
    /// Cost in nano-USD, corrections included.
    pub nano_usd: i128,
    /// The corrections that are known one by one.
    pub corrections: Vec<CorrectionLine>,
}

/// A correction of a bill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrectionLine {
    pub at: Timestamp,
    pub nano_usd: i128,
    pub reason: String,
}

impl Operator<'_> {
    /// Returns the cost of each of a user's instances in `[from, to)`, and until now at most. Instances
    /// without cost and corrections are left out.
    pub fn bill(
        &self,
        email: &str,
        from: Timestamp,
        to: Option<Timestamp>,
    ) -> Result<Vec<BillLine>, Error> {
        let now = self.clock.now();
        let to = to.filter(|to| *to < now).unwrap_or(now);
        self.db.read(|rows| {
            let user = rows.user_of_email(email)?;
            let user = user.ok_or_else(|| FieldErrors::one("email", "no user has this address"))?;
            let mut costs = closed(rows, user, from, to)?;
            for id in rows.recorded_of(user)? {
                let (entries, corrections) = (rows.ledger(id)?, rows.corrections(id)?);
                let (sum, lines) = costs.entry(id).or_default();
                *sum = sum.plus(Cost::of(&entries, &corrections, from, to));
                let within = corrections
                    .into_iter()
                    .filter(|c| from <= c.at && c.at < to);
                lines.extend(within.map(|c| CorrectionLine {
                    at: c.at,
                    nano_usd: c.nano_usd,
                    reason: c.reason,
                }));
            }
            let line = |(id, (cost, corrections)): (InstanceId, (Cost, Vec<_>))| BillLine {
                uuid: id.to_string(),
                nano_usd: cost.nano_usd(),
                corrections,
            };
            let lines = costs.into_iter().map(line);
            Ok(lines
                .filter(|line| line.nano_usd != 0 || !line.corrections.is_empty())
                .collect())
        })
    }

    /// Adds an amount in nano-USD to the bill of an instance, now. A UUID finds deleted instances too.
    pub async fn correct_bill(
        &self,
        selector: &Selector,
        nano_usd: i128,
        reason: &str,
    ) -> Result<InstanceId, Error> {
        let reason = reason.trim().to_owned();
        if reason.is_empty() || reason.len() > MAX_REASON || reason.chars().any(char::is_control) {
            let message = format!("must be one line of 1 to {MAX_REASON} bytes");
            return Err(FieldErrors::one("reason", message).into());
        }
        let (selector, why) = (selector.clone(), reason.clone());
        let corrected = self
            .db
            .write(move |view| {
                let (id, changes) = decide(view, &selector, nano_usd, &why)?;
                let owner = view.rows.ledger(id)?.first().map(|entry| entry.owner);
                let (origin, subject) = (Origin::operator(), id.to_string());
                let result = format!("{nano_usd} nano-USD");
                let audited = record(view, &origin, "bill.correct", owner, &subject, &result);
                Ok((id, changes.with(audited)))
            })
            .await?;
        tracing::warn!(instance = %corrected, nano_usd, reason, "the operator corrected a bill");
        Ok(corrected)
    }
}

fn decide(
    view: &View<'_>,
    selector: &Selector,
    nano_usd: i128,
    reason: &str,
) -> Result<(InstanceId, Changes), Error> {
    let unknown = || {
        FieldErrors::one(
            "instance",
            "no instance with a ledger has this name or UUID",
        )
    };
    let id = match selector {
        Selector::Id(id) => *id,
        Selector::Name(name) => view.rows.id_of_name(name)?.ok_or_else(unknown)?,
    };
    let entries = view.rows.ledger(id)?;
    let owner = entries.first().ok_or_else(unknown)?.owner;
    let number = view.rows.corrections(id)?.len();
    let correction = Correction {
        at: view.now,
        owner,
        nano_usd,
        reason: reason.to_owned(),
    };
    let number = u32::try_from(number).map_err(Error::internal)?;
    let changes = Changes::none().with(Change::Correction(id, number, correction));
    let what = What::BillCorrected {
        nano_usd,
        reason: reason.to_owned(),
    };
    if let Some(instance) = view.rows.instance(id)? {
        return Ok((id, changes.record(instance, view.now, what)));
    }
    // The events of a purged instance may have been removed; the correction itself remains.
    let events = view.rows.events(id)?;
    let (Some(last), Ok(number)) = (events.last(), u32::try_from(events.len())) else {
        return Ok((id, changes));
    };
    let event = Event {
        at: view.now.max(last.at),
        what,
        ..last.clone()
    };
    Ok((id, changes.with(Change::Event(number, event))))
}

type Costs = BTreeMap<InstanceId, (Cost, Vec<CorrectionLine>)>;

/// The costs of closed ledgers, which are known for whole months only.
fn closed(rows: &impl Read, user: UserId, from: Timestamp, to: Timestamp) -> Result<Costs, Error> {
    let mut costs = Costs::new();
    let mut cut = None;
    rows.each_closed(user, |month, id, cost| {
        let (start, end) = (month.start(), month.next().start());
        if to <= start || end <= from {
            return;
        }
        if start < from || to < end {
            cut = Some((month, if start < from { "from" } else { "to" }));
        }
        let (sum, _) = costs.entry(id).or_default();
        *sum = sum.plus(cost);
    })?;
    match cut {
        Some((month, end)) => Err(whole_months(month, end).into()),
        None => Ok(costs),
    }
}

fn whole_months(month: Month, end: &str) -> FieldErrors {
    let first = month.start().to_rfc3339();
    let next = month.next().start().to_rfc3339();
    let message = format!("must be {first} or {next}: the ledger of this month was closed");
    FieldErrors::one(end, message)
}
