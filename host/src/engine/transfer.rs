//! Everything that is in one container, put into another of the same engine. It passes through the
//! host in pieces and is kept nowhere: not in a guest, a file or an image.

use super::message::{EngineError, Response, Transfer};
use super::refill::Gauge;
use super::transport::{Outgoing, Progress, Transport};
use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing::warn;

/// Longest list of changes that is read, bytes: about a million files.
const MAX_CHANGES: usize = 128 << 20;
/// A transfer that does not move for so long has failed. The engine may have to write out what it
/// was sent before it answers.
const STALLED: Duration = Duration::from_secs(5 * 60);

/// What an engine calls "deleted" among changes.
const DELETED: u8 = 2;

/// Carries a transfer out. The answer is that of the request that wrote, or the first one before it
/// that was no success.
pub async fn carry(
    transport: Transport,
    transfer: Transfer,
    progress: Arc<dyn Progress>,
) -> Result<Response, EngineError> {
    let listed = Bounded::default();
    let answer = transport.stream(get(transfer.changes), &listed).await?;
    if !is_success(&answer) {
        return Ok(answer);
    }
    let gone = gone_at_the_top(&answer.body);
    let gauge = Arc::new(Gauge::default());
    let write = Outgoing {
        method: Method::PUT,
        ..get(transfer.write)
    };
    let piped = transport.pipe(
        get(transfer.read),
        write,
        &gone,
        Arc::clone(&gauge),
        progress,
    );
    let answer = tokio::select! {
        answer = piped => answer?,
        () = stalled(&gauge) => return Err(EngineError::Timeout),
    };
    // An engine takes an archive for whole that ends between two entries.
    if is_success(&answer) && !gauge.is_whole() {
        return Err(EngineError::Unreachable("the archive ended early".into()));
    }
    Ok(answer)
}

fn is_success(answer: &Response) -> bool {
    (200..300).contains(&answer.status)
}

fn get(path: String) -> Outgoing {
    Outgoing {
        method: Method::GET,
        path,
        headers: Vec::new(),
        body: None,
    }
}

async fn stalled(gauge: &Gauge) {
    loop {
        let before = gauge.bytes();
        tokio::time::sleep(STALLED).await;
        if gauge.bytes() == before {
            return;
        }
    }
}

/// What was deleted of the image's own entries at the top. All others are replaced as a whole; these
/// do not come up in the archive.
fn gone_at_the_top(changes: &[u8]) -> Vec<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Change<'a> {
        #[serde(borrow)]
        path: Cow<'a, str>,
        kind: u8,
    }
    match serde_json::from_slice::<Option<Vec<Change<'_>>>>(changes) {
        Ok(changes) => changes
            .unwrap_or_default()
            .iter()
            .filter(|change| change.kind == DELETED)
            .filter_map(|change| change.path.strip_prefix('/'))
            .filter(|name| !name.is_empty() && !name.contains('/'))
            .map(ToOwned::to_owned)
            .collect(),
        Err(error) => {
            warn!(%error, bytes = changes.len(), "what was deleted at the top of a container is not known, and comes back with its larger disk");
            Vec::new()
        }
    }
}

/// The beginning of an answer.
#[derive(Debug, Default)]
struct Bounded(Mutex<Vec<u8>>);

impl Progress for Bounded {
    fn chunk(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_CHANGES.saturating_sub(kept.len());
        kept.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn kept(&self) -> Bytes {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::gone_at_the_top;

    #[test]
    fn only_what_is_gone_at_the_top_is_named() {
        let changes = br#"[{"Path":"/etc","Kind":0},{"Path":"/etc/motd","Kind":2},
            {"Path":"/opt","Kind":2},{"Path":"/new","Kind":1},{"Path":"/a\u00e9","Kind":2}]"#;
        assert_eq!(gone_at_the_top(changes), ["opt", "aé"]);
        assert!(gone_at_the_top(b"null").is_empty());
        assert!(gone_at_the_top(b"[{\"Path\":\"/o").is_empty());
    }
}
