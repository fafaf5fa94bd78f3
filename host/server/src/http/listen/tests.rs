use super::{Activity, Served, serve};
use crate::http::connection::{Connections, Timeouts};
use crate::http::unsent::Unsent;
use axum::routing::any;
use axum::{Extension, Router};
use hyper::{Request, Uri};
use prometheus_client::metrics::gauge::Gauge;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use wharf_config::LimitsConfig;

/// Answers with the path; `/slow` takes a while, `/long` is more than sockets buffer, and `/key` stands
/// for a request with a valid key.
async fn echo(Extension(activity): Extension<Arc<Activity>>, uri: Uri) -> String {
    match uri.path() {
        "/key" => activity.authenticate(),
        "/slow" => tokio::time::sleep(Duration::from_millis(300)).await,
        "/long" => return "x".repeat(LONG),
        _ => {}
    }
    uri.path().to_owned()
}

const LONG: usize = 64 << 20;

async fn start(limits: LimitsConfig, timeouts: Timeouts) -> (SocketAddr, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let router = Router::new().fallback(any(echo));
    let served = Served {
        service: Connections::new(router, timeouts, Unsent::new(u64::MAX), Arc::default()),
        limits,
        tls: None,
        proxies: Arc::default(),
        open: Gauge::default(),
    };
    // One client on another machine.
    let peer = |_: &SocketAddr| Some(IpAddr::from([192, 0, 2, 1]));
    tokio::spawn(serve(listener, peer, served, stopped));
    (address, stop)
}

/// A server whose connections may be idle for this time.
async fn idle_for(milliseconds: u64) -> (SocketAddr, watch::Sender<bool>) {
    start(LimitsConfig::default(), timeouts(milliseconds)).await
}

fn timeouts(idle: u64) -> Timeouts {
    Timeouts {
        header: Duration::from_millis(200),
        idle: Duration::from_millis(idle),
        write: Duration::from_secs(1),
    }
}

/// Sends bytes, and reads until the server closes the connection.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn silent_connections_are_closed() {
    let (address, _stop) = idle_for(200).await;
    for bytes in [
        &b""[..],
        b"P",
        b"GET / HTTP/1.1\r\nhost: x\r\nx-half",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nx-half",
    ] {
        let started = Instant::now();
        let _ = tokio::time::timeout(Duration::from_secs(3), exchange(address, bytes))
            .await
            .unwrap();
        assert!(started.elapsed() >= Duration::from_millis(150), "{bytes:?}");
    }
}

/// Sends one request, and keeps the connection.
async fn connect(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(stream.read(&mut [0; 512]).await.unwrap() > 0);
    stream
}

const LAST: &[u8] = b"GET /b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_those_with_a_key() {
    let one_place = LimitsConfig {
        max_connections: 1,
        ..LimitsConfig::default()
    };
    let (address, _stop) = start(one_place, timeouts(5_000)).await;
    let first = connect(address, "/key").await;
    let started = Instant::now();
    let second = tokio::spawn(async move { exchange(address, LAST).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(first);
    assert!(second.await.unwrap().contains("/b"));
    assert!(started.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn connections_without_a_key_make_room() {
    let three_places = LimitsConfig {
        max_connections: 3,
        ..LimitsConfig::default()
    };
    let (address, _stop) = start(three_places, timeouts(60_000)).await;
    let mut with_key = connect(address, "/key").await;
    let mut strangers = [connect(address, "/a").await, connect(address, "/a").await];
    let answer = tokio::time::timeout(Duration::from_secs(10), exchange(address, LAST));
    assert!(answer.await.unwrap().contains("/b"));
    assert_eq!(strangers[0].read(&mut [0; 512]).await.unwrap_or(0), 0);
    for stream in [&mut strangers[1], &mut with_key] {
        stream.write_all(LAST).await.unwrap();
        assert!(stream.read(&mut [0; 512]).await.unwrap() > 0);
    }
}

#[tokio::test]
async fn http2() {
    let (address, _stop) = idle_for(200).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let io = hyper_util::rt::TokioIo::new(stream);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut send, connection) = hyper::client::conn::http2::handshake(executor, io)
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = |path: &str| {
        let uri = format!("http://{address}{path}");
        Request::get(uri)
            .body(http_body_util::Empty::<bytes::Bytes>::new())
            .unwrap()
    };
    let (slow, quick) = (
        send.send_request(request("/slow")),
        send.clone().send_request(request("/b")),
    );
    let started = Instant::now();
    assert_eq!(quick.await.unwrap().status(), 200);
    assert!(started.elapsed() < Duration::from_millis(250));
    assert_eq!(slow.await.unwrap().version(), http::Version::HTTP_2);
}

#[tokio::test]
async fn connections_beyond_the_limit_of_their_peer_are_closed() {
    let two_places = LimitsConfig {
        connections_per_peer: 2,
        ..LimitsConfig::default()
    };
    let (address, _stop) = start(two_places, timeouts(5_000)).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"GET /b HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        assert!(stream.read(&mut [0; 512]).await.unwrap() > 0);
        held.push(stream);
    }
    let started = Instant::now();
    let request = b"GET /b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert_eq!(exchange(address, request).await, "");
    assert!(started.elapsed() < Duration::from_secs(3));
    held.pop();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(exchange(address, request).await.contains("/b"));
}

/// How many bytes of `/long` a client gets that pauses for this time after the first piece.
async fn read_with_pause(address: SocketAddr, pause: Duration) -> usize {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = b"GET /long HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut piece = vec![0; 65_536];
    let mut read = stream.read(&mut piece).await.unwrap();
    tokio::time::sleep(pause).await;
    while let Ok(n @ 1..) = stream.read(&mut piece).await {
        read += n;
    }
    read
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_connection_and_a_slow_one_does_not() {
    let (address, _stop) = idle_for(180_000).await;
    assert!(read_with_pause(address, Duration::from_millis(500)).await > LONG);
    assert!(read_with_pause(address, Duration::from_millis(2_500)).await < LONG);
}

#[tokio::test]
async fn an_idle_connection_outlives_the_time_of_a_head() {
    let (address, _stop) = idle_for(60_000).await;
    let mut stream = connect(address, "/a").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    stream.write_all(LAST).await.unwrap();
    assert!(stream.read(&mut [0; 512]).await.unwrap() > 0);
}
