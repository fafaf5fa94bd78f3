//! HTTP/1 as bytes without TLS, for requests that no HTTP client would send.

use anyhow::{Context, Result, ensure};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use ureq::http::{HeaderMap, HeaderName, HeaderValue};

/// A response of HTTP/1.
#[derive(Debug)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

/// Sends bytes on a new connection, and returns everything received until it is closed.
pub fn exchange(authority: &str, bytes: &[u8], timeout: Duration) -> Result<Vec<u8>> {
    let address = authority.to_socket_addrs()?.next();
    let address = address.with_context(|| format!("{authority} has no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.write_all(bytes)?;
    let mut received = Vec::new();
    match stream.read_to_end(&mut received) {
        // A server that does not read the whole request may reset the connection after its response.
        Err(error) if error.kind() == ErrorKind::ConnectionReset && !received.is_empty() => {}
        read => drop(read?),
    }
    Ok(received)
}

/// Parses all responses, one after the other.
pub fn replies(mut bytes: &[u8]) -> Result<Vec<Reply>> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        let (reply, rest) = first(bytes)?;
        replies.push(reply);
        bytes = rest;
    }
    Ok(replies)
}

fn first(bytes: &[u8]) -> Result<(Reply, &[u8])> {
    let (head, rest) = split_at_mark(bytes, b"\r\n\r\n").context("the head has no end")?;
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let status = line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1)?.parse().ok())
        .with_context(|| format!("invalid status line: {line}"))?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':').context("a header has no colon")?;
        let name = HeaderName::from_bytes(name.as_bytes())?;
        headers.append(name, HeaderValue::from_str(value.trim())?);
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (body, rest) = if status < 200 || matches!(status, 204 | 304) {
        (Vec::new(), rest)
    } else if text("transfer-encoding").is_some_and(|coding| coding.ends_with("chunked")) {
        unchunked(rest)?
    } else if let Some(length) = text("content-length") {
        let body = rest.split_at_checked(length.parse()?);
        let (body, rest) = body.context("the body is cut off")?;
        (body.to_vec(), rest)
    } else {
        (rest.to_vec(), &[][..])
    };
    let reply = Reply {
        status,
        headers,
        body,
    };
    Ok((reply, rest))
}

/// Decodes a chunked body; returns it and the remaining bytes.
fn unchunked(mut bytes: &[u8]) -> Result<(Vec<u8>, &[u8])> {
    let mut body = Vec::new();
    loop {
        let (size, rest) = split_at_mark(bytes, b"\r\n").context("a chunk has no size")?;
        let size = String::from_utf8_lossy(size);
        let size = usize::from_str_radix(size.split(';').next().unwrap_or("").trim(), 16)?;
        if size == 0 {
            let mut rest = rest;
            // Trailers, and the empty line.
            loop {
                let (line, after) =
                    split_at_mark(rest, b"\r\n").context("the chunks have no end")?;
                rest = after;
                if line.is_empty() {
                    return Ok((body, rest));
                }
            }
        }
        let (chunk, rest) = rest.split_at_checked(size).context("a chunk is cut off")?;
        body.extend_from_slice(chunk);
        let end = rest.strip_prefix(b"\r\n");
        bytes = end.context("a chunk is longer than its size")?;
    }
}

/// The parts before and after the first mark.
fn split_at_mark<'b>(bytes: &'b [u8], mark: &[u8]) -> Option<(&'b [u8], &'b [u8])> {
    let at = bytes.windows(mark.len()).position(|part| part == mark)?;
    Some((bytes.get(..at)?, bytes.get(at + mark.len()..)?))
}

/// The authority and the path prefix of a base URL, if it does not use TLS.
pub fn without_tls(base_url: &str) -> Option<(String, &str)> {
    let rest = base_url.strip_prefix("http://")?;
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let authority = if has_port {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    Some((authority, path))
}

/// Parses the one response; fails if there are more.
pub fn single_reply(bytes: &[u8]) -> Result<Reply> {
    let mut all = replies(bytes)?;
    ensure!(all.len() == 1, "{} responses to one request", all.len());
    all.pop().context("the response is missing")
}

#[cfg(test)]
mod tests {
    use super::{replies, single_reply, without_tls};

    #[test]
    fn responses_are_separated() {
        let bytes =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\n\r\n{}\
            HTTP/1.1 204 No Content\r\n\r\nHTTP/1.0 404 X\r\nTransfer-Encoding: chunked\r\n\r\n\
            2;x=y\r\nab\r\n1\r\nc\r\n0\r\nT: u\r\n\r\nHTTP/1.1 400 Y\r\n\r\nthe rest";
        let all = replies(bytes).unwrap();
        let seen: Vec<_> = all
            .iter()
            .map(|r| (r.status, String::from_utf8_lossy(&r.body).into_owned()))
            .collect();
        let expected = [
            (100, ""),
            (200, "{}"),
            (204, ""),
            (404, "abc"),
            (400, "the rest"),
        ];
        assert_eq!(
            seen,
            expected.map(|(status, body)| (status, body.to_owned()))
        );
        assert_eq!(all[1].headers["a"], "b");
        assert!(single_reply(bytes).is_err());
        for broken in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}"[..],
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
            b"HTTP/1.1 200 OK",
            b"<html>\r\n\r\n",
        ] {
            assert!(replies(broken).is_err());
        }
    }

    #[test]
    fn addresses_without_tls() {
        let some = |authority: &str, path| Some((authority.to_owned(), path));
        assert_eq!(without_tls("http://a.b"), some("a.b:80", ""));
        assert_eq!(
            without_tls("http://127.0.0.1:8080/x"),
            some("127.0.0.1:8080", "/x")
        );
        assert_eq!(without_tls("http://[::1]/x/y"), some("[::1]:80", "/x/y"));
        assert_eq!(without_tls("https://a.b"), None);
    }
}
