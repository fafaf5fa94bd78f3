//! Transfers: the content of one container goes into another, on the same engine or on that of another node, or
//! between a container or a volume and an object. It passes through the host in pieces; no guest, file or image stores
//! it.

use super::changes::ChangeListReader;
use super::image_form::ImageForm;
use super::message::{EngineError, EngineResponse};
use super::objects::{ObjectSource, ObjectTarget, Piece};
use super::outgoing::{Outgoing, ProgressSink};
use super::tar_pipe::TransferProgress;
use super::tar_stream::{Malformed, Rewrite};
use super::transport::Transport;
use http::Method;
use http::header::CONTENT_TYPE;
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
pub enum ContentSource {
    Engine(TransferSource),
    Object(ObjectSource),
}

/// The container or the volume that a transfer reads.
#[derive(Debug)]
pub struct TransferSource {
    pub transport: Transport,
    pub targets: SourceTargets,
    pub is_volume: bool,
}

/// The container or the volume that a transfer writes.
#[derive(Debug)]
pub struct TransferTarget {
    pub transport: Transport,
    /// Of the request that writes.
    pub write: String,
    /// The directory of the written archive that gets the content, where it is not the root.
    pub below: Option<String>,
    /// The files of the image as which the content is written, if there are any.
    pub image: Vec<(String, String)>,
    /// Paths with mounts, whose content stays.
    pub kept: Vec<String>,
    /// An empty one.
    pub is_volume: bool,
}

/// Runs a transfer. The result is the response of the writing request, or the first unsuccessful one
/// before it.
pub async fn carry(
    from: ContentSource,
    to: TransferTarget,
    progress: Arc<dyn ProgressSink>,
) -> Result<EngineResponse, EngineError> {
    let transferred = Arc::new(TransferProgress::new(progress));
    let mut write = Outgoing {
        method: Method::PUT,
        ..get(to.write)
    };
    let mut rewrite = Rewrite {
        kept: to.kept,
        below: to.below,
        into_empty: to.is_volume,
        is_volume: to.is_volume,
        ..Rewrite::default()
    };
    if !to.image.is_empty() {
        let form = ImageForm::new(&to.image)?;
        write.method = Method::POST;
        write.headers = vec![(CONTENT_TYPE.to_string(), form.media_type.clone())];
        rewrite.into_empty = true;
        rewrite.form = Some(form);
    }
    let piped = async {
        match from {
            ContentSource::Engine(from) => {
                rewrite.gone = match gone(&from).await? {
                    Ok(gone) => gone,
                    Err(answer) => return Ok(answer),
                };
                let read = get(from.targets.read);
                rewrite.root = from.targets.root;
                let transferred = Arc::clone(&transferred);
                let (from, to) = (&from.transport, &to.transport);
                from.pipe(read, to, write, &rewrite, transferred).await
            }
            ContentSource::Object(object) => {
                rewrite.gone.clone_from(&object.gone);
                rewrite.is_foreign = true;
                let transferred = Arc::clone(&transferred);
                to.transport
                    .fill(object, write, &rewrite, transferred)
                    .await
            }
        }
    };
    ended(piped, &transferred).await
}

/// Runs a transfer from a container or a volume to an object. The result is a response without a body, or the first
/// unsuccessful one of the engine.
pub async fn carry_out(
    from: TransferSource,
    to: ObjectTarget,
    progress: Arc<dyn ProgressSink>,
) -> Result<EngineResponse, EngineError> {
    let transferred = Arc::new(TransferProgress::new(progress));
    let piped = async {
        match gone(&from).await? {
            Ok(gone) => to.put(Piece::Gone(gone)).await?,
            Err(answer) => return Ok(answer),
        }
        let read = get(from.targets.read);
        let rewrite = Rewrite {
            into_empty: true,
            is_volume: from.is_volume,
            root: from.targets.root,
            ..Rewrite::default()
        };
        let answer = from
            .transport
            .drain(read, &to, &rewrite, &transferred)
            .await?;
        if answer.is_success() && transferred.is_whole() {
            to.complete().await?;
        }
        Ok(answer)
    };
    ended(piped, &transferred).await
}

/// The top-level entries of the image that a container no longer has, or the engine's refusal.
async fn gone(from: &TransferSource) -> Result<Result<Vec<String>, EngineResponse>, EngineError> {
    let Some(list) = from.targets.changes.clone() else {
        return Ok(Ok(Vec::new()));
    };
    let (list, changes) = (get(list), ChangeListReader::default());
    let answer = from.transport.stream(list, &changes).await?;
    if !answer.is_success() {
        return Ok(Err(answer));
    }
    Ok(changes.gone().map_err(immovable))
}

/// The result of a transfer, unless it stands still.
async fn ended(
    piped: impl Future<Output = Result<EngineResponse, EngineError>>,
    transferred: &TransferProgress,
) -> Result<EngineResponse, EngineError> {
    let answer = tokio::select! {
        answer = piped => answer,
        () = stalled(transferred) => return Err(EngineError::Timeout),
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
        credentials: None,
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
