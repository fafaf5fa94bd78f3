//! Content of a tenant that would fill the host's memory on its way to a larger disk. The test has a
//! process of its own, whose memory it measures.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use wharf_domain::ids::NodeId;
use wharf_domain::secret::InstanceSecrets;
use wharf_engine::{EngineAccess, EngineNode, EngineRequest, EngineResponse, JobState, Transport};
use wharf_requests::{RequestFile, SampleCall};

const REQUESTS: &str = r#"
kind = "test"
about = "An engine of the tests."

[transfer.content]
about = "Copies the content of a container."
read = "/export"
changes = "/changes"
write = "/archive"
calls = "create"
"#;
/// Directories or changes of the hostile tenant.
const MANY: usize = 1_000_000;
/// Most memory that one transfer may take, bytes.
const MAX_GROWTH: u64 = 48 << 20;

/// The content of the old container.
#[derive(Clone, Copy)]
struct Content {
    directories: usize,
    changes: usize,
    /// Path of the changes, before their number.
    below: &'static str,
    kind: u8,
}

#[tokio::test]
async fn memory_is_bounded_whatever_a_tenant_stores() {
    let harmless = Content {
        directories: 3,
        changes: 3,
        below: "/",
        kind: 2,
    };
    let before = peak();
    assert_eq!(moved("harmless", harmless).await.status, 200);
    for (name, status, content) in [
        // 80 MB of changes that are none of the transfer's business.
        (
            "changes",
            200,
            Content {
                changes: MANY,
                below: "/home/user/a-path-of-some-length-with-a-name-that-goes-on/",
                ..harmless
            },
        ),
        (
            "gone",
            413,
            Content {
                changes: MANY,
                ..harmless
            },
        ),
        (
            "directories",
            413,
            Content {
                directories: MANY,
                ..harmless
            },
        ),
    ] {
        let answer = moved(name, content).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let growth = peak() - before;
        println!("{name}: {} {text}, {} MiB", answer.status, growth >> 20);
        assert!(growth < MAX_GROWTH, "{name}: {} MiB", growth >> 20);
        assert_eq!(answer.status, status, "{name}: {text}");
        if status == 413 {
            assert!(
                text.contains("cannot move: more than 4096 directories"),
                "{text}"
            );
        }
    }
}

/// The largest size of this process so far, bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() << 10
}

/// Transfers the content; returns the answer of the engine or the host.
async fn moved(name: &str, content: Content) -> EngineResponse {
    let path = std::env::temp_dir().join(format!("wharf-{name}-{}.sock", std::process::id()));
    serve(&path, content);
    let mut access = access(&path);
    let transfer = EngineRequest {
        name: "content".to_owned(),
        arguments: Vec::new(),
        timeout: None,
    };
    access.begin_transfer(&transfer).unwrap();
    let answer = loop {
        tokio::time::sleep(Duration::from_millis(2)).await;
        match access.transfer_state().unwrap() {
            Some(JobState::Running(_)) => {}
            Some(JobState::Done(answer)) => break answer,
            other => panic!("{name}: {other:?}"),
        }
    };
    std::fs::remove_file(&path).unwrap();
    answer
}

fn access(path: &Path) -> EngineAccess {
    let file = RequestFile::parse(REQUESTS).unwrap();
    let node = EngineNode::open(
        NodeId("n".into()),
        Transport::unix(path),
        &file,
        &Value::Null,
        Arc::default(),
        Arc::default(),
    );
    EngineAccess::new(
        Arc::new(node.unwrap()),
        SampleCall::parse("{}").unwrap().scope,
        InstanceSecrets::default(),
        Instant::now() + Duration::from_secs(5),
    )
}

/// An engine with this content.
fn serve(path: &Path, content: Content) {
    drop(std::fs::remove_file(path));
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // The host ends the connection when it has seen enough.
            tokio::spawn(async move { drop(answer(stream, content).await) });
        }
    });
}

async fn answer(mut stream: UnixStream, content: Content) -> std::io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        head.extend_from_slice(&piece[..read]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    if head.starts_with("PUT") {
        // The end of a chunked body.
        let mut end = head.into_bytes();
        while !end.ends_with(b"\r\n0\r\n\r\n") {
            let read = stream.read(&mut piece).await?;
            if read == 0 {
                return Ok(());
            }
            end.drain(..end.len().saturating_sub(16));
            end.extend_from_slice(&piece[..read]);
        }
        let done = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        return stream.write_all(done).await;
    }
    let start = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    stream.write_all(start).await?;
    let mut stream = tokio::io::BufWriter::with_capacity(64 << 10, stream);
    if head.contains("/export") {
        for n in 0..content.directories {
            stream
                .write_all(directory(&format!("d{n}/")).as_bytes())
                .await?;
        }
        stream.write_all(&[0; 1024]).await?;
    } else {
        for n in 0..content.changes {
            let Content { below, kind, .. } = content;
            let between = if n == 0 { '[' } else { ',' };
            let change = format!("{between}{{\"Path\":\"{below}{n}\",\"Kind\":{kind}}}");
            stream.write_all(change.as_bytes()).await?;
        }
        stream.write_all(b"]").await?;
    }
    stream.shutdown().await
}

fn directory(name: &str) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_path(name).unwrap();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_size(0);
    header.set_cksum();
    header
}
