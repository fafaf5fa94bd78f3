//! Transfers: the content of one container goes into another on the same engine. It passes through the
//! host in pieces; no guest, file or image stores it.

use super::message::{EngineError, Response, Transfer};
use super::outgoing::{Outgoing, Progress};
use super::tar_pipe::TransferProgress;
use super::transport::Transport;
use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing::warn;

/// Longest list of changes that is read, bytes: about a million files.
const MAX_CHANGES: usize = 128 << 20;
/// Timeout of a transfer without progress. The engine may have to write everything to disk before it
/// responds.
const STALLED: Duration = Duration::from_secs(5 * 60);

/// The kind of a deletion in a list of changes.
const DELETED: u8 = 2;

/// Runs a transfer. The result is the response of the writing request, or the first unsuccessful one
/// before it.
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
    let transferred = Arc::new(TransferProgress::default());
    let write = Outgoing {
        method: Method::PUT,
        ..get(transfer.write)
    };
    let piped = transport.pipe(
        get(transfer.read),
        write,
        &gone,
        Arc::clone(&transferred),
        progress,
    );
    let answer = tokio::select! {
        answer = piped => answer?,
        () = stalled(&transferred) => return Err(EngineError::Timeout),
    };
    // Engines accept an archive that ends early between two entries.
    if is_success(&answer) && !transferred.is_whole() {
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

async fn stalled(transferred: &TransferProgress) {
    loop {
        let before = transferred.bytes();
        tokio::time::sleep(STALLED).await;
        if transferred.bytes() == before {
            return;
        }
    }
}

/// Top-level entries of the image that were deleted. The archive replaces all other entries, but does
/// not mention these.
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
            warn!(%error, bytes = changes.len(), "deleted top-level entries of a container are unknown and return with its larger disk");
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
