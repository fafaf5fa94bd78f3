//! The admin service: the operations of [`crate::operation`] and the installation's id, for the user
//! that owns `admin.sock` in the data directory. The subcommands of `wharf` use it while the server
//! has the database open.

use super::body;
use super::connection::{Connections, Timeouts};
use super::interface::{Interface, Shared};
use super::listen::{self, Served};
use super::respond::{self, HttpError, Response};
use super::start_error::InterfaceError;
use super::unsent::Unsent;
use crate::check::ListClaims;
use crate::command;
use crate::operation::Operation;
use axum::Router;
use axum::extract::{FromRequest, Request, State};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use prometheus_client::metrics::gauge::Gauge;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{Permissions, remove_file, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::watch;
use wharf_config::LimitsConfig;
use wharf_domain::error::{Error, FieldErrors, NON_FIELD_ERRORS};
use wharf_operations::Operator;

/// The time for the body of a request. Its sender is on this machine.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The JSON body of a request.
struct AdminJson<T>(T);

impl<T: DeserializeOwned> FromRequest<Arc<Interface>> for AdminJson<T> {
    type Rejection = Response;

    async fn from_request(request: Request, _: &Arc<Interface>) -> Result<Self, Response> {
        let body = body::read(
            request.into_body(),
            body::MAX_BYTES,
            REQUEST_TIMEOUT,
            |_| true,
        )
        .await;
        let body = body.map_err(IntoResponse::into_response)?;
        let value = serde_json::from_slice(&body).map_err(|error| {
            respond::error(&FieldErrors::one(NON_FIELD_ERRORS, error.to_string()).into())
        })?;
        Ok(Self(value))
    }
}

/// Opens it. The result serves it until `stopped` turns true.
pub(super) fn start(
    path: PathBuf,
    interface: Arc<Interface>,
    limits: LimitsConfig,
    stopped: watch::Receiver<bool>,
) -> Result<impl Future<Output = ()> + Send + 'static, InterfaceError> {
    let listener = bind(&path).map_err(|source| InterfaceError::AdminSocket {
        path: path.clone(),
        source,
    })?;
    let served = Served {
        service: Connections::new(
            router(interface),
            Timeouts::of(&limits),
            Unsent::new(u64::MAX),
            Arc::default(),
        ),
        limits,
        tls: None,
        proxies: Arc::default(),
        open: Gauge::default(),
    };
    Ok(async move {
        listen::serve(listener, |_| None, served, stopped).await;
        let _ = remove_file(&path);
    })
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

/// The routes of the admin service.
pub struct AdminRouter(Router<Arc<Interface>>);

impl AdminRouter {
    /// Adds an operation.
    pub fn with<O: Operation>(self) -> Self {
        Self(self.0.route(O::PATH, post(perform::<O>)))
    }
}

fn router(interface: Arc<Interface>) -> Router {
    let AdminRouter(router) =
        command::serve_operations(AdminRouter(Router::new())).with::<ListClaims>();
    router
        .route("/installation", get(installation))
        .fallback(async || HttpError::UnknownPath)
        .method_not_allowed_fallback(async || HttpError::UnknownPath)
        .with_state(interface)
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

async fn perform<O: Operation>(
    State(interface): Shared,
    AdminJson(operation): AdminJson<O>,
) -> Response {
    let api = &interface.api;
    let operator = Operator::of(api.app(), api.accounts());
    respond(operation.run(operator).await)
}

/// The value of the label `io.wharf.installation` on all objects of this installation in engines.
async fn installation(State(interface): Shared) -> Response {
    respond::ok(&interface.api.app().installation())
}
