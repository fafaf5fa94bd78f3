//! The unix transport and jobs against a small HTTP server.

use super::message::{EngineError, JobState};
use super::{
    CallScope, EngineAccess, EngineNode, EngineRequest, Registries, RegistryAccount, Transport,
};
use http::Method;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use wharf_domain::ids::NodeId;
use wharf_domain::image::Registry;
use wharf_domain::secret::{InstanceSecrets, SecretText};
use wharf_requests::{RequestFile, SampleCall};

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

fn file() -> RequestFile {
    let text = r#"
kind = "test"
about = "An engine of the tests."

[request.info]
about = "Reads the engine's resources."
method = "GET"
path = "/info"

[request.pull]
about = "Pulls an image."
method = "POST"
path = "/images/{argument.n:text}"
calls = "mark"
job = true
arguments.n = { max = 99 }
"#;
    RequestFile::parse(text).unwrap()
}

fn node(transport: Transport) -> EngineNode {
    let name = NodeId("n".into());
    let (offers, registries) = (Arc::default(), Arc::default());
    EngineNode::open(name, transport, &file(), &Value::Null, offers, registries).unwrap()
}

fn access(path: &std::path::Path) -> EngineAccess {
    let transport = Transport::unix(path);
    let node = node(transport);
    let deadline = Instant::now() + Duration::from_secs(5);
    EngineAccess::new(
        Arc::new(node),
        CallScope::node("home"),
        InstanceSecrets::default(),
        deadline,
    )
}

fn named(name: &str, timeout_ms: u64) -> EngineRequest {
    EngineRequest {
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
        let answer = access.send(&named("info", 1000)).await.unwrap();
        assert_eq!((answer.status, &answer.body[..]), (200, &b"hi"[..]));
        assert!(answer.headers.contains(&("x-some".into(), "thing".into())));
    }
    let refused = access.send(&named("events", 1000)).await.unwrap_err();
    assert!(matches!(refused, EngineError::Refused(_)));
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn an_absent_engine_is_unreachable_and_its_path_is_not_told() {
    let path = socket("absent");
    let error = access(&path).send(&named("info", 1000)).await.unwrap_err();
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
    let error = access(&path).send(&named("info", 50)).await.unwrap_err();
    assert_eq!(error, EngineError::Timeout);
    std::fs::remove_file(&path).unwrap();

    let path = socket("long");
    let mut answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    answer.resize(9 << 20, b'x');
    serve(&path, answer);
    let error = access(&path).send(&named("info", 4000)).await.unwrap_err();
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
    let node = node(transport);
    let outgoing = || super::outgoing::Outgoing {
        method: Method::POST,
        path: "/images/create".into(),
        headers: Vec::new(),
        credentials: None,
        body: None,
    };
    let poll = || node.jobs.poll(outgoing(), &node.transport).unwrap();
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

#[tokio::test]
async fn equal_requests_of_all_calls_are_one_job() {
    let path = socket("equal");
    serve(
        &path,
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n".to_vec(),
    );
    let transport = Transport::unix(&path);
    let node = node(transport);
    let node = Arc::new(node);
    let job = |n: u8| {
        let scope = CallScope::mark("home", "m");
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut access = EngineAccess::new(
            Arc::clone(&node),
            scope,
            InstanceSecrets::default(),
            deadline,
        );
        access.job(&EngineRequest {
            arguments: vec![("n".into(), n.to_string())],
            ..named("pull", 1000)
        })
    };
    for _ in 0..20 {
        assert_eq!(job(0), Ok(JobState::Running(None)));
    }
    // A node has 16 jobs at most.
    for n in 1..16 {
        assert_eq!(job(n), Ok(JobState::Running(None)));
    }
    assert!(matches!(job(16), Err(EngineError::Unreachable(_))));
    assert_eq!(job(0), Ok(JobState::Running(None)));
    std::fs::remove_file(&path).unwrap();
}

const PULL: &str = r#"
kind = "test"
about = "An engine of the tests."

[request.pull]
about = "Pulls an image."
method = "POST"
path = "/images/create"
query = { fromImage = "{image}" }
calls = "create"
job = true
credentials = "image"
"#;
const PASSWORD: &str = "a-password-of-the-tests";

/// Answers each request with its own head as the error of a pull, and sends the head.
fn reflect(path: &std::path::Path) -> tokio::sync::mpsc::UnboundedReceiver<String> {
    drop(std::fs::remove_file(path));
    let listener = UnixListener::bind(path).unwrap();
    let (heads, received) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let length = stream.read(&mut head).await.unwrap();
            let head = String::from_utf8(head[..length].to_vec()).unwrap();
            let message = format!("no: {head} {PASSWORD}");
            let body = serde_json::json!({ "error": message }).to_string();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            heads.send(head).unwrap();
        }
    });
    received
}

#[tokio::test]
async fn a_pull_has_the_account_of_its_registry_and_tells_the_driver_nothing_of_it() {
    let path = socket("registry");
    let mut heads = reflect(&path);
    let registries = Arc::new(Registries::default());
    registries.replace(&[RegistryAccount {
        registry: Registry::of("registry.example/x"),
        user: "wharf".to_owned(),
        password: SecretText::new(PASSWORD),
    }]);
    let name = NodeId("n".into());
    let (transport, file) = (Transport::unix(&path), RequestFile::parse(PULL).unwrap());
    let offers = Arc::default();
    let node = EngineNode::open(name, transport, &file, &Value::Null, offers, registries);
    let node = Arc::new(node.unwrap());
    for (image, is_trusted, has_account) in [
        ("registry.example/team/tools:1", true, true),
        // An installed plugin could name any image of the operator's.
        ("registry.example/team/tools:1", false, false),
        ("registry.example.evil/team/tools:1", true, false),
        ("tools:1", true, false),
    ] {
        let call = serde_json::json!({ "images": [image], "image_is_trusted": is_trusted });
        let mut access = EngineAccess::new(
            Arc::clone(&node),
            SampleCall::parse(&call.to_string()).unwrap().scope,
            InstanceSecrets::default(),
            Instant::now() + Duration::from_secs(5),
        );
        let shown = format!("{:?}", access.show(&named("pull", 1000)));
        assert!(
            shown.contains("Ok(") && !shown.contains("egistry-"),
            "{shown}"
        );
        let answer = loop {
            match access.job(&named("pull", 1000)).unwrap() {
                JobState::Running(_) => tokio::time::sleep(Duration::from_millis(2)).await,
                JobState::Done(answer) => break answer,
                JobState::Failed(error) => panic!("{error}"),
            }
        };
        let head = heads.recv().await.unwrap();
        let header = head
            .lines()
            .find_map(|line| line.strip_prefix("x-registry-auth: "));
        assert_eq!(
            header.is_some(),
            has_account,
            "{image} {is_trusted}: {head}"
        );
        let Some(header) = header else { continue };
        let told = String::from_utf8(answer.body.to_vec()).unwrap();
        let shown = "x-registry-auth: (secret)";
        assert!(
            told.contains(shown) && told.ends_with(" (secret)\"}"),
            "{told}"
        );
        assert!(!told.contains(header.trim_end_matches('=')) && !told.contains(PASSWORD));
    }
    std::fs::remove_file(&path).unwrap();
}
