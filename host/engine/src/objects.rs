//! Objects as ends of transfers: content that leaves for a place outside all engines, or comes from there. No guest
//! learns anything of the place.

use super::message::EngineError;
use bytes::Bytes;
use std::io;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// Pieces between an engine and an object.
const PIECES: usize = 8;

/// A piece of content on its way to an object. A source that breaks off sends no [`Piece::Whole`].
#[derive(Debug)]
pub enum Piece {
    /// Top-level entries that images have, and the content does not.
    Gone(Vec<String>),
    Data(Bytes),
    Whole,
}

/// An object that takes content.
#[derive(Debug)]
pub struct ObjectTarget {
    pieces: mpsc::Sender<Piece>,
    stored: oneshot::Receiver<()>,
}

/// The receiving side of an [`ObjectTarget`].
#[derive(Debug)]
pub struct ObjectContent {
    pub pieces: mpsc::Receiver<Piece>,
    /// Gets a value once the object is stored.
    pub stored: oneshot::Sender<()>,
}

impl ObjectTarget {
    /// An object, and its content.
    pub fn new() -> (Self, ObjectContent) {
        let (sender, pieces) = mpsc::channel(PIECES);
        let (stored, awaited) = oneshot::channel();
        let target = Self {
            pieces: sender,
            stored: awaited,
        };
        (target, ObjectContent { pieces, stored })
    }

    /// Hands the next piece over.
    pub async fn put(&self, piece: Piece) -> Result<(), EngineError> {
        self.pieces.send(piece).await.map_err(|_| not_stored())
    }

    /// Ends the content, and waits until it is stored.
    pub async fn complete(self) -> Result<(), EngineError> {
        self.put(Piece::Whole).await?;
        self.stored.await.map_err(|_| not_stored())
    }
}

fn not_stored() -> EngineError {
    EngineError::Unreachable("the content was not stored".to_owned())
}

/// The content of an object.
#[derive(Debug)]
pub struct ObjectSource {
    /// As in [`Piece::Gone`].
    pub gone: Vec<String>,
    /// An error in place of the end means that the content is not usable.
    pub pieces: mpsc::Receiver<io::Result<Bytes>>,
}

impl ObjectSource {
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        self.pieces.poll_recv(cx)
    }

    /// All of the content.
    pub(super) async fn read(&mut self) -> io::Result<Bytes> {
        let mut whole = Vec::new();
        while let Some(piece) = self.pieces.recv().await {
            whole.extend_from_slice(&piece?);
        }
        Ok(whole.into())
    }
}
