//! The content of a new volume that comes from a backup: it is opened and offered to the engine of the volume's node,
//! which takes it while the volume is made.

use super::receive::MAX_BROKE_OFF;
use crate::App;
use crate::content::{ContentFailure, IncomingContent};
use std::sync::Arc;
use std::time::Duration;
use wharf_domain::backup::ContentOf;
use wharf_domain::driver::{NewVolume, PluginError, VolumeReport, VolumeState};
use wharf_domain::volume::Volume;
use wharf_plugin::NodeDriver;

/// The pause until the content is opened again.
const AGAIN: Duration = Duration::from_secs(1);

/// The content of one volume.
#[derive(Default)]
pub struct Incoming {
    content: Option<IncomingContent>,
    /// The node was seen without an earlier form of the volume, such as that from before its loss.
    is_new: bool,
    broke_off: u32,
}

impl Incoming {
    /// Asks the node to make a volume, with its content if it has any.
    pub async fn make(
        &mut self,
        app: &App,
        driver: &NodeDriver,
        row: &Volume,
        images: &[String],
    ) -> Result<VolumeReport, PluginError> {
        // One that was made has its content, and its users have written to it.
        let of = row.of.content.as_ref().filter(|_| !row.made);
        if of.is_some() && !self.is_new {
            let left = driver.unmake_volume(row.id).await?;
            if left.state != VolumeState::Absent {
                let why = "an earlier form of it is being removed";
                return Ok(waiting(why));
            }
            self.is_new = true;
        }
        if let Some(of) = of
            && self.content.is_none()
        {
            match self.open(app, row, of).await {
                Ok(true) => {}
                Ok(false) => return Ok(waiting("it waits for other contents to come")),
                Err(failure) => return Ok(self.without(failure)),
            }
        }
        let volume = NewVolume {
            id: row.id,
            size_gib: row.size_gib,
            fetched: of.is_some(),
        };
        let made = driver.make_volume(&volume, images).await;
        let failure = self.content.as_ref().and_then(IncomingContent::failure);
        match (&made, failure) {
            (Ok(report), _) if report.state == VolumeState::Ready(()) => self.content = None,
            (_, Some(failure)) => return Ok(self.without(failure)),
            (Ok(_) | Err(PluginError::Busy), None) => {}
            // Without the offer, a transfer took it, and the engine has lost what came.
            (Err(PluginError::RetryLater(_)), None) if self.is_offered() => {}
            (Err(_), None) => self.content = None,
        }
        made
    }

    fn is_offered(&self) -> bool {
        self.content
            .as_ref()
            .is_some_and(IncomingContent::is_offered)
    }

    /// Offers the content, unless others take all places.
    async fn open(
        &mut self,
        app: &App,
        row: &Volume,
        of: &ContentOf,
    ) -> Result<bool, ContentFailure> {
        let place = Arc::clone(&app.content_places).try_acquire_owned();
        let (Some(store), Ok(place)) = (app.content_store(), place) else {
            return Ok(false);
        };
        let opened = store.open(row.owner, of, row.size_gib).await?;
        let offers = app.plugins.offers();
        let offered = IncomingContent::offer(row.id.into(), &of.engine_kind, opened, offers, place);
        self.content = Some(offered.map_err(|error| ContentFailure {
            words: error.to_string(),
            is_final: false,
        })?);
        Ok(true)
    }

    /// The state of the volume, whose content has broken off.
    fn without(&mut self, failure: ContentFailure) -> VolumeReport {
        self.content = None;
        self.broke_off += 1;
        if failure.is_final || self.broke_off > MAX_BROKE_OFF {
            return VolumeReport {
                state: VolumeState::Failed(failure.words),
                again: None,
            };
        }
        waiting(&failure.words)
    }
}

fn waiting(why: &str) -> VolumeReport {
    VolumeReport {
        state: VolumeState::Making(why.to_owned()),
        again: Some(AGAIN),
    }
}
