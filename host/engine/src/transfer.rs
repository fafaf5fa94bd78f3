//! Transfers: the content of one container goes into another on the same engine. It passes through the
//! host in pieces; no guest, file or image stores it.

use super::changes::ChangeListReader;
use super::message::{EngineError, EngineResponse};
use super::outgoing::{Outgoing, ProgressSink};
use super::tar_pipe::TransferProgress;
use super::tar_stream::{Malformed, Rewrite};
use super::transport::Transport;
use http::Method;
use std::sync::Arc;
use std::time::Duration;
use wharf_requests::Targets;

/// Timeout of a transfer without progress. The engine may have to write everything to disk before it
/// responds.
const STALLED: Duration = Duration::from_secs(5 * 60);

/// The status of [`immovable`].
const TOO_LARGE: u16 = 413;

/// Runs a transfer. The result is the response of the writing request, or the first unsuccessful one
/// before it.
pub async fn carry(
    transport: Transport,
    transfer: Targets,
    progress: Arc<dyn ProgressSink>,
) -> Result<EngineResponse, EngineError> {
    let changes = ChangeListReader::default();
    let answer = transport.stream(get(transfer.changes), &changes).await?;
    if !is_success(&answer) {
        return Ok(answer);
    }
    let gone = match changes.gone() {
        Ok(gone) => gone,
        Err(malformed) => return Ok(immovable(malformed)),
    };
    let rewrite = Rewrite {
        gone,
        kept: transfer.kept,
    };
    let transferred = Arc::new(TransferProgress::default());
    let write = Outgoing {
        method: Method::PUT,
        ..get(transfer.write)
    };
    let piped = transport.pipe(
        get(transfer.read),
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
    if is_success(&answer) && !transferred.is_whole() {
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

fn is_success(answer: &EngineResponse) -> bool {
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
