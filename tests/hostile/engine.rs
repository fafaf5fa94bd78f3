//! A fake Docker engine on its own socket that only records requests.

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

/// A recorded request.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedRequest {
    /// Method, path and version, unchanged.
    pub line: String,
    /// Names and values, unchanged.
    pub headers: Vec<String>,
    /// The body, if it is JSON.
    pub body: Value,
}

/// The engine. Dropping it removes the socket.
pub struct RecordingEngine {
    dir: TempDir,
    asked: Arc<Mutex<Vec<AskedRequest>>>,
}

impl RecordingEngine {
    /// Creates an engine that refuses every request.
    pub fn refusing() -> Self {
        Self::start(true)
    }

    /// Creates an engine that accepts every request and never answers.
    pub fn silent() -> Self {
        Self::start(false)
    }

    fn start(answers: bool) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("wharf-fake-")
            .tempdir()
            .unwrap();
        let listener = UnixListener::bind(dir.path().join("engine.sock")).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        // The thread ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || drop(serve(stream, &kept, answers)));
            }
        });
        Self { dir, asked }
    }

    /// Returns the path of the socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("engine.sock")
    }

    /// Returns the requests so far.
    pub fn asked(&self) -> Vec<AskedRequest> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Returns the path of a socket without a listener.
pub fn nowhere() -> &'static Path {
    Path::new("/nowhere/engine.sock")
}

fn serve(stream: UnixStream, asked: &Mutex<Vec<AskedRequest>>, answers: bool) -> io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let (mut headers, mut length) = (Vec::new(), 0);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let header = header.trim_end().to_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(number) = header.strip_prefix("content-length:") {
                length = number.trim().parse().unwrap_or(0);
            }
            headers.push(header);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(AskedRequest {
                line: line.trim_end().to_owned(),
                headers,
                body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            });
        if answers {
            let text = r#"{"message":"not today"}"#;
            let length = text.len();
            write!(
                writer,
                "HTTP/1.1 500 No\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{text}"
            )?;
        }
    }
}
