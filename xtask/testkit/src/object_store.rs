//! A server of S3 on the loopback network, which keeps objects in a directory and can misbehave.

use anyhow::{Context as _, Result};
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpError, HttpResponse};
use s3s_fs::FileSystem;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, iter, mem};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// The access key of the server.
pub const ACCESS_KEY_ID: &str = "wharf-test-key";
pub const SECRET_ACCESS_KEY: &str = "wharf-test-secret-access-key";
/// Its bucket, which is there from the start.
pub const BUCKET: &str = "kept";

/// A server, which ends when it is dropped.
pub struct ObjectStore {
    pub url: String,
    directory: PathBuf,
    state: Arc<State>,
    _stop: oneshot::Sender<()>,
}

/// The misbehaviour of a server.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// It answers with a status and a code of S3.
    Answer(u16, &'static str),
    /// Its answer breaks off half-way.
    Cut,
    /// It tells a success, and does nothing.
    Lie,
    /// It never answers.
    Hang,
}

#[derive(Default)]
struct State {
    /// The faults to come: part of the request, number of requests, fault.
    faults: Mutex<Vec<(String, usize, Fault)>>,
    requests: Mutex<Vec<String>>,
    /// The uploads that have not ended, with their objects.
    uploads: Mutex<BTreeMap<String, String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ObjectStore {
    /// Starts a server with its objects in a directory.
    pub fn start(directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory.join(BUCKET))?;
        let files = FileSystem::new(directory);
        let files = files.map_err(|error| anyhow::anyhow!("cannot keep objects: {error:?}"))?;
        let mut service = S3ServiceBuilder::new(files);
        // Tests show Wharf other clocks.
        let mut config = S3Config::default();
        config.presigned_url_max_skew_time_secs = u32::MAX;
        service.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY_ID, SECRET_ACCESS_KEY));
        let service = service.build();
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let state = Arc::new(State::default());
        let (stop, stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let served = Arc::clone(&state);
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    result = serve(listener, service, served) => drop(result),
                }
            });
        };
        let thread = std::thread::Builder::new().name("objects".to_owned());
        thread.spawn(serve).context("no thread for objects")?;
        Ok(Self {
            url,
            directory: directory.to_owned(),
            state,
            _stop: stop,
        })
    }

    /// Misbehaves in the next requests that contain a text, such as `PUT /kept/`.
    pub fn misbehave(&self, request: &str, times: usize, fault: Fault) {
        lock(&self.state.faults).push((request.to_owned(), times, fault));
    }

    /// Behaves from now on.
    pub fn behave(&self) {
        lock(&self.state.faults).clear();
    }

    /// Takes the requests since the last call: method, path and query without the signature.
    pub fn requests(&self) -> Vec<String> {
        mem::take(&mut lock(&self.state.requests))
    }

    /// Returns the objects whose uploads have not ended.
    pub fn uploads(&self) -> Vec<String> {
        lock(&self.state.uploads).values().cloned().collect()
    }

    /// The file of an object.
    pub fn file(&self, object: &str) -> PathBuf {
        self.directory.join(BUCKET).join(object)
    }
}

async fn serve(listener: TcpListener, service: S3Service, state: Arc<State>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let (service, state) = (service.clone(), Arc::clone(&state));
        tokio::spawn(async move {
            let handle = service_fn(|request| handle(&service, &state, request));
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), handle);
            let _ = served.await;
        });
    }
}

async fn handle(
    service: &S3Service,
    state: &State,
    request: Request<Incoming>,
) -> Result<HttpResponse, HttpError> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let query = uri.query().unwrap_or_default().split('&');
    let query: Vec<_> = query.filter(|pair| !pair.starts_with("X-Amz-")).collect();
    let line = format!("{method} {}?{}", uri.path(), query.join("&"));
    lock(&state.requests).push(line.clone());
    let fault = {
        let mut faults = lock(&state.faults);
        let mut faults = faults.iter_mut();
        let fault = faults.find(|(text, times, _)| *times > 0 && line.contains(text));
        fault.map(|(_, times, fault)| {
            *times -= 1;
            *fault
        })
    };
    match fault {
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Answer(status, code)) => {
            let _ = request.into_body().collect().await;
            let message = format!("told to, {ACCESS_KEY_ID}");
            let xml = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
            return answer(status, xml);
        }
        Some(Fault::Lie) => {
            let _ = request.into_body().collect().await;
            return answer(200, "<CompleteMultipartUploadResult/>".to_owned());
        }
        Some(Fault::Cut) | None => {}
    }
    let upload = query.iter().find_map(|pair| pair.strip_prefix("uploadId="));
    if method == Method::GET && query.iter().any(|pair| pair.starts_with("uploads")) {
        return answer(200, list(state));
    }
    let response = service.call(request.map(Body::from)).await?;
    let begins = query.iter().any(|pair| pair.starts_with("uploads"));
    let ends = [Method::DELETE, Method::POST].contains(&method) && response.status().is_success();
    if !begins && fault.is_none() {
        if let Some(upload) = upload.filter(|_| ends) {
            lock(&state.uploads).remove(upload);
        }
        return Ok(response);
    }
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(HttpError::new)?;
    let body = body.to_bytes();
    if begins {
        let xml = String::from_utf8_lossy(&body);
        let id = xml.split_once("<UploadId>");
        let id = id.and_then(|(_, rest)| rest.split_once("</UploadId>"));
        let object = uri.path().strip_prefix(&format!("/{BUCKET}/"));
        if let (Some((id, _)), Some(object)) = (id, object) {
            lock(&state.uploads).insert(id.to_owned(), object.to_owned());
        }
    }
    let body = match fault {
        Some(_) => {
            let half = body.slice(..body.len() / 2);
            let broken = io::Error::from(io::ErrorKind::ConnectionReset);
            let frames = iter::once(Ok(Frame::data(half))).chain(iter::once(Err(broken)));
            Body::http_body(StreamBody::new(stream::iter(frames.collect::<Vec<_>>())))
        }
        None => Body::from(body),
    };
    Ok(Response::from_parts(head, body))
}

fn answer(status: u16, xml: String) -> Result<HttpResponse, HttpError> {
    let response = Response::builder().status(status).header("etag", "\"0\"");
    response
        .body(Body::from(xml))
        .map_err(|error| HttpError::new(error.into()))
}

/// The listing of uploads, which the server itself has not.
fn list(state: &State) -> String {
    let mut xml = "<ListMultipartUploadsResult>".to_owned();
    for (id, object) in lock(&state.uploads).iter() {
        xml += &format!("<Upload><Key>{object}</Key><UploadId>{id}</UploadId></Upload>");
    }
    xml + "</ListMultipartUploadsResult>"
}
