//! Labels of pages. A label stays with its owner for good, also after its instance is gone. Browsers keep
//! programs and data of a page for its host name.

use serde::{Deserialize, Serialize};
use wharf_db::{Changes, Draft, INSTANCES, Rows, Snapshot, Table, tables};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::label;

/// The most labels of one user. Pages of further names have the ids of their instances as labels, which no
/// other instance ever has.
const MAX_LABELS: usize = 1000;

tables! {
    /// Labels of pages.
    pub const LABELS: Table<String, (), LabelRow> = Table::budgeted(
        b'l',
        0,
        |_, (), row| Some(row.owner),
        "1000 of a user, and the budget",
        "Always"
    )
    .indexed(|label, (), row, entries| {
        entries.put(&OWN_LABELS, (row.owner, label.clone()), &())?;
        if row.is_current {
            entries.put(&LABEL_OF, row.instance, label)?;
        }
        Ok(())
    })
    .checked(check);
    /// Labels of a user.
    pub const OWN_LABELS: Table<UserId, String, ()> = Table::index_of(&LABELS, b'L', 0);
    /// Instance → the label that it has now.
    pub const LABEL_OF: Table<InstanceId, (), String> = Table::index_of(&LABELS, b'i', 6);
}

/// A label of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelRow {
    pub owner: UserId,
    /// The last instance with the label, which may be gone.
    pub instance: InstanceId,
    /// Whether it is the label of its instance now. An earlier one leads to the present one.
    pub is_current: bool,
}

/// The label of the page of an instance.
pub(super) fn label_of(rows: &impl Rows, id: InstanceId) -> Result<String, Error> {
    let label = rows.get(&LABEL_OF, id)?;
    Ok(label.unwrap_or_else(|| label::of_id(id)))
}

/// The living instance whose page has a label, or had it before a rename. The label that the page has now
/// comes with it.
pub(super) fn named(rows: &impl Rows, label: &str) -> Result<Option<(Instance, String)>, Error> {
    let owner_and_id = match rows.get(&LABELS, label)? {
        Some(row) => Some((Some(row.owner), row.instance)),
        None => label::id_of(label).map(|id| (None, id)),
    };
    let Some((owner, id)) = owner_and_id else {
        return Ok(None);
    };
    let instance = rows.get(&INSTANCES, id)?.filter(has_page);
    let instance = instance.filter(|instance| owner.is_none_or(|owner| owner == instance.owner));
    let Some(instance) = instance else {
        return Ok(None);
    };
    let present = label_of(rows, id)?;
    // The id is the label of an instance without another one only.
    Ok((owner.is_some() || present == label).then_some((instance, present)))
}

fn has_page(instance: &Instance) -> bool {
    instance.web_port.is_some() && instance.intent != Intent::Delete
}

/// The changes that give the page of an instance the label of its name.
pub(super) fn assign(rows: &impl Rows, instance: &Instance) -> Result<Changes, Error> {
    let changed = assigned(rows, instance, MAX_LABELS)?.into_iter();
    Ok(changed.fold(Changes::none(), |changes, change| {
        let Assigned { label, row, is_new } = change;
        if is_new {
            changes.put(&LABELS, label, row)
        } else {
            changes.rewrite(&LABELS, label, row)
        }
    }))
}

/// A changed row.
struct Assigned {
    label: String,
    row: LabelRow,
    is_new: bool,
}

fn assigned(rows: &impl Rows, instance: &Instance, most: usize) -> Result<Vec<Assigned>, Error> {
    let mut changed = Vec::new();
    if !has_page(instance) {
        return Ok(changed);
    }
    let (owner, id) = (instance.owner, instance.id);
    let mut chosen = None;
    for label in label::labels(&instance.name, id) {
        let is_new = match rows.get(&LABELS, &*label)? {
            None => has_room(rows, owner, most)?.then_some(true),
            Some(row) => is_free(rows, &row, instance)?.then_some(false),
        };
        if let Some(is_new) = is_new {
            chosen = Some((label, is_new));
            break;
        }
    }
    let before = rows.get(&LABEL_OF, id)?;
    if let Some(before) = before
        && chosen.as_ref().is_none_or(|(label, _)| *label != before)
    {
        let row = LabelRow {
            owner,
            instance: id,
            is_current: false,
        };
        changed.push(Assigned {
            label: before,
            row,
            is_new: false,
        });
    }
    if let Some((label, is_new)) = chosen {
        let row = LabelRow {
            owner,
            instance: id,
            is_current: true,
        };
        changed.push(Assigned { label, row, is_new });
    }
    Ok(changed)
}

/// Whether an instance may have a label: its own, or one of its owner that no living page has.
fn is_free(rows: &impl Rows, row: &LabelRow, instance: &Instance) -> Result<bool, Error> {
    if row.owner != instance.owner {
        return Ok(false);
    }
    let is_held = row.instance != instance.id
        && row.is_current
        && rows
            .get(&INSTANCES, row.instance)?
            .is_some_and(|holder| has_page(&holder));
    Ok(!is_held)
}

fn has_room(rows: &impl Rows, owner: UserId, most: usize) -> Result<bool, Error> {
    let labels = rows.keys_under(&OWN_LABELS, &owner)?.take(most);
    Ok(labels.count() < most)
}

/// Gives labels to the pages of instances that are older than labels, in the order of their creation.
pub fn label_all(rows: &mut Draft<'_>) -> Result<(), Error> {
    let mut instances = Vec::new();
    for row in rows.all(&INSTANCES)? {
        match row {
            Ok((_, (), instance)) => instances.push(instance),
            Err(error) => tracing::error!(error = %error.chain(), "an instance cannot be read"),
        }
    }
    instances.sort_by_key(|instance| (instance.created_at, instance.id));
    for instance in instances {
        for change in assigned(rows, &instance, MAX_LABELS)? {
            rows.put(&LABELS, change.label, &change.row)?;
        }
    }
    Ok(())
}

fn check(rows: &Snapshot, findings: &mut wharf_db::Findings) -> Result<(), Error> {
    for row in rows.all(&LABELS)? {
        let Ok((label, (), row)) = row else { continue };
        let instance = rows.get(&INSTANCES, row.instance)?;
        if instance.is_some_and(|instance| instance.owner != row.owner) {
            findings.push(format!(
                "label {label} and its instance {} have two owners",
                row.instance
            ));
        }
        let present = rows.get(&LABEL_OF, row.instance)?;
        if row.is_current && present.as_ref() != Some(&label) {
            findings.push(format!(
                "{} has the labels {label} and {present:?}",
                row.instance
            ));
        }
    }
    Ok(())
}
