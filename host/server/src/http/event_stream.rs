//! A stream of server-sent events: rows are read when the client has room for them, so that a stream
//! holds one batch at most.

use super::budget::{Budget, BudgetBounds, BudgetOwner, Hold};
use super::interface::Interface;
use super::listen::OpenGauge;
use super::respond::HttpError;
use crate::api::events::{changed, ended, messages};
use bytes::Bytes;
use prometheus_client::metrics::gauge::Gauge;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use wharf_config::LimitsConfig;
use wharf_db::TopicCounts;
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_ground::caller::Caller;

/// Events in one batch.
const BATCH: usize = 100;

/// The longest time without a message. Proxies close connections that are silent for a minute.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The longest time until a stream of an expired key or session ends.
const CHECK: Duration = Duration::from_secs(2);

/// The largest number of open streams: half of the connections that the default of their limit permits.
pub(super) const MAX_STREAMS: u64 = 5_000;

/// The permits of all streams.
pub(super) struct Streams {
    places: Arc<Budget>,
    most_of_user: usize,
    heartbeat: Duration,
    open: Gauge,
}

impl Streams {
    pub(super) fn new(all: u64, limits: &LimitsConfig, open: Gauge) -> Self {
        Self {
            places: Budget::new(BudgetBounds {
                all,
                user: limits.event_streams_per_user as u64,
                ..BudgetBounds::NONE
            }),
            most_of_user: limits.event_streams_per_user,
            // A stream without progress for the write timeout is ended.
            heartbeat: HEARTBEAT.min(Duration::from_millis(limits.write_timeout_ms) / 2),
            open,
        }
    }

    /// Takes a permit for a stream of a user.
    pub(super) fn enter(&self, user: UserId) -> Result<StreamPermit, HttpError> {
        match self.places.hold(BudgetOwner::User(user), 1) {
            Some(held) => Ok(StreamPermit {
                _held: held,
                _open: OpenGauge::new(self.open.clone()),
                heartbeat: self.heartbeat,
            }),
            None if self.places.is_spent() => Err(HttpError::Busy),
            None => Err(HttpError::TooManyStreams(self.most_of_user)),
        }
    }
}

/// The permit of one stream.
pub(super) struct StreamPermit {
    _held: Hold,
    _open: OpenGauge,
    heartbeat: Duration,
}

/// A stream of events.
pub(super) struct OpenEventStream {
    pub(super) interface: Arc<Interface>,
    pub(super) caller: Caller,
    pub(super) instance: Option<InstanceId>,
    /// The number of the last event that was sent.
    pub(super) after: u64,
    /// The message that the stream begins with.
    pub(super) first: Option<Bytes>,
    pub(super) changed: watch::Receiver<()>,
    pub(super) stopped: watch::Receiver<bool>,
    /// Changes when a key or session ends.
    pub(super) access: watch::Receiver<()>,
    /// The other lists, for a client that follows them too.
    pub(super) others: Option<Others>,
    pub(super) permit: StreamPermit,
}

/// The lists of a user that change without events.
pub(super) struct Others {
    counts: watch::Receiver<TopicCounts>,
    sent: TopicCounts,
    is_over: bool,
}

impl Others {
    pub(super) fn new(counts: watch::Receiver<TopicCounts>) -> Self {
        let sent = counts.borrow().clone();
        Self {
            counts,
            sent,
            is_over: false,
        }
    }

    /// The message about the lists that have changed since the last one.
    fn changed(&mut self) -> Option<Bytes> {
        let counts = self.counts.borrow_and_update().clone();
        let message = (counts != self.sent).then(|| changed(&self.sent, &counts));
        self.sent = counts;
        message
    }
}

impl OpenEventStream {
    /// Returns the next messages; none when the stream ends: at a stop of the server, or with its key
    /// or session.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let interface = Arc::clone(&self.interface);
        let (accounts, actor) = (interface.api.accounts(), self.caller.origin().actor);
        let heartbeat = Instant::now() + self.permit.heartbeat;
        loop {
            // Marked before the state is read, or a change in between would be lost.
            self.access.mark_unchanged();
            if *self.stopped.borrow() {
                return None;
            }
            if !accounts.is_valid(&actor) {
                let others = self.others.as_mut()?;
                let is_told = std::mem::replace(&mut others.is_over, true);
                return (!is_told).then(|| ended(accounts.why_invalid(&self.caller)));
            }
            self.changed.mark_unchanged();
            match self.read() {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Some(bytes),
                Err(error) => {
                    let request_id = &*self.caller.request_id;
                    tracing::error!(request_id, error = %error.chain(), "an event stream ended");
                    return None;
                }
            }
            if let Some(bytes) = self.others.as_mut().and_then(Others::changed) {
                return Some(bytes);
            }
            let now = Instant::now();
            if now >= heartbeat {
                return Some(Bytes::from_static(b": heartbeat\n\n"));
            }
            let stopped = async { drop(self.stopped.wait_for(|stopped| *stopped).await) };
            let others = async {
                match &mut self.others {
                    Some(others) => drop(others.counts.changed().await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.changed.changed() => {}
                _ = self.access.changed() => {}
                () = others => {}
                () = stopped => {}
                () = sleep_until(heartbeat.min(now + CHECK)) => {}
            }
        }
    }

    fn read(&mut self) -> Result<Bytes, Error> {
        let app = self.interface.api.app();
        let found = app.events(&self.caller, self.instance, Some(self.after), BATCH)?;
        self.after = match found.events.last() {
            Some(event) if found.events.len() == BATCH => event.id,
            // Events of other instances are passed over.
            _ => found.last,
        };
        messages(&found)
    }
}

#[cfg(test)]
mod tests {
    use super::{Streams, UserId};
    use crate::http::respond::HttpError;
    use prometheus_client::metrics::gauge::Gauge;
    use wharf_config::LimitsConfig;

    #[test]
    fn places_are_bounded_and_come_back() {
        let limits = LimitsConfig {
            event_streams_per_user: 2,
            ..LimitsConfig::default()
        };
        let open = Gauge::default();
        let streams = Streams::new(3, &limits, open.clone());
        let (ann, bob) = (UserId(1), UserId(2));
        let first = streams.enter(ann).ok();
        let _second = streams.enter(ann).ok();
        let refused = streams.enter(ann).err();
        assert_eq!(refused, Some(HttpError::TooManyStreams(2)));
        let _third = streams.enter(bob).ok();
        assert_eq!(streams.enter(bob).err(), Some(HttpError::Busy));
        assert_eq!(open.get(), 3);
        drop(first);
        assert_eq!(open.get(), 2);
        assert!(streams.enter(bob).is_ok());
    }
}
