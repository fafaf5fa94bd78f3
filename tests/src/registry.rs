//! A registry of images on this machine, behind a password and a front that can misbehave.

use crate::until;
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use wharf_testkit::http::{HttpClient, Request};
use wharf_testkit::packages::{self, Need};

/// Most bytes of the head of a request.
const MAX_HEAD: u64 = 64 << 10;
/// The first byte of a client that speaks TLS.
const TLS: u8 = 22;

/// The way in which the front answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryMode {
    /// It passes all requests to the registry.
    Works,
    /// It refuses each account, and repeats it in the reason.
    Repeats,
    /// It is busy.
    Busy,
    /// It does not answer.
    Hangs,
    /// It ends each blob before the last byte.
    Cuts,
    /// It answers with the manifest of the tag 2, whatever manifest is asked for.
    Lies,
}

/// The registry. Dropping it ends the processes.
pub struct Registry {
    process: Child,
    port: u16,
    front: Arc<Front>,
    _dir: TempDir,
}

struct Front {
    upstream: u16,
    mode: Mutex<RegistryMode>,
    /// The heads of all requests.
    heads: Mutex<Vec<String>>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Registry {
    /// The account that may read and write.
    pub const USER: &str = "wharf";
    pub const PASSWORD: &str = "a-password-of-the-tests";

    /// Sends an image of the engine to the registry of its name, which has a tag.
    pub fn push(engine: &HttpClient, name: &str) -> Result<()> {
        let account = json!({ "username": Self::USER, "password": Self::PASSWORD });
        let account = URL_SAFE.encode(account.to_string());
        let (repository, tag) = name.rsplit_once(':').context("no tag")?;
        let path = format!("/images/{repository}/push?tag={tag}");
        let push = Request::new("POST", &path)
            .header(Some(("X-Registry-Auth", account.as_str())))
            .timeout(Duration::from_secs(300));
        let said = engine.send(push)?.ok()?.body;
        let said = String::from_utf8_lossy(&said);
        ensure!(!said.contains("\"error\""), "{said}");
        Ok(())
    }
    /// The password as bcrypt has it.
    const CRYPT: &str = "$2b$04$K8K5UxQsi2oJSfZVUtagd.z0YPbse0n/eYi3E7XhHVf8dM6iuH6am";

    /// Starts it. Installs the program if it is missing, which needs root.
    pub fn start() -> Result<Self> {
        packages::ensure(&[Need {
            program: "docker-registry",
            package: "docker-registry",
            why: "the tests pull private images from it",
        }])?;
        let dir = tempfile::tempdir()?;
        let upstream = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let accounts = dir.path().join("htpasswd");
        fs::write(&accounts, format!("{}:{}\n", Self::USER, Self::CRYPT))?;
        let config = json!({
            "version": "0.1",
            "storage": { "filesystem": { "rootdirectory": dir.path().join("images") } },
            "http": { "addr": format!("127.0.0.1:{upstream}") },
            "auth": { "htpasswd": { "realm": "tests", "path": accounts } },
        });
        // JSON is YAML.
        let file = dir.path().join("config.yml");
        fs::write(&file, config.to_string())?;
        let log = File::create(dir.path().join("registry.log"))?;
        let process = Command::new("docker-registry")
            .arg("serve")
            .arg(file)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("docker-registry")?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let registry = Self {
            process,
            port: listener.local_addr()?.port(),
            front: Arc::new(Front {
                upstream,
                mode: Mutex::new(RegistryMode::Works),
                heads: Mutex::default(),
            }),
            _dir: dir,
        };
        until("the registry listens", || {
            Ok(TcpStream::connect(("127.0.0.1", upstream)).ok())
        })?;
        let front = Arc::clone(&registry.front);
        // The threads end with the process of the test.
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(io::Result::ok) {
                let front = Arc::clone(&front);
                std::thread::spawn(move || drop(front.serve(client)));
            }
        });
        Ok(registry)
    }

    /// Its host in names of images. dockerd asks a loopback address by plain HTTP.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Changes the way in which the front answers.
    pub fn set_mode(&self, mode: RegistryMode) {
        *lock(&self.front.mode) = mode;
    }

    /// Returns the heads of the requests since the last call.
    pub fn take_heads(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.front.heads))
    }
}

impl Front {
    /// Answers one request. The connection ends with it, so that each request is seen.
    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let mut first = [0];
        client.peek(&mut first)?;
        if first == [TLS] {
            return Ok(());
        }
        let mut reader = BufReader::new(client.try_clone()?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let mut limited = (&mut reader).take(MAX_HEAD);
            if limited.read_line(&mut head)? == 0 || head.len() as u64 > MAX_HEAD {
                return Ok(());
            }
        }
        lock(&self.heads).push(head.clone());
        let account = head
            .lines()
            .find(|line| line.to_lowercase().starts_with("authorization:"));
        let mode = *lock(&self.mode);
        let served = match (mode, account) {
            (RegistryMode::Busy, _) => answer(&mut client, "503 Service Unavailable", "not now"),
            // The engine ends the connection.
            (RegistryMode::Hangs, _) => io::copy(&mut reader, &mut io::sink()).map(drop),
            (RegistryMode::Repeats, Some(account)) => {
                let error = json!({ "code": "DENIED", "message": format!("not {account}") });
                let body = json!({ "errors": [error] }).to_string();
                answer(&mut client, "403 Forbidden", &body)
            }
            (RegistryMode::Cuts, _) if head.contains("/blobs/") => {
                let mut blob = Vec::new();
                self.pass(&mut blob, reader, &head)?;
                blob.pop();
                client.write_all(&blob)
            }
            (RegistryMode::Lies, _) => self.pass(&mut client, reader, &of_tag_2(&head)),
            _ => self.pass(&mut client, reader, &head),
        };
        // The thread with the request's body still has the connection.
        let _ = client.shutdown(Shutdown::Both);
        served
    }

    fn pass(
        &self,
        client: &mut impl Write,
        mut reader: BufReader<TcpStream>,
        head: &str,
    ) -> io::Result<()> {
        let mut upstream = TcpStream::connect(("127.0.0.1", self.upstream))?;
        let (line, rest) = head.split_once("\r\n").unwrap_or((head, ""));
        write!(upstream, "{line}\r\nConnection: close\r\n{rest}")?;
        let mut to = upstream.try_clone()?;
        std::thread::spawn(move || {
            let _ = io::copy(&mut reader, &mut to);
        });
        io::copy(&mut upstream, client).map(drop)
    }
}

/// The head with the tag 2 in place of the reference of a manifest.
fn of_tag_2(head: &str) -> String {
    let asked = head.split_once("/manifests/");
    let rest = asked.and_then(|(before, rest)| Some((before, rest.split_once(' ')?.1)));
    rest.map_or_else(
        || head.to_owned(),
        |(before, rest)| format!("{before}/manifests/2 {rest}"),
    )
}

fn answer(client: &mut TcpStream, status: &str, body: &str) -> io::Result<()> {
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
