//! HTTP/2: routed by `:authority`, with the checks of HTTP/1.1, and never a WebSocket.

use crate::house::{CREDENTIAL, HOST, Running};
use crate::page::{Server, head};
use bytes::Bytes;
use http::{Request, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

async fn connect(running: &Running) -> SendRequest<Full<Bytes>> {
    let io = running.tls.stream(running.address, b"h2").await;
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(io))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

fn request(method: &str, path: &str, lines: &[&str]) -> Request<Full<Bytes>> {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("https://{HOST}{path}"));
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    request.body(Full::default()).unwrap()
}

#[tokio::test]
async fn a_page_gets_http_1_and_one_host() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let mut visitor = connect(&running).await;
    let mut post = request(
        "POST",
        "/a?b",
        &[
            &cookie,
            "cookie: a=1",
            "cookie: b=2",
            "origin: https://demo.pages.example",
        ],
    );
    *post.body_mut() = Full::from("abcde");
    let response = visitor.send_request(post).await.unwrap();
    assert_eq!(
        (response.status(), response.version()),
        (StatusCode::OK, Version::HTTP_2)
    );
    let told = response.into_body().collect().await.unwrap().to_bytes();
    let told = String::from_utf8(told.to_vec()).unwrap();
    for line in [
        "POST /a?b HTTP/1.1",
        &format!("host: {HOST}"),
        &format!("authorization: {CREDENTIAL}"),
        "cookie: a=1; b=2",
        "body: 5",
    ] {
        assert!(told.lines().any(|told| told == line), "{line}: {told}");
    }
    for (request, status) in [
        (
            request("GET", "/", &[&cookie, "host: demo.pages.example"]),
            200,
        ),
        (
            request("GET", "/", &[&cookie, "host: other.pages.example"]),
            400,
        ),
        (
            request("GET", "/", &[&cookie, "sec-fetch-site: same-site"]),
            403,
        ),
        (
            request(
                "POST",
                "/",
                &[&cookie, "origin: https://evil.pages.example"],
            ),
            403,
        ),
        (request("POST", "/", &[&cookie]), 401),
        (request("GET", "/", &[]), 401),
        (
            request("GET", "/.well-known/acme-challenge/x", &[&cookie]),
            404,
        ),
        (request("TRACE", "/", &[&cookie]), 405),
        (
            request(
                "GET",
                "/",
                &[&format!("{cookie}; a={}", "b".repeat(70_000))],
            ),
            431,
        ),
    ] {
        let shown = format!("{request:?}");
        let response = visitor.send_request(request).await.unwrap();
        assert_eq!(response.status(), status, "{shown}");
    }
    let mut elsewhere = request("GET", "/", &[&cookie]);
    *elsewhere.uri_mut() = "https://other.example/".parse().unwrap();
    assert_eq!(visitor.send_request(elsewhere).await.unwrap().status(), 421);
    let mut connect = request("CONNECT", "/", &[&cookie]);
    *connect.uri_mut() = "demo.pages.example:443".parse().unwrap();
    assert_eq!(visitor.send_request(connect).await.unwrap().status(), 405);
}

/// One frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), content].concat()
}

/// Header fields as literals without an index and without Huffman's code.
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let fields = fields.iter();
    fields
        .flat_map(|(name, value)| [vec![0], text(name), text(value)].concat())
        .collect()
}

/// Sends one request by hand. Returns whether the gateway answered with a head, rather than an error of HTTP/2.
async fn is_answered(running: &Running, extra: &[(&str, &str)]) -> bool {
    let mut io = running.tls.stream(running.address, b"h2").await;
    let usual = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/"),
        (":authority", HOST),
    ];
    let all = [&usual[..], extra].concat();
    let bytes = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[]),
        frame(1, 5, 1, &fields(&all)),
    ];
    io.write_all(&bytes.concat()).await.unwrap();
    loop {
        let mut start = [0; 9];
        let read = timeout(Duration::from_secs(5), io.read_exact(&mut start))
            .await
            .unwrap();
        if read.is_err() {
            return false;
        }
        let length = u32::from_be_bytes([0, start[0], start[1], start[2]]);
        let mut content = vec![0; length as usize];
        io.read_exact(&mut content).await.unwrap();
        match start[3] {
            1 => return true,
            // RST_STREAM and GOAWAY.
            3 | 7 => return false,
            _ => {}
        }
    }
}

#[tokio::test]
async fn fields_of_one_connection_and_doubled_names_are_errors() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    assert!(is_answered(&running, &[]).await);
    for extra in [
        (":authority", "other.pages.example"),
        (":path", "/other"),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("transfer-encoding", "chunked"),
        ("te", "gzip"),
        (":protocol", "websocket"),
        ("content-length", "5"),
        ("X-Upper", "a"),
        ("x-a", "b\r\nc: d"),
        ("x-a", "b\0"),
    ] {
        assert!(!is_answered(&running, &[extra]).await, "{extra:?}");
    }
    assert_eq!(
        server
            .connections
            .load(std::sync::atomic::Ordering::Relaxed),
        0
    );
}

/// A trailer is a header that nothing has checked.
#[tokio::test]
async fn trailers_of_a_page_do_not_pass() {
    let server = Server::start(|mut io| async move {
        head(&mut io).await?;
        let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: set-cookie\r\n\r\n\
                       1\r\na\r\n0\r\nset-cookie: __Host-wharf-page=x; Domain=pages.example\r\n\r\n";
        io.write_all(answer).await
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let mut visitor = connect(&running).await;
    let mut get = request("GET", "/", &[&cookie]);
    get.headers_mut().insert("te", "trailers".parse().unwrap());
    let body = visitor
        .send_request(get)
        .await
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap();
    assert!(
        body.trailers().is_none_or(http::HeaderMap::is_empty),
        "{body:?}"
    );
    assert_eq!(body.to_bytes(), "a");
}

/// Other streams of the connection go on while the right to one page ends.
#[tokio::test]
async fn a_stream_ends_with_its_session_and_slow_ones_hold_up_no_other() {
    let server = Server::start(|mut io| async move {
        let asked = head(&mut io).await?.unwrap_or_default();
        io.write_all(b"HTTP/1.1 200 OK\r\n\r\nfirst").await?;
        if asked.starts_with("GET /long") {
            io.write_all(&vec![b'x'; 64 << 20]).await?;
        }
        if !asked.starts_with("GET /short") {
            let _ = io.read(&mut [0; 64]).await;
        }
        Ok(())
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let mut visitor = connect(&running).await;
    let mut get = async |path| {
        visitor
            .send_request(request("GET", path, &[&cookie]))
            .await
            .unwrap()
    };
    let long = get("/long").await;
    let mut silent = get("/silent").await.into_body();
    assert_eq!(
        silent.frame().await.unwrap().unwrap().into_data().unwrap(),
        "first"
    );
    tokio::time::sleep(Duration::from_millis(300)).await;
    let short = get("/short").await.into_body().collect().await.unwrap();
    assert_eq!(short.to_bytes(), "first");
    running.sign_out("owner");
    let ended = timeout(Duration::from_secs(2), silent.frame())
        .await
        .unwrap();
    assert!(ended.is_none_or(|frame| frame.is_err()));
    let mut long = long.into_body();
    let mut got = 0;
    while let Some(Ok(frame)) = timeout(Duration::from_secs(2), long.frame()).await.unwrap() {
        got += frame.into_data().map_or(0, |data| data.len());
    }
    assert!(got < 8 << 20, "{got}");
    assert_eq!(get("/short").await.status(), 401);
}

/// A client without windows leaves all answers with the gateway.
#[tokio::test]
async fn answers_that_nobody_reads_end_their_connection() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    let mut io = running.tls.stream(running.address, b"h2").await;
    let no_window = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    io.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &no_window[..]].concat())
        .await
        .unwrap();
    let head = fields(&[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/"),
        (":authority", HOST),
    ]);
    for n in 0..100 {
        // It fails once the connection has ended.
        let _ = io.write_all(&frame(1, 5, 1 + 2 * n, &head)).await;
    }
    let rest = async { while matches!(io.read(&mut [0; 4096]).await, Ok(1..)) {} };
    timeout(Duration::from_secs(5), rest).await.unwrap();
}
