//! Observations as writes. Each is for one generation of the row; a newer one makes it stale, and
//! nothing is written.

use wharf_db::{Change, Changes, Db, Read};
use wharf_domain::error::Error;
use wharf_domain::event::{Event, What};
use wharf_domain::ids::{Generation, InstanceId};
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::time::Timestamp;

/// Writes for one generation of one instance.
#[derive(Clone)]
pub struct Apply {
    pub db: Db,
    pub id: InstanceId,
    pub generation: Generation,
}

impl Apply {
    /// Writes the changes of `decide`, if the row still has this generation. False if it does not.
    async fn on_row(
        &self,
        decide: impl Fn(Instance, &wharf_db::View<'_>) -> Result<Changes, Error> + Send + 'static,
    ) -> Result<bool, Error> {
        let (id, generation) = (self.id, self.generation);
        self.db
            .write(move |view| match view.rows.instance(id)? {
                Some(row) if row.generation == generation => Ok((true, decide(row, view)?)),
                _ => Ok((false, Changes::none())),
            })
            .await
    }

    /// The instance is reachable and has its size.
    pub async fn up(&self) -> Result<bool, Error> {
        self.on_row(|mut row, view| {
            row.provisioned = true;
            row.progress = Progress::Settled;
            row.deadline = None;
            let changes = claim_of_size(&row, view)?;
            Ok(changes.record(row, view.now, What::Ready))
        })
        .await
    }

    /// The instance cannot be created. Its remains are stopped next, which frees its compute.
    pub async fn failed(&self, why: String) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            row.failed = true;
            row.intend(Intent::Stop, None);
            Ok(Changes::none().record(row, view.now, What::Failed(why.clone())))
        })
        .await
    }

    /// A stopped instance could not be started. It stays stopped, with its data.
    pub async fn restart_failed(&self, why: What) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            row.intend(Intent::Stop, None);
            row.resize = None;
            Ok(Changes::none().record(row, view.now, why.clone()))
        })
        .await
    }

    /// A stopped instance keeps its disk, of this size if it is known, instead of a larger one. It stays
    /// stopped, so that its user learns of it before the instance costs anything.
    pub async fn not_grown(&self, disk_size_gib: Option<u32>, why: What) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            let kept = disk_size_gib.filter(|kept| *kept > 0);
            let disk = &mut row.size.disk_size_gib;
            *disk = kept.map_or(*disk, |kept| kept.min(*disk));
            row.intend(Intent::Stop, None);
            Ok(Changes::none().record(row, view.now, why.clone()))
        })
        .await
    }

    /// The node has stopped the instance, which frees its compute.
    pub async fn released(&self) -> Result<bool, Error> {
        self.on_row(|mut row, view| {
            row.progress = Progress::Settled;
            let changes = release(&row, view)?;
            Ok(changes.record(row, view.now, What::Released))
        })
        .await
    }

    /// The instance was up and has ended by itself.
    pub async fn died(&self, why: String) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            row.intend(Intent::Stop, None);
            row.resize = None;
            row.progress = Progress::Settled;
            let changes = release(&row, view)?;
            Ok(changes.record(row, view.now, What::Died(why.clone())))
        })
        .await
    }

    /// The node no longer follows the intent: there is work again.
    pub async fn pending(&self, deadline: Option<Timestamp>) -> Result<bool, Error> {
        self.on_row(move |mut row, _| {
            row.progress = Progress::Pending;
            row.deadline = deadline;
            Ok(Changes::none().with(Change::PutInstance(Box::new(row))))
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
            let changes = claim_of_size(&row, view)?;
            Ok(changes.record(row, view.now, What::Resized))
        })
        .await
    }

    /// The node did not take the new size; the old one holds. If the node did not respond, the larger
    /// claim stays until it has taken the old size again.
    pub async fn resize_refused(&self, why: What) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            row.resize = None;
            let changes = if matches!(why, What::ResizeRefused { field: None, .. }) {
                Changes::none()
            } else {
                row.progress = Progress::Settled;
                claim_of_size(&row, view)?
            };
            Ok(changes.record(row, view.now, why.clone()))
        })
        .await
    }

    /// The node no longer has the instance, which frees everything it held. Its events and its ledger
    /// stay.
    pub async fn purged(&self) -> Result<bool, Error> {
        self.on_row(|row, view| {
            let event = Event {
                at: view.now.max(row.last_event_at),
                instance: row.id,
                what: What::Purged,
                state: row.state(),
                size: row.size,
            };
            Ok(Changes::none()
                .with(Change::Event(row.events, event))
                .with(Change::DropInstance(row.id)))
        })
        .await
    }
}

/// Sets the claim to the row's size.
fn claim_of_size(row: &Instance, view: &wharf_db::View<'_>) -> Result<Changes, Error> {
    let changes = Changes::none();
    match view.rows.claim(row.id)? {
        Some(mut claim) if claim.size != row.size => {
            claim.size = row.size;
            Ok(changes.with(Change::PutClaim(row.id, claim)))
        }
        _ => Ok(changes),
    }
}

/// Releases the compute of the claim.
fn release(row: &Instance, view: &wharf_db::View<'_>) -> Result<Changes, Error> {
    let changes = Changes::none();
    match view.rows.claim(row.id)? {
        Some(mut claim) => {
            claim.compute = false;
            claim.size = row.size;
            Ok(changes.with(Change::PutClaim(row.id, claim)))
        }
        None => Ok(changes),
    }
}
