//! The admin service: API keys, event logs, bills and the installation's id, for whoever may open
//! `admin.sock` in the data directory. Over it the subcommands of `wharf` work while the server has
//! the database.

use super::body::Intake;
use super::connection::{self, Handle};
use super::idle::Connections;
use super::respond::{self, Refusal, Response};
use super::server::StartError;
use crate::api::Reply;
use crate::app::{App, KeyInfo, Selector};
use crate::domain::error::{Error, FieldErrors, NON_FIELD_ERRORS};
use crate::domain::time::Timestamp;
use http::{Method, Request};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{Permissions, remove_file, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Time for head and body of a request. Its senders are on this machine.
const REQUEST_TIME: Duration = Duration::from_secs(5);

/// `POST /keys`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewKey {
    pub(super) email: String,
    #[serde(default)]
    pub(super) name: String,
}

/// Its answer. No `Debug`: it has the key.
#[derive(Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) id: String,
    pub(super) key: String,
}

/// One line of `GET /keys`; times in milliseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Key {
    id: String,
    email: String,
    name: String,
    created_at_ms: i64,
    revoked_at_ms: Option<i64>,
}

impl From<KeyInfo> for Key {
    fn from(key: KeyInfo) -> Self {
        Self {
            id: key.id,
            email: key.email,
            name: key.name,
            created_at_ms: key.created_at.0,
            revoked_at_ms: key.revoked_at.map(|at| at.0),
        }
    }
}

impl From<Key> for KeyInfo {
    fn from(key: Key) -> Self {
        Self {
            id: key.id,
            email: key.email,
            name: key.name,
            created_at: Timestamp(key.created_at_ms),
            revoked_at: key.revoked_at_ms.map(Timestamp),
        }
    }
}

/// `POST /events`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsOf {
    /// Name or UUID.
    pub(super) instance: String,
}

/// `POST /bill`; times in milliseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BillOf {
    pub(super) email: String,
    pub(super) from_ms: i64,
    pub(super) to_ms: i64,
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    let wrong = |error: serde_json::Error| FieldErrors::one(NON_FIELD_ERRORS, error.to_string());
    Ok(serde_json::from_slice(body).map_err(wrong)?)
}

/// Serves it until `stopped` turns true.
pub(super) fn start(
    path: PathBuf,
    app: Arc<App>,
    mut stopped: watch::Receiver<bool>,
) -> Result<JoinHandle<()>, StartError> {
    let listener = bind(&path).map_err(|source| StartError::AdminSocket {
        path: path.clone(),
        source,
    })?;
    Ok(tokio::spawn(async move {
        let admin = Arc::new(Admin(app));
        let builder = Arc::new(connection::builder());
        let (connections, watching) = Connections::watched(REQUEST_TIME, stopped.clone());
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopped.wait_for(|stopped| *stopped) => break,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (admin, builder) = (Arc::clone(&admin), Arc::clone(&builder));
            let activity = connections.add();
            tokio::spawn(async move {
                connection::serve(&builder, stream, admin, activity).await;
            });
        }
        let _ = remove_file(&path);
        watching.join_all().await;
    }))
}

/// The database is open, so no other server runs here: a socket that exists is left over.
fn bind(path: &PathBuf) -> std::io::Result<UnixListener> {
    match remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

struct Admin(Arc<App>);

impl Handle for Admin {
    async fn handle(&self, request: Request<Incoming>) -> Response {
        let (parts, body) = request.into_parts();
        let body = match Intake::new(body).read(REQUEST_TIME).await {
            Ok(body) => body,
            Err(refusal) => return respond::refusal(&refusal),
        };
        let keys = self.0.keys();
        let path = parts.uri.path();
        let done = match (&parts.method, path.strip_prefix("/keys/")) {
            (&Method::POST, None) if path == "/keys" => self.new_key(&body).await,
            (&Method::GET, None) if path == "/keys" => keys.list().map(|list| {
                let list: Vec<Key> = list.into_iter().map(Key::from).collect();
                respond::ok(&list)
            }),
            (&Method::DELETE, Some(id)) => {
                let revoked = keys.revoke(id).await.map_err(|error| match error {
                    Error::NotFound => FieldErrors::one("id", "no key has this id").into(),
                    other => other,
                });
                revoked.map(|()| respond::reply(Reply::Gone))
            }
            (&Method::POST, None) if path == "/events" => self.events(&body),
            (&Method::POST, None) if path == "/bill" => self.bill(&body),
            // The value of the label `io.wharf.installation` on everything it makes in engines.
            (&Method::GET, None) if path == "/installation" => {
                Ok(respond::ok(&self.0.installation))
            }
            _ => return respond::refusal(&Refusal::UnknownPath),
        };
        done.unwrap_or_else(|error| {
            if let Error::Internal(_) = &error {
                tracing::error!(error = %error.chain(), "admin service");
            }
            respond::error(&error)
        })
    }
}

impl Admin {
    fn events(&self, body: &[u8]) -> Result<Response, Error> {
        let asked: EventsOf = parse(body)?;
        let lines = self.0.events(&Selector::parse(&asked.instance))?;
        Ok(respond::ok(&lines))
    }

    fn bill(&self, body: &[u8]) -> Result<Response, Error> {
        let asked: BillOf = parse(body)?;
        let (from, to) = (Timestamp(asked.from_ms), Timestamp(asked.to_ms));
        Ok(respond::ok(&self.0.bill(&asked.email, from, to)?))
    }

    async fn new_key(&self, body: &[u8]) -> Result<Response, Error> {
        let wanted: NewKey = parse(body)?;
        let made = self.0.keys().new_key(&wanted.email, &wanted.name).await?;
        tracing::info!(id = made.id, "a key was made");
        Ok(respond::ok(&Made {
            id: made.id,
            key: made.key.expose().to_owned(),
        }))
    }
}
