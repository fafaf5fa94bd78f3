//! Requests about snapshots.

use super::model::{Event, Image, ImageSummary, Layer};
use super::{Api, Reply, accepted};
use chrono::DateTime;
use wharf_guest::{Call, Error, Job};

/// Podman does not answer requests about images while it copies one.
const BUSY_MS: u32 = 60_000;

impl Api<'_> {
    /// Reads the snapshot of the call.
    pub fn snapshot(&self) -> Result<Reply<Image>, Error> {
        self.read(&Call::named("read-snapshot").timeout_ms(BUSY_MS))
    }

    /// Reads the layers of the snapshot.
    pub fn snapshot_layers(&self) -> Result<Reply<Vec<Layer>>, Error> {
        self.read(&Call::named("read-snapshot-history").timeout_ms(BUSY_MS))
    }

    /// Lists images with the label of this installation.
    pub fn own_images(&self) -> Result<Reply<Vec<ImageSummary>>, Error> {
        self.read(&Call::named("list-snapshots").timeout_ms(BUSY_MS))
    }

    /// Tells the host the size of the image below a container, by the id of its image. If that is a snapshot,
    /// the result is the size of the image below the snapshot.
    pub fn measure_below(&self, image: &str) -> Result<Reply<Option<u64>>, Error> {
        let about = |request| {
            Call::named(request)
                .with("image", image.trim_start_matches("sha256:"))
                .timeout_ms(BUSY_MS)
        };
        let read: Reply<Image> = self.read(&about("read-own-image"))?;
        match read.map(|image| image.image_bytes()) {
            Ok(None) => Ok(self.send(&about("read-own-history"))?.map(|()| None)),
            known => Ok(known),
        }
    }

    /// Starts the copy of a container, or reports its state: none while it is in progress.
    pub fn commit(&self, container: &str) -> Result<Option<Reply<()>>, Error> {
        let call = Call::named("commit").with("container", container);
        Ok(match call.job(self.engine)? {
            Job::Running(_) => None,
            Job::Done(answer) => Some(accepted(answer).map(drop)),
        })
    }

    /// Whether the last that an engine remembers of a container's pauses is that it began one.
    pub fn holds(&self, container: &str) -> Result<Reply<bool>, Error> {
        let answer = match accepted(Call::named("ping").send(self.engine)?) {
            Ok(answer) => answer,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let date = answer.header("Date").unwrap_or_default();
        let Ok(now) = DateTime::parse_from_rfc2822(date) else {
            return Ok(Ok(false));
        };
        let events = Call::named("read-pauses")
            .with("container", container)
            .with("until", now.timestamp().max(0));
        let events = accepted(events.send(self.engine)?);
        Ok(events.map(|events| {
            let lines = events.body.split(|byte| *byte == b'\n');
            let mut actions = lines.filter_map(|line| serde_json::from_slice::<Event>(line).ok());
            actions
                .next_back()
                .is_some_and(|event| event.action == "pause")
        }))
    }

    /// Lets a container go on.
    pub fn unpause(&self, container: &str) -> Result<Reply<()>, Error> {
        self.send(&Call::named("unpause").with("container", container))
    }

    /// Removes the snapshot of the call.
    pub fn drop_snapshot(&self) -> Result<Reply<()>, Error> {
        self.send(&Call::named("drop-snapshot").timeout_ms(BUSY_MS))
    }
}
