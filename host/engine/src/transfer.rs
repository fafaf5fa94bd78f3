//! Transfers: the content of one container goes into another, on the same engine or on that of another node. It
//! passes through the host in pieces; no guest, file or image stores it.

use super::changes::ChangeListReader;
use super::message::{EngineError, EngineResponse};
use super::outgoing::{Outgoing, ProgressSink};
use super::tar_pipe::TransferProgress;
use super::tar_stream::{Malformed, Rewrite};
use super::transport::Transport;
use http::Method;
use std::sync::Arc;
use std::time::Duration;
use wharf_requests::SourceTargets;

/// Timeout of a transfer without progress. The engine may have to write everything to disk before it
/// responds.
const STALLED: Duration = Duration::from_secs(5 * 60);

/// The status of [`immovable`].
const TOO_LARGE: u16 = 413;

/// The end of a transfer that is read.
#[derive(Debug)]
pub struct TransferSource {
    pub transport: Transport,
    pub targets: SourceTargets,
}

/// The end of a transfer that is written.
#[derive(Debug)]
pub struct TransferTarget {
    pub transport: Transport,
    /// Of the PUT.
    pub write: String,
    /// Paths with mounts, whose content stays.
    pub kept: Vec<String>,
}

/// Runs a transfer. The result is the response of the writing request, or the first unsuccessful one
/// before it.
pub async fn carry(
    from: TransferSource,
    to: TransferTarget,
    progress: Arc<dyn ProgressSink>,
) -> Result<EngineResponse, EngineError> {
    let changes = ChangeListReader::default();
    let answer = from
        .transport
        .stream(get(from.targets.changes), &changes)
        .await?;
    if !answer.is_success() {
        return Ok(answer);
    }
    let gone = match changes.gone() {
        Ok(gone) => gone,
        Err(malformed) => return Ok(immovable(malformed)),
    };
    let rewrite = Rewrite {
        gone,
        kept: to.kept,
    };
    let transferred = Arc::new(TransferProgress::default());
    let write = Outgoing {
        method: Method::PUT,
        ..get(to.write)
    };
    let piped = from.transport.pipe(
        get(from.targets.read),
        &to.transport,
        write,
        &rewrite,
        Arc::clone(&transferred),
        progress,
    );
    let answer = tokio::select! {
        answer = piped => answer,
        () = stalled(&transferred) => return Err(EngineError::Timeout),
    };
    if let Some(malformed) = transferred.malformed().filter(|m| m.is_of_content()) {
        return Ok(immovable(malformed));
    }
    let answer = answer?;
    // Engines accept an archive that ends early between two entries.
    if answer.is_success() && !transferred.is_whole() {
        return Err(EngineError::Unreachable("the archive ended early".into()));
    }
    Ok(answer)
}

/// The host's own answer to content that exceeds its bounds, as `engine.wit` says.
fn immovable(why: Malformed) -> EngineResponse {
    let message = format!("this content cannot move: {why}");
    EngineResponse {
        status: TOO_LARGE,
        headers: Vec::new(),
        body: serde_json::json!({ "message": message }).to_string().into(),
    }
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
