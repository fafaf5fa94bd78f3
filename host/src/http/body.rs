//! Reading request bodies, bounded in size and time.

use super::respond::Refusal;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Largest body that is taken, in bytes: far above any sensible request.
pub(super) const MAX_BYTES: usize = 64 * 1024;

/// How much of a refused body is read and thrown away, in bytes, so that its sender gets to see
/// the refusal instead of a broken connection.
const MAX_DRAINED: usize = 1024 * 1024;

/// How long that may take.
const DRAIN_TIME: Duration = Duration::from_secs(3);

/// The body of a request, while it arrives.
pub(super) struct Intake<B> {
    body: B,
    ended: bool,
}

impl<B: Body<Data = Bytes> + Unpin> Intake<B> {
    pub(super) fn new(body: B) -> Self {
        let ended = body.is_end_stream();
        Self { body, ended }
    }

    /// Nothing of the body is outstanding.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// The whole body.
    pub(super) async fn read(&mut self, time: Duration) -> Result<Bytes, Refusal> {
        if self.ended {
            return Ok(Bytes::new());
        }
        if self.body.size_hint().lower() > MAX_BYTES as u64 {
            return Err(Refusal::TooLarge);
        }
        let deadline = Instant::now() + time;
        let mut whole = BytesMut::new();
        while let Some(data) = self.next(deadline).await? {
            if whole.len() + data.len() > MAX_BYTES {
                return Err(Refusal::TooLarge);
            }
            if whole.is_empty() && self.body.is_end_stream() {
                // The usual case, one piece: not copied.
                self.ended = true;
                return Ok(data);
            }
            whole.extend_from_slice(&data);
        }
        Ok(whole.freeze())
    }

    /// Reads on and throws away, within bounds; true if the end was reached.
    pub(super) async fn drain(&mut self) -> bool {
        let deadline = Instant::now() + DRAIN_TIME;
        let mut drained = 0;
        while !self.ended && drained < MAX_DRAINED {
            match self.next(deadline).await {
                Ok(Some(data)) => drained += data.len(),
                Ok(None) => break,
                Err(_) => return false,
            }
        }
        self.ended
    }

    async fn next(&mut self, deadline: Instant) -> Result<Option<Bytes>, Refusal> {
        loop {
            match timeout_at(deadline, self.body.frame()).await {
                Err(_) => return Err(Refusal::BodyTimeout),
                Ok(Some(Err(_))) => return Err(Refusal::BodyBroken),
                Ok(None) => {
                    self.ended = true;
                    return Ok(None);
                }
                // Trailers say nothing here.
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Intake, MAX_BYTES, MAX_DRAINED};
    use crate::http::respond::Refusal;
    use bytes::Bytes;
    use http_body_util::Full;
    use hyper::body::Frame;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    const TIME: Duration = Duration::from_millis(50);

    /// So many pieces of so many bytes, then the end or silence.
    struct Pieces(usize, usize, bool);

    impl hyper::body::Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match (self.0, self.2) {
                (0, true) => Poll::Ready(None),
                (0, false) => Poll::Pending,
                _ => {
                    self.0 -= 1;
                    Poll::Ready(Some(Ok(Frame::data(vec![b'x'; self.1].into()))))
                }
            }
        }
    }

    #[tokio::test]
    async fn whole_bodies() {
        let mut one = Intake::new(Full::new(Bytes::from_static(b"abc")));
        assert_eq!(one.read(TIME).await.unwrap(), "abc");
        assert!(one.ended());
        let mut many = Intake::new(Pieces(64, 1024, true));
        assert_eq!(many.read(TIME).await.unwrap().len(), MAX_BYTES);
        let mut none = Intake::new(http_body_util::Empty::<Bytes>::new());
        assert!(none.ended() && none.read(TIME).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn too_long_and_too_slow() {
        let mut declared = Intake::new(Full::new(vec![0; MAX_BYTES + 1].into()));
        assert_eq!(declared.read(TIME).await, Err(Refusal::TooLarge));
        let mut undeclared = Intake::new(Pieces(66, 1024, true));
        assert_eq!(undeclared.read(TIME).await, Err(Refusal::TooLarge));
        assert!(undeclared.drain().await);
        let mut endless = Intake::new(Pieces(usize::MAX, 65_536, true));
        assert_eq!(endless.read(TIME).await, Err(Refusal::TooLarge));
        assert!(!endless.drain().await);
        assert!(usize::MAX - endless.body.0 <= 3 + MAX_DRAINED / 65_536);
        let mut silent = Intake::new(Pieces(1, 10, false));
        assert_eq!(silent.read(TIME).await, Err(Refusal::BodyTimeout));
    }
}
