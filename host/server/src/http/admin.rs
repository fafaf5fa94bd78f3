//! The admin service: API keys, event logs, bills and the installation's id, for the user that owns
//! `admin.sock` in the data directory. The subcommands of `wharf` use it while the server has the
//! database open.

use super::body;
use super::listen::{self, Served};
use super::respond::{self, HttpError, Response};
use super::start_error::StartError;
use super::unsent::Unsent;
use crate::api::Reply;
use axum::Router;
use axum::extract::{FromRequest, Path, Request, State};
use axum::response::IntoResponse;
use axum::routing::{delete, get, post};
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
use wharf_config::Limits;
use wharf_control::{App, KeyInfo, Selector};
use wharf_domain::error::{Error, FieldErrors, NON_FIELD_ERRORS};
use wharf_domain::time::Timestamp;

/// The time for the body of a request. Its sender is on this machine.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// `POST /keys`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewKey {
    pub(super) email: String,
    #[serde(default)]
    pub(super) name: String,
}

/// The response to `POST /keys`. It has no `Debug`, since it contains the key.
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

/// The JSON body of a request.
struct AdminJson<T>(T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for AdminJson<T> {
    type Rejection = Response;

    async fn from_request(request: Request, _: &Arc<App>) -> Result<Self, Response> {
        let body = body::read(request.into_body(), REQUEST_TIMEOUT).await;
        let body = body.map_err(IntoResponse::into_response)?;
        let value = serde_json::from_slice(&body).map_err(|error| {
            respond::error(&FieldErrors::one(NON_FIELD_ERRORS, error.to_string()).into())
        })?;
        Ok(Self(value))
    }
}

/// Serves it until `stopped` turns true.
pub(super) fn start(
    path: PathBuf,
    app: Arc<App>,
    limits: Limits,
    stopped: watch::Receiver<bool>,
) -> Result<JoinHandle<()>, StartError> {
    let listener = bind(&path).map_err(|source| StartError::AdminSocket {
        path: path.clone(),
        source,
    })?;
    let served = Served {
        router: router(app),
        limits,
        tls: None,
        unsent: Unsent::new(u64::MAX),
    };
    Ok(tokio::spawn(async move {
        listen::serve(listener, |_| None, served, stopped).await;
        let _ = remove_file(&path);
    }))
}

/// Opens the socket. A socket that exists is left over: the database is open, so no other server
/// runs.
fn bind(path: &PathBuf) -> std::io::Result<UnixListener> {
    match remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

type Shared = State<Arc<App>>;

fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/keys", get(list_keys).post(new_key))
        .route("/keys/{id}", delete(revoke_key))
        .route("/events", post(events))
        .route("/bill", post(bill))
        .route("/installation", get(installation))
        .fallback(async || HttpError::UnknownPath)
        .method_not_allowed_fallback(async || HttpError::UnknownPath)
        .with_state(app)
}

fn respond<T: Serialize>(result: Result<T, Error>) -> Response {
    match result {
        Ok(value) => respond::ok(&value),
        Err(error) => {
            if let Error::Internal(_) = &error {
                tracing::error!(error = %error.chain(), "admin service");
            }
            respond::error(&error)
        }
    }
}

async fn list_keys(State(app): Shared) -> Response {
    let list = app.keys().list();
    respond(list.map(|list| list.into_iter().map(Key::from).collect::<Vec<_>>()))
}

async fn new_key(State(app): Shared, AdminJson(wanted): AdminJson<NewKey>) -> Response {
    let made = app.keys().new_key(&wanted.email, &wanted.name).await;
    respond(made.map(|made| {
        tracing::info!(id = made.id, "API key created");
        Made {
            id: made.id,
            key: made.key.expose().to_owned(),
        }
    }))
}

async fn revoke_key(State(app): Shared, Path(id): Path<String>) -> Response {
    match app.keys().revoke(&id).await {
        Ok(()) => respond::reply(Reply::Gone),
        Err(Error::NotFound) => {
            respond::error(&FieldErrors::one("id", "no key has this id").into())
        }
        Err(error) => respond::<()>(Err(error)),
    }
}

async fn events(State(app): Shared, AdminJson(asked): AdminJson<EventsOf>) -> Response {
    respond(app.events(&Selector::parse(&asked.instance)))
}

async fn bill(State(app): Shared, AdminJson(asked): AdminJson<BillOf>) -> Response {
    let (from, to) = (Timestamp(asked.from_ms), Timestamp(asked.to_ms));
    respond(app.bill(&asked.email, from, to))
}

/// The value of the label `io.wharf.installation` on all objects of this installation in engines.
async fn installation(State(app): Shared) -> Response {
    respond::ok(&app.installation())
}
