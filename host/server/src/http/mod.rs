//! The REST interface: the only module that knows axum and hyper's server, and with [`respond`] the
//! only one that knows status codes.
//!
//! `server` puts it together, `listen` accepts connections, and `connection` serves one of them. `routes`
//! leads a request through the access log and authentication to an endpoint of [`crate::api`]. The `admin` service on a Unix socket serves the subcommands of `wharf`.

mod access_log;
mod activity;
mod admin;
mod admin_client;
mod asset;
mod attempts;
mod auth;
mod backups;
mod body;
mod budget;
mod client;
mod compress;
mod connection;
mod console;
mod docs;
mod endpoint;
mod enter_page;
mod entity_tags;
mod event_stream;
mod events;
mod extract;
mod forwarded;
mod hosts;
mod http_error;
mod interface;
mod kept;
mod linger;
mod list;
mod listen;
mod liveness;
mod metrics;
mod page_directory;
mod pages;
mod passkeys;
mod peers;
mod port_stream;
mod provider;
mod rate;
pub mod respond;
pub mod routes;
mod same_origin;
mod server;
mod session_cookie;
mod sign_in;
mod snapshots;
mod socket_end;
mod start_error;
mod terminal;
mod terminal_socket;
mod tls;
mod tunnel;
mod tunnel_socket;
mod unsent;
mod usage;
mod volumes;
mod webhooks;

pub use admin::AdminRouter;
pub use admin_client::{AdminClient, AdminError};
pub use extract::InPath;
pub use server::{Listeners, Server};
pub use start_error::InterfaceError;
pub use tls::{is_plain_http, warn_of_plain_http};
