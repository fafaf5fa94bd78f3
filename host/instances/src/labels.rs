//! Labels of pages. A label stays with its owner for good, also after its instance is gone. Browsers keep
//! programs and data of a page for its host name.

use super::shares::{SHARES, ShareRow, page_key};
use serde::{Deserialize, Serialize};
use wharf_db::{Changes, Draft, INSTANCES, ReadRows, Rows, Table, tables};
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
            entries.put(&LABEL_OF, (row.instance, page_key(row.port)), label)?;
        }
        Ok(())
    })
    .checked(check);
    /// Labels of a user.
    pub const OWN_LABELS: Table<UserId, String, ()> = Table::index_of(&LABELS, b'L', 0);
    /// Instance and page → the label that it has now.
    pub const LABEL_OF: Table<InstanceId, u32, String> = Table::index_of(&LABELS, b'i', 6);
}

/// A label of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelRow {
    pub owner: UserId,
    /// The last instance with the label, which may be gone.
    pub instance: InstanceId,
    /// The port inside the instance; none for the page of the flavor.
    pub port: Option<u16>,
    /// Whether it is the label of its page now. An earlier one leads to the present one.
    pub is_current: bool,
}

/// A page that a label names.
pub(super) struct LabelledPage {
    pub(super) instance: Instance,
    pub(super) port: Option<u16>,
    /// The label that the page has now.
    pub(super) label: String,
    pub(super) share: Option<ShareRow>,
}

/// The label of the page of an instance, or of one of its ports.
pub(super) fn label_of(
    rows: &impl Rows,
    id: InstanceId,
    port: Option<u16>,
) -> Result<String, Error> {
    let label = rows.get(&LABEL_OF, (id, page_key(port)))?;
    Ok(label.unwrap_or_else(|| label::of_id(id, port)))
}

/// The page of a living instance that has a label, or had it before a rename.
pub(super) fn named(rows: &impl Rows, label: &str) -> Result<Option<LabelledPage>, Error> {
    let (owner, id, port) = match rows.get(&LABELS, label)? {
        Some(row) => (Some(row.owner), row.instance, row.port),
        None => match label::id_of(label) {
            Some((id, port)) => (None, id, port),
            None => return Ok(None),
        },
    };
    let instance = rows.get(&INSTANCES, id)?;
    let instance = instance.filter(|instance| owner.is_none_or(|owner| owner == instance.owner));
    let Some(instance) = instance else {
        return Ok(None);
    };
    let share = rows.get(&SHARES, (id, page_key(port)))?;
    let present = label_of(rows, id, port)?;
    // The id is the label of a page without another one only.
    let is_named = owner.is_some() || present == label;
    let page = LabelledPage {
        label: present,
        instance,
        port,
        share,
    };
    Ok((is_named && page.is_there()).then_some(page))
}

impl LabelledPage {
    fn is_there(&self) -> bool {
        let has_server = match self.port {
            Some(_) => self.share.is_some(),
            None => self.instance.web_port.is_some(),
        };
        has_server && self.instance.intent != Intent::Delete
    }
}

/// The changes that give the pages of an instance the labels of its name.
pub(super) fn assign(rows: &impl Rows, instance: &Instance) -> Result<Changes, Error> {
    Ok(put(assigned(rows, instance, &pages(rows, instance)?)?))
}

/// The changes that give a port of an instance its label.
pub(super) fn assign_port(
    rows: &impl Rows,
    instance: &Instance,
    port: u16,
) -> Result<Changes, Error> {
    Ok(put(assigned(rows, instance, &[Some(port)])?))
}

fn put(changed: Vec<Assigned>) -> Changes {
    changed
        .into_iter()
        .fold(Changes::none(), |changes, change| {
            let Assigned { label, row, is_new } = change;
            if is_new {
                changes.put(&LABELS, label, row)
            } else {
                changes.rewrite(&LABELS, label, row)
            }
        })
}

/// The pages of an instance: that of its flavor, and its shared ports.
fn pages(rows: &impl Rows, instance: &Instance) -> Result<Vec<Option<u16>>, Error> {
    let mut pages = Vec::new();
    if instance.intent == Intent::Delete {
        return Ok(pages);
    }
    if instance.web_port.is_some() {
        pages.push(None);
    }
    for page in rows.keys_under(&SHARES, &instance.id)? {
        pages.extend(u16::try_from(page?).ok().filter(|port| *port > 0).map(Some));
    }
    Ok(pages)
}

/// A changed row.
struct Assigned {
    label: String,
    row: LabelRow,
    is_new: bool,
}

fn assigned(
    rows: &impl Rows,
    instance: &Instance,
    pages: &[Option<u16>],
) -> Result<Vec<Assigned>, Error> {
    let (owner, id) = (instance.owner, instance.id);
    let (mut current, mut earlier) = (Vec::<Assigned>::new(), Vec::new());
    for &port in pages {
        let row = |is_current| LabelRow {
            owner,
            instance: id,
            port,
            is_current,
        };
        let mut chosen = None;
        for label in label::labels(&instance.name, id, port) {
            if current.iter().any(|change| change.label == label) {
                continue;
            }
            let is_new = match rows.get(&LABELS, &*label)? {
                None => {
                    let new = current.iter().filter(|change| change.is_new).count();
                    has_room(rows, owner, MAX_LABELS.saturating_sub(new))?.then_some(true)
                }
                Some(row) => is_free(rows, &row, instance, port)?.then_some(false),
            };
            if let Some(is_new) = is_new {
                chosen = Some((label, is_new));
                break;
            }
        }
        let before = rows.get(&LABEL_OF, (id, page_key(port)))?;
        if let Some(before) = before
            && chosen.as_ref().is_none_or(|(label, _)| *label != before)
        {
            earlier.push(Assigned {
                label: before,
                row: row(false),
                is_new: false,
            });
        }
        if let Some((label, is_new)) = chosen {
            let row = row(true);
            current.push(Assigned { label, row, is_new });
        }
    }
    // A label may go from one page to another, so its present page is last.
    earlier.append(&mut current);
    Ok(earlier)
}

/// Whether a page may have a label: its own, or one of its owner that no present page has.
fn is_free(
    rows: &impl Rows,
    row: &LabelRow,
    instance: &Instance,
    port: Option<u16>,
) -> Result<bool, Error> {
    if row.owner != instance.owner {
        return Ok(false);
    }
    if (row.instance, row.port) == (instance.id, port) || !row.is_current {
        return Ok(true);
    }
    let Some(holder) = rows.get(&INSTANCES, row.instance)? else {
        return Ok(true);
    };
    let holder = LabelledPage {
        share: rows.get(&SHARES, (row.instance, page_key(row.port)))?,
        label: String::new(),
        instance: holder,
        port: row.port,
    };
    Ok(!holder.is_there())
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
        for change in assigned(rows, &instance, &pages(rows, &instance)?)? {
            rows.put(&LABELS, change.label, &change.row)?;
        }
    }
    Ok(())
}

fn check(rows: &ReadRows, findings: &mut wharf_db::Findings) -> Result<(), Error> {
    for row in rows.all(&LABELS)? {
        let Ok((label, (), row)) = row else { continue };
        let instance = rows.get(&INSTANCES, row.instance)?;
        if instance.is_some_and(|instance| instance.owner != row.owner) {
            findings.push(format!(
                "label {label} and its instance {} have two owners",
                row.instance
            ));
        }
    }
    Ok(())
}
