//! WebSockets: the upgrade of RFC 6455, and the bytes after it.

use crate::answer;
use crate::hop::tokens;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Version};
use sha1::{Digest, Sha1};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const PROTOCOL: &str = "websocket";

/// The GUID of RFC 6455, section 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The bytes that pass at once.
const PIECE: usize = 16 * 1024;

thread_local! {
    // A WebSocket mostly waits, and would hold buffers of its own meanwhile.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; PIECE].into());
}

/// Adds the headers of an upgrade, of a request or of its response.
pub(crate) fn add_upgrade(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
}

/// A request for a WebSocket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    accept: String,
}

/// The request looks like one for a WebSocket, and is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Opening {
    /// Reads a request; none if it asks for no WebSocket.
    pub(crate) fn of<B>(request: &Request<B>) -> Result<Option<Self>, Malformed> {
        let headers = request.headers();
        if request.version() != Version::HTTP_11 || !is_upgrade(headers) {
            return Ok(None);
        }
        let has_body =
            headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING);
        let version = one(headers, &SEC_WEBSOCKET_VERSION);
        let key = one(headers, &SEC_WEBSOCKET_KEY).ok_or(Malformed)?;
        let is_key = STANDARD.decode(key).is_ok_and(|key| key.len() == 16);
        let right = *request.method() == Method::GET && !has_body && version == Some("13");
        if !right || !is_key {
            return Err(Malformed);
        }
        let accept = Sha1::new().chain_update(key).chain_update(GUID).finalize();
        Ok(Some(Self {
            accept: STANDARD.encode(accept),
        }))
    }

    /// Whether a page has accepted this upgrade and no other.
    pub(crate) fn is_accepted_by<B>(&self, response: &Response<B>) -> bool {
        answer::is_upgrade(response)
            && is_upgrade(response.headers())
            && one(response.headers(), &SEC_WEBSOCKET_ACCEPT) == Some(&self.accept)
    }
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    let protocol = one(headers, &UPGRADE);
    let mut named = tokens(headers, &CONNECTION);
    protocol.is_some_and(|protocol| protocol.eq_ignore_ascii_case(PROTOCOL))
        && named.any(|name| name.eq_ignore_ascii_case(UPGRADE.as_str()))
}

fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Passes bytes both ways until one side ends. `moved` is called for all bytes that have passed.
pub(crate) async fn pass(
    mut visitor: impl AsyncRead + AsyncWrite + Unpin,
    mut page: impl AsyncRead + AsyncWrite + Unpin,
    moved: impl Fn(),
) -> io::Result<()> {
    let (mut up, mut down) = (Direction::default(), Direction::default());
    poll_fn(|context| {
        let up = up.poll(context, &mut visitor, &mut page, &moved);
        let down = down.poll(context, &mut page, &mut visitor, &moved);
        if up.is_ready() { up } else { down }
    })
    .await
}

/// One direction.
#[derive(Default)]
struct Direction {
    /// Bytes that were read and not written, only while the reader of them is slow.
    held: Vec<u8>,
    written: usize,
    needs_flush: bool,
    ended: bool,
}

impl Direction {
    fn poll<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
        moved: &impl Fn(),
    ) -> Poll<io::Result<()>> {
        loop {
            while let Some(rest @ [_, ..]) = self.held.get(self.written..) {
                let written = ready!(Pin::new(&mut *writer).poll_write(context, rest))?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.written += written;
                moved();
            }
            (self.held, self.written) = (Vec::new(), 0);
            if self.ended {
                return Pin::new(&mut *writer).poll_shutdown(context);
            }
            if self.read(context, reader, writer)?.is_pending() {
                if self.needs_flush {
                    ready!(Pin::new(&mut *writer).poll_flush(context))?;
                    self.needs_flush = false;
                }
                return Poll::Pending;
            }
            moved();
        }
    }

    /// Reads one piece and writes as much of it as the writer takes.
    fn read<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
    ) -> io::Result<Poll<()>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut piece = ReadBuf::new(scratch);
            if Pin::new(reader)
                .poll_read(context, &mut piece)?
                .is_pending()
            {
                return Ok(Poll::Pending);
            }
            let piece = piece.filled();
            if piece.is_empty() {
                self.ended = true;
                return Ok(Poll::Ready(()));
            }
            self.needs_flush = true;
            let written = match Pin::new(writer).poll_write(context, piece)? {
                Poll::Ready(written) => written,
                Poll::Pending => 0,
            };
            self.held = piece.get(written..).unwrap_or_default().to_vec();
            Ok(Poll::Ready(()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Malformed, Opening, pass};
    use http::{Request, Response};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// The example of RFC 6455, section 1.3.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    const UPGRADE: (&str, &str) = ("upgrade", "websocket");
    const CONNECTION: (&str, &str) = ("connection", "keep-alive, Upgrade");
    const VERSION: (&str, &str) = ("sec-websocket-version", "13");

    fn opening(method: &str, headers: &[(&str, &str)]) -> Result<Option<Opening>, Malformed> {
        let request = Request::builder().method(method);
        let add = |request: http::request::Builder, header: &(&str, &str)| {
            request.header(header.0, header.1)
        };
        Opening::of(&headers.iter().fold(request, add).body(()).unwrap())
    }

    #[test]
    fn an_upgrade_is_to_a_websocket_or_none() {
        let key = ("sec-websocket-key", KEY);
        let all = [UPGRADE, CONNECTION, VERSION, key];
        assert!(matches!(opening("GET", &all), Ok(Some(_))));
        for headers in [
            &[CONNECTION, VERSION, key][..],
            &[UPGRADE, VERSION, key],
            &[("upgrade", "h2c"), CONNECTION],
            &[("upgrade", "websocket, h2c"), CONNECTION, VERSION, key],
            &[UPGRADE, ("upgrade", "h2c"), CONNECTION, VERSION, key],
        ] {
            assert_eq!(opening("GET", headers), Ok(None), "{headers:?}");
        }
        let length = ("content-length", "1");
        for (method, headers) in [
            ("POST", &all[..]),
            ("GET", &[UPGRADE, CONNECTION, VERSION]),
            ("GET", &[UPGRADE, CONNECTION, key]),
            ("GET", &[UPGRADE, CONNECTION, VERSION, key, key]),
            (
                "GET",
                &[UPGRADE, CONNECTION, VERSION, ("sec-websocket-key", "AAAA")],
            ),
            ("GET", &[UPGRADE, CONNECTION, VERSION, key, length]),
            (
                "GET",
                &[
                    UPGRADE,
                    CONNECTION,
                    VERSION,
                    key,
                    ("transfer-encoding", "chunked"),
                ],
            ),
        ] {
            assert_eq!(
                opening(method, headers),
                Err(Malformed),
                "{method} {headers:?}"
            );
        }
    }

    #[test]
    fn only_the_matching_answer_opens_the_tunnel() {
        let opening = opening(
            "GET",
            &[UPGRADE, CONNECTION, VERSION, ("sec-websocket-key", KEY)],
        );
        let opening = opening.unwrap().unwrap();
        let accepts = |status: u16, headers: &[(&str, &str)]| {
            let response = Response::builder().status(status);
            let add = |response: http::response::Builder, header: &(&str, &str)| {
                response.header(header.0, header.1)
            };
            opening.is_accepted_by(&headers.iter().fold(response, add).body(()).unwrap())
        };
        let accept = ("sec-websocket-accept", ACCEPT);
        assert!(accepts(101, &[UPGRADE, CONNECTION, accept]));
        assert!(!accepts(200, &[UPGRADE, CONNECTION, accept]));
        assert!(!accepts(101, &[CONNECTION, accept]));
        assert!(!accepts(101, &[UPGRADE, accept]));
        assert!(!accepts(101, &[("upgrade", "h2c"), CONNECTION, accept]));
        assert!(!accepts(101, &[UPGRADE, CONNECTION]));
        assert!(!accepts(
            101,
            &[UPGRADE, CONNECTION, ("sec-websocket-accept", KEY)]
        ));
    }

    #[tokio::test]
    async fn bytes_pass_both_ways_and_a_slow_reader_holds_them_back() {
        let (mut visitor, visitor_end) = duplex(1_000);
        let (mut page, page_end) = duplex(1_000);
        let passing = tokio::spawn(pass(visitor_end, page_end, || {}));
        let sent: Vec<u8> = (0..100_000_u32)
            .map(|n| u8::try_from(n % 251).unwrap())
            .collect();
        let mut taken = 0;
        let small = std::time::Duration::from_millis(50);
        while let Ok(written) = tokio::time::timeout(small, page.write(&sent[taken..])).await {
            taken += written.unwrap();
        }
        assert!(taken <= 3_000, "{taken}");
        let (mut read, rest) = (vec![0; sent.len()], sent[taken..].to_vec());
        let write = async {
            page.write_all(&rest).await.unwrap();
            page
        };
        let (mut page, _) = tokio::join!(write, async {
            visitor.read_exact(&mut read).await.unwrap()
        });
        assert!(read == sent);
        visitor.write_all(b"end").await.unwrap();
        drop(visitor);
        let mut end = Vec::new();
        page.read_to_end(&mut end).await.unwrap();
        assert_eq!(end, b"end");
        passing.await.unwrap().unwrap();
    }
}
