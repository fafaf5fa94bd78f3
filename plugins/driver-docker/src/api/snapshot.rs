//! Requests about snapshots.

use super::model::{Event, Image, ImageSummary, Layer};
use super::{Api, Reply, accepted};
use chrono::DateTime;
use wharf_guest::{Error, Job, NamedRequest, log};

/// Podman does not answer requests about images while it copies one.
const BUSY_MS: u32 = 60_000;
/// Delay after an answer without a date.
const NO_DATE_MS: u32 = 5_000;
/// The number of events of any kind that dockerd remembers. A shorter list lacks none since its start.
const REMEMBERED: usize = 256;
/// No copy takes a day. An operator's own pause looks like one.
const LONGEST_COPY_S: i64 = 24 * 60 * 60;

impl Api<'_> {
    /// Reads the snapshot of the call.
    pub fn snapshot(&self) -> Result<Reply<Image>, Error> {
        self.read(&NamedRequest::new("read-snapshot").timeout_ms(BUSY_MS))
    }

    /// Reads the layers of the snapshot.
    pub fn snapshot_layers(&self) -> Result<Reply<Vec<Layer>>, Error> {
        self.read(&NamedRequest::new("read-snapshot-history").timeout_ms(BUSY_MS))
    }

    /// Lists images with the label of this installation.
    pub fn own_images(&self) -> Result<Reply<Vec<ImageSummary>>, Error> {
        self.read(&NamedRequest::new("list-snapshots").timeout_ms(BUSY_MS))
    }

    /// Tells the host the size of the image below a container, by the id of its image. If that is a snapshot,
    /// the result is the size of the image below the snapshot.
    pub fn measure_below(&self, image: &str) -> Result<Reply<Option<u64>>, Error> {
        let about = |request| {
            NamedRequest::new(request)
                .with("image", image.trim_start_matches("sha256:"))
                .timeout_ms(BUSY_MS)
        };
        let read: Reply<Image> = self.read(&about("read-own-image"))?;
        match read.map(|image| image.image_bytes()) {
            Ok(None) => Ok(self.send(&about("read-own-history"))?.map(|()| None)),
            known => Ok(known),
        }
    }

    /// Reads the copy of a stopped container.
    pub fn stopped_copy(&self) -> Result<Reply<Image>, Error> {
        self.read(&NamedRequest::new("read-stopped").timeout_ms(BUSY_MS))
    }

    /// Names the copy of a stopped container as the snapshot.
    pub fn name_stopped_copy(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("name-stopped").timeout_ms(BUSY_MS))
    }

    /// Removes the copy of a stopped container, or its name.
    pub fn drop_stopped_copy(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("drop-stopped").timeout_ms(BUSY_MS))
    }

    /// Removes copies for the snapshot that have lost their name.
    pub fn prune_copies(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("prune-copies").timeout_ms(BUSY_MS))
    }

    /// Starts the copy of a container, or reports its state: none while it is in progress. That of a stopped one has
    /// another name, and the time of its last start.
    pub fn commit(
        &self,
        container: &str,
        last_start: Option<&str>,
    ) -> Result<Option<Reply<()>>, Error> {
        let request = NamedRequest::new("commit").with("container", container);
        let request = request.with_some("last-start", last_start);
        Ok(match request.job(self.engine)? {
            Job::Running(_) => None,
            Job::Done(answer) => Some(accepted(answer).map(drop)),
        })
    }

    /// Whether an engine may be copying a container that stands still: the last that it remembers of the
    /// container's pauses is that it began one. The answer is `in_doubt` if it may have forgotten that.
    ///
    /// # Errors
    /// When the engine does not tell its time.
    pub fn may_copy(&self, container: &str, in_doubt: bool) -> Result<Reply<bool>, Error> {
        let answer = match accepted(NamedRequest::new("ping").send(self.engine)?) {
            Ok(answer) => answer,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let date = answer.header("Date").map(DateTime::parse_from_rfc2822);
        let Some(Ok(now)) = date else {
            log!(Warn, "the engine's answers have no date");
            return Err(Error::RetryLater(NO_DATE_MS));
        };
        let now = now.timestamp().max(0);
        // The date has no parts of a second, and the engine passes over later events. It waits until then.
        let until = now.saturating_add(1);
        let is_recent = |event: &Event| {
            let time = event.time.unwrap_or(now);
            now.saturating_sub(time) < LONGEST_COPY_S
        };
        let pauses = NamedRequest::new("read-pauses").with("container", container);
        let pauses = match self.events(&pauses.with("until", until))? {
            Ok(pauses) => pauses,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if let Some(last) = pauses.last() {
            return Ok(Ok(last.action == "pause" && is_recent(last)));
        }
        if !in_doubt {
            return Ok(Ok(false));
        }
        let all = self.events(&NamedRequest::new("read-events").with("until", until))?;
        Ok(all.map(|all| all.len() >= REMEMBERED && all.first().is_some_and(is_recent)))
    }

    fn events(&self, request: &NamedRequest) -> Result<Reply<Vec<Event>>, Error> {
        let answer = match accepted(request.send(self.engine)?) {
            Ok(answer) => answer,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let events = serde_json::Deserializer::from_slice(&answer.body).into_iter();
        let events = events.collect::<Result<_, _>>();
        events
            .map(Ok)
            .map_err(|problem| Error::Other(format!("the engine's events: {problem}")))
    }

    /// Lets a container go on.
    pub fn unpause(&self, container: &str) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("unpause").with("container", container))
    }

    /// Removes the snapshot of the call.
    pub fn drop_snapshot(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("drop-snapshot").timeout_ms(BUSY_MS))
    }
}
