//! Engines that replay a dockerd's answers about stopped containers, over Unix sockets or TLS, so that the
//! cost of looks is measured without that of an engine.

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use rcgen::generate_simple_self_signed;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// An engine.
#[derive(Clone)]
pub struct Engine {
    list: Bytes,
    /// The body of the request that marked the store.
    mark: Arc<Mutex<Option<Value>>>,
    lists: Arc<AtomicUsize>,
}

impl Engine {
    /// An engine with stopped containers of these instances. It counts its lists in `lists`.
    pub fn new(installation: &str, instances: &[String], lists: &Arc<AtomicUsize>) -> Self {
        let all = instances.iter().map(|id| container(installation, id));
        Self {
            list: Value::Array(all.collect()).to_string().into(),
            mark: Arc::default(),
            lists: Arc::clone(lists),
        }
    }

    /// Serves on a Unix socket, for as long as the runtime lives.
    pub fn on_socket(self, path: &Path) -> Result<()> {
        self.serve(UnixListener::bind(path)?);
        Ok(())
    }

    /// Serves on a free port of this machine, to clients with the certificate. Returns the endpoint.
    pub async fn on_port(self, certificates: &Certificates) -> Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("https://{}", listener.local_addr()?);
        let acceptor = TlsAcceptor::from(Arc::clone(&certificates.server));
        self.serve(Tls { listener, acceptor });
        Ok(endpoint)
    }

    fn serve<L: Listener<Addr: std::fmt::Debug>>(self, listener: L) {
        let router = Router::new().fallback(answer).with_state(self);
        tokio::spawn(async move { axum::serve(listener, router).await });
    }
}

async fn answer(
    State(engine): State<Engine>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> Result<Response, StatusCode> {
    let json = [("content-type", "application/json")];
    let mut mark = engine.mark.lock().unwrap_or_else(PoisonError::into_inner);
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    let told = if path.ends_with("/containers/json") && query.contains("all=true") {
        engine.lists.fetch_add(1, Ordering::Relaxed);
        return Ok((json, engine.list.clone()).into_response());
    } else if path.ends_with("/volumes/create") {
        let made: Value = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
        *mark = Some(made.clone());
        made
    } else if path.contains("/volumes/") {
        mark.clone().ok_or(StatusCode::NOT_FOUND)?
    } else if path.ends_with("/info") {
        json!({ "Name": "replay", "NCPU": 64, "MemTotal": 1_u64 << 38, "Driver": "btrfs" })
    } else if path.ends_with("/version") || path.contains("/images/") {
        json!({ "Version": "20.10.24", "ApiVersion": "1.41" })
    } else if method == Method::GET {
        // No networks, no running containers, and an answer to a ping.
        json!([])
    } else {
        return Err(StatusCode::NOT_FOUND);
    };
    Ok((json, told.to_string()).into_response())
}

/// A row of dockerd's list, with Wharf's labels.
fn container(installation: &str, id: &str) -> Value {
    let digest = id.replace('-', "").repeat(2);
    json!({
        "Id": digest, "Names": [format!("/wharf-{id}")],
        "Image": "localhost/wharf/base:1", "ImageID": format!("sha256:{digest}"),
        "Command": "/sbin/init", "Created": 1_790_000_000, "Ports": [], "Mounts": [],
        "Labels": {
            "io.wharf.installation": installation, "io.wharf.instance": id, "io.wharf.owner": "1",
            "io.wharf.incarnation": "1", "io.wharf.network": "n0a500000a1b", "io.wharf.view": "own",
            "io.wharf.spec": "0123456789abcdef",
        },
        "State": "exited", "Status": "Exited (0) 3 minutes ago",
        "HostConfig": { "NetworkMode": "wharf-n0a500000a1b" },
        "NetworkSettings": { "Networks": { "wharf-n0a500000a1b": {
            "IPAMConfig": { "IPv4Address": "10.80.0.2" }, "NetworkID": digest, "EndpointID": "",
            "Gateway": "", "IPAddress": "", "IPPrefixLen": 0, "MacAddress": "", "DriverOpts": null,
        } } },
    })
}

/// Certificates of engines and of Wharf, which trust each other.
pub struct Certificates {
    server: Arc<ServerConfig>,
    /// The setting `tls` of a node.
    pub node: String,
}

impl Certificates {
    /// Makes them, with their files in a directory.
    pub fn new(dir: &Path) -> Result<Self> {
        let own = || generate_simple_self_signed(vec!["replay".to_owned()]);
        let (engine, wharf) = (own()?, own()?);
        let mut roots = RootCertStore::empty();
        roots.add(wharf.cert.der().clone())?;
        let clients = WebPkiClientVerifier::builder(Arc::new(roots)).build()?;
        let key = engine.signing_key.serialize_der().try_into();
        let key = key.map_err(anyhow::Error::msg)?;
        let server = ServerConfig::builder().with_client_cert_verifier(clients);
        let server = server.with_single_cert(vec![engine.cert.der().clone()], key)?;
        let file = |name: &str, pem: &str| {
            let path = dir.join(name);
            wharf_secure_fs::write(&path, &[pem.as_bytes()]).map(|()| path.display().to_string())
        };
        let cert = file("wharf.crt", &wharf.cert.pem())?;
        let key = file("wharf.key", &wharf.signing_key.serialize_pem())?;
        let pinned = file("engine.crt", &engine.cert.pem())?;
        let node = format!("{{ cert = {cert:?}, key = {key:?}, server_cert = {pinned:?} }}");
        Ok(Self {
            server: Arc::new(server),
            node,
        })
    }
}

struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, from) = Listener::accept(&mut self.listener).await;
            let _ = stream.set_nodelay(true);
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The installation and the instances in the file of a simulated engine.
pub fn instances(file: &Path) -> Result<(String, Vec<String>)> {
    let text = std::fs::read_to_string(file)?;
    let mut installation = String::new();
    let mut ids = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        let of = line["machine"]["wanted"]["installation"].as_str();
        of.context("no installation")?.clone_into(&mut installation);
        ids.push(line["id"].as_str().context("no id")?.to_owned());
    }
    Ok((installation, ids))
}
