//! The REST interface on the network: the only place that knows hyper's server, and with
//! [`respond`] the only one that knows status codes.
//!
//! A request goes `server` → `connection` → `handler` (the order of all checks) → `router` →
//! an endpoint of [`crate::api`] → [`respond`]. Beside it, on a socket for the operator alone, is
//! the `admin` service, through which `wharf key` makes keys while the server runs.

mod admin;
mod admin_client;
mod auth;
mod body;
mod connection;
mod docs;
pub mod fuzz;
mod gzip;
mod handler;
mod idle;
mod line;
mod listen;
mod media_type;
mod request_id;
pub mod respond;
mod router;
mod server;
mod tls;

pub use admin_client::{AdminClient, AdminError};
pub use server::{Server, StartError};
