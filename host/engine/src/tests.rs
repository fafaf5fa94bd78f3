//! The unix transport and jobs against a small HTTP server.

use super::message::{EngineError, JobState};
use super::{Access, CallScope, DriverFile, EngineNode, NamedRequest, Transport};
use http::Method;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use wharf_domain::ids::NodeId;
use wharf_domain::secret::Secrets;
use wharf_requests::RequestFile;

fn socket(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("wharf-{name}-{}.sock", std::process::id()))
}

/// Reads the head of every request and answers with `answer`.
fn serve(path: &std::path::Path, answer: Vec<u8>) {
    drop(std::fs::remove_file(path));
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 4096];
                while stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                    if stream.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
}

/// The requests to Docker.
fn file() -> DriverFile {
    let text = include_str!("../../../plugins/driver-docker/requests.toml");
    DriverFile::Requests(RequestFile::parse(text).unwrap())
}

fn access(path: &std::path::Path) -> Access {
    let transport = Transport::unix(path);
    let node = EngineNode::open(NodeId("n".into()), transport, &file(), &Value::Null).unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    Access::new(
        Arc::new(node),
        CallScope::node("home"),
        Secrets::default(),
        deadline,
    )
}

fn named(name: &str, timeout_ms: u64) -> NamedRequest {
    NamedRequest {
        name: name.into(),
        arguments: Vec::new(),
        timeout: Some(Duration::from_millis(timeout_ms)),
    }
}

#[tokio::test]
async fn answers_arrive_whole() {
    let path = socket("answers");
    serve(
        &path,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Some: thing\r\n\r\nhi".to_vec(),
    );
    let mut access = access(&path);
    for _ in 0..3 {
        let answer = access.send_named(&named("info", 1000)).await.unwrap();
        assert_eq!((answer.status, &answer.body[..]), (200, &b"hi"[..]));
        assert!(answer.headers.contains(&("x-some".into(), "thing".into())));
    }
    let refused = access.send_named(&named("events", 1000)).await.unwrap_err();
    assert!(matches!(refused, EngineError::Refused(_)));
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn an_absent_engine_is_unreachable_and_its_path_is_not_told() {
    let path = socket("absent");
    let error = access(&path)
        .send_named(&named("info", 1000))
        .await
        .unwrap_err();
    let EngineError::Unreachable(why) = error else {
        panic!("{error}")
    };
    assert!(why.starts_with("cannot connect"), "{why}");
    assert!(!why.contains("wharf-absent"), "{why}");
}

#[tokio::test]
async fn slow_and_long_answers_end() {
    let path = socket("slow");
    serve(
        &path,
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n".to_vec(),
    );
    let error = access(&path)
        .send_named(&named("info", 50))
        .await
        .unwrap_err();
    assert_eq!(error, EngineError::Timeout);
    std::fs::remove_file(&path).unwrap();

    let path = socket("long");
    let mut answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    answer.resize(9 << 20, b'x');
    serve(&path, answer);
    let error = access(&path)
        .send_named(&named("info", 4000))
        .await
        .unwrap_err();
    assert!(matches!(error, EngineError::TooLarge(_)), "{error}");
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn jobs_are_told_once() {
    let path = socket("job");
    serve(
        &path,
        b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\none\ntwo\n".to_vec(),
    );
    let transport = Transport::unix(&path);
    let node = EngineNode::open(NodeId("n".into()), transport, &file(), &Value::Null).unwrap();
    let outgoing = || super::outgoing::Outgoing {
        method: Method::POST,
        path: "/images/create".into(),
        headers: Vec::new(),
        body: None,
    };
    let poll = || node.jobs.poll_equal(outgoing(), &node.transport).unwrap();
    assert_eq!(poll(), JobState::Running(None));
    let done = loop {
        tokio::time::sleep(Duration::from_millis(5)).await;
        match poll() {
            JobState::Running(_) => {}
            other => break other,
        }
    };
    let JobState::Done(answer) = done else {
        panic!("{done:?}")
    };
    assert_eq!(&answer.body[..], b"one\ntwo\n");
    assert_eq!(poll(), JobState::Running(None), "the next begins anew");
    std::fs::remove_file(&path).unwrap();
}
