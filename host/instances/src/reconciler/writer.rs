//! Observations as writes. Each is for one generation of the row; a newer one makes it stale, and
//! nothing is written.

use crate::content::{CONTENT, ContentRow, content};
use crate::copies::{self, CopyRow};
use crate::host_keys::{HOST_KEYS, known_keys};
use crate::restart::STARTS;
use crate::snapshots::RESTORES;
use crate::volumes::{MOUNTS, Usable, has_changes, rows_of, usable};
use crate::{labels, moves, restart};
use wharf_db::{CLAIMS, Changes, Db, MOVES, MoveRow, Read as _, Rows as _, View};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::host_key::HostKey;
use wharf_domain::ids::{Generation, InstanceId};
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::time::Timestamp;

/// Writes for one generation of one instance.
#[derive(Clone)]
pub struct ObservationWriter {
    pub db: Db,
    pub id: InstanceId,
    pub generation: Generation,
}

impl ObservationWriter {
    /// Writes the changes of `decide`, if the row still has this generation. False if it does not.
    pub(super) async fn on_row(
        &self,
        decide: impl Fn(Instance, &View<'_>) -> Result<Changes, Error> + Send + 'static,
    ) -> Result<bool, Error> {
        let (id, generation) = (self.id, self.generation);
        self.db
            .write_essential(move |view| match view.rows.instance(id)? {
                Some(row) if row.generation == generation => Ok((true, decide(row, view)?)),
                _ => Ok((false, Changes::none())),
            })
            .await
    }

    /// The instance is reachable, has its size, and shows this host key, if one was seen.
    pub async fn ready(&self, key: Option<HostKey>) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            row.provisioned = true;
            row.progress = Progress::Settled;
            row.deadline = None;
            let id = row.id;
            let changes = claim_of_size(&row, view)?.record(row, view.now, EventKind::Ready);
            match &key {
                Some(key) => note_key(changes, id, key, view),
                None => Ok(changes),
            }
        })
        .await
    }

    /// The instance cannot be created. Its remains are stopped next, which frees its compute.
    pub async fn failed(&self, why: String) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            row.failed = true;
            row.intend(Intent::Stop, None);
            let mut changes = Changes::none();
            let content = content(view.rows, row.id)?;
            let lacks = content.is_some_and(|content| !content.has_come)
                || matches!(usable(view.rows, row.id)?, Usable::No(_));
            // One that was lost, and whose content or volumes do not come, is lost as before. A part on the node is an
            // orphan.
            if row.incarnation > 1 && lacks {
                for (volume, _) in rows_of(view.rows, row.id)? {
                    changes = changes.remove(&MOUNTS, (row.id, volume));
                }
                row.progress = Progress::Settled;
                row.incarnation += 1;
                changes = changes
                    .remove(&CLAIMS, (row.node.0.clone(), row.id))
                    .set_lost(row.id, true);
            }
            Ok(changes.record(row, view.now, EventKind::Failed(why.clone())))
        })
        .await
    }

    /// The node has, or has no more, the content of a new instance that comes from a backup.
    pub async fn content_came(&self, has_come: bool) -> Result<bool, Error> {
        self.on_row(move |row, view| {
            let content = content(view.rows, row.id)?.map(|content| ContentRow {
                has_come,
                ..content
            });
            Ok(Changes::none().set(&CONTENT, row.id, content))
        })
        .await
    }

    /// The node has taken the start of a stopped instance, which must be reachable by the deadline.
    pub async fn start_taken(&self, deadline: Timestamp) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            if row.intent != Intent::Start {
                return Ok(Changes::none());
            }
            row.deadline = Some(deadline);
            restart::take(row, view)
        })
        .await
    }

    /// The node has taken a start that was requested after the present work on the disk had begun.
    pub async fn start_taken_meanwhile(&self, deadline: Timestamp) -> Result<(), Error> {
        let id = self.id;
        self.db
            .write_essential(move |view| match view.rows.instance(id)? {
                Some(mut row) if row.intent == Intent::Start => {
                    row.deadline = Some(deadline);
                    Ok(((), restart::take(row, view)?))
                }
                _ => Ok(((), Changes::none())),
            })
            .await
    }

    /// A stopped instance could not be started. It stays stopped, with its data. An event is
    /// written only if the node had taken the start.
    pub async fn restart_failed(&self, why: EventKind) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            if row.intent == Intent::Start {
                return restart::refuse_for(row, view, &why);
            }
            row.intend(Intent::Stop, None);
            row.resize = None;
            Ok(Changes::none().record(row, view.now, why.clone()))
        })
        .await
    }

    /// A stopped instance keeps its disk, of this size if it is known, instead of a larger one. It stays
    /// stopped, so that its user learns of it before the instance costs anything.
    pub async fn growth_failed(
        &self,
        disk_size_gib: Option<u32>,
        why: EventKind,
    ) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            let audited = restart::audit_no_room(&row, view)?;
            let kept = disk_size_gib.filter(|kept| *kept > 0);
            let disk = &mut row.size.disk_size_gib;
            *disk = kept.map_or(*disk, |kept| kept.min(*disk));
            row.intend(Intent::Stop, None);
            let changes = Changes::none().record(row, view.now, why.clone());
            Ok(audited.into_iter().fold(changes, Changes::with))
        })
        .await
    }

    /// The node has stopped the instance, which frees its compute. The end of a withdrawn start is no
    /// event.
    pub async fn released(&self) -> Result<bool, Error> {
        self.on_row(|mut row, view| {
            if let Some(moving) = view.rows.get(&MOVES, row.id)? {
                // Its compute is claimed on both nodes until it is on one of them.
                let stopped = MoveRow {
                    stopped: true,
                    ..moving
                };
                return Ok(Changes::none().put(&MOVES, row.id, stopped));
            }
            // A restore or a change of its volumes is left to do.
            let restores = view.rows.get(&RESTORES, row.id)?.is_some();
            row.progress = if restores || has_changes(view.rows, row.id)? {
                Progress::Pending
            } else {
                Progress::Settled
            };
            let changes = release(&row, view)?;
            let Some(start) = view.rows.get(&STARTS, row.id)? else {
                return Ok(changes.record(row, view.now, EventKind::Released));
            };
            let changes = changes.remove(&STARTS, row.id);
            Ok(if start.claimed {
                changes.put_instance(row)
            } else {
                changes.record(row, view.now, EventKind::Released)
            })
        })
        .await
    }

    /// The instance was up and has ended by itself.
    pub async fn died(&self, why: String) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            row.intend(Intent::Stop, None);
            row.resize = None;
            // A change of its volumes is still to be followed or refused.
            if !has_changes(view.rows, row.id)? {
                row.progress = Progress::Settled;
            }
            let changes = release(&row, view)?;
            Ok(changes.record(row, view.now, EventKind::Died(why.clone())))
        })
        .await
    }

    /// The node no longer follows the intent: there is work again.
    pub async fn unsettled(&self, deadline: Option<Timestamp>) -> Result<bool, Error> {
        self.on_row(move |mut row, _| {
            row.progress = Progress::Pending;
            row.deadline = deadline;
            Ok(Changes::none().put_instance(row))
        })
        .await
    }

    /// The node has taken the new size.
    pub async fn resized(&self) -> Result<bool, Error> {
        self.on_row(|mut row, view| {
            let Some(resize) = row.resize.take() else {
                return Ok(Changes::none());
            };
            row.size = resize.size;
            row.name = resize.name.unwrap_or(row.name);
            row.progress = Progress::Settled;
            let changes = claim_of_size(&row, view)?.with(labels::assign(view.rows, &row)?);
            Ok(changes.record(row, view.now, EventKind::Resized))
        })
        .await
    }

    /// The node did not take the new size; the old one holds. If the node did not respond, the larger
    /// claim stays until it has taken the old size again.
    pub async fn resize_refused(&self, why: EventKind) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            row.resize = None;
            let changes = if matches!(why, EventKind::ResizeRefused { field: None, .. }) {
                Changes::none()
            } else {
                row.progress = Progress::Settled;
                claim_of_size(&row, view)?
            };
            Ok(changes.record(row, view.now, why.clone()))
        })
        .await
    }

    /// The new node of a move has a complete copy.
    pub async fn copied(&self) -> Result<bool, Error> {
        self.on_row(|row, view| {
            let copies = copies::copies(view.rows, row.id)?;
            let copies = CopyRow {
                complete: copies.making.is_some(),
                ..copies
            };
            Ok(copies::put(Changes::none(), row.id, copies))
        })
        .await
    }

    /// The new node of a move has the instance. If it ran, it must be reachable by the deadline.
    pub async fn arrived(&self, deadline: Timestamp) -> Result<bool, Error> {
        self.on_row(move |row, view| match view.rows.get(&MOVES, row.id)? {
            Some(moving) => moves::arrive(row, &moving, view, deadline),
            None => Ok(Changes::none()),
        })
        .await
    }

    /// The instance cannot move, and stays on its node.
    pub async fn move_failed(&self, why: String, deadline: Timestamp) -> Result<bool, Error> {
        self.on_row(move |row, view| match view.rows.get(&MOVES, row.id)? {
            Some(moving) => moves::abandon(row, &moving, view, deadline, why.clone()),
            None => Ok(Changes::none()),
        })
        .await
    }

    /// The node no longer has the instance, which frees everything it held. Its events and its ledger
    /// stay.
    pub async fn purged(&self) -> Result<bool, Error> {
        self.on_row(|row, view| {
            Ok(Changes::none()
                .event(&row, view.now, EventKind::Purged)
                .drop_instance(row.id))
        })
        .await
    }
}

/// Notes the host key of an instance. Its user learns of a change.
fn note_key(
    changes: Changes,
    id: InstanceId,
    key: &HostKey,
    view: &View<'_>,
) -> Result<Changes, Error> {
    let before = known_keys(view.rows, id)?;
    if before.contains(key) {
        return Ok(changes);
    }
    let changes = if before.is_empty() {
        changes
    } else {
        let row = changes.instance()?;
        let HostKey {
            algorithm,
            fingerprint,
            ..
        } = key;
        let what = EventKind::HostKeyChanged(format!("{algorithm} {fingerprint}"));
        changes.record(row, view.now, what)
    };
    Ok(changes.put(&HOST_KEYS, id, vec![key.clone()]))
}

/// Sets the claim to the row's size.
fn claim_of_size(row: &Instance, view: &View<'_>) -> Result<Changes, Error> {
    let changes = Changes::none();
    match view.rows.claim(row.id)? {
        Some(mut claim) if claim.size != row.size => {
            claim.size = row.size;
            Ok(changes.put_claim(row.id, claim))
        }
        _ => Ok(changes),
    }
}

/// Releases the compute of the claim.
fn release(row: &Instance, view: &View<'_>) -> Result<Changes, Error> {
    let changes = Changes::none();
    match view.rows.claim(row.id)? {
        Some(mut claim) => {
            claim.compute = false;
            claim.size = row.size;
            Ok(changes.put_claim(row.id, claim))
        }
        None => Ok(changes),
    }
}
