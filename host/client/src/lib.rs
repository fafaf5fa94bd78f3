//! A client of Wharf's REST interface.
//!
//! The methods of [`Client`] and the [`types`] are generated from the OpenAPI document: one method for
//! each operation. A method returns a [`Request`], which [`Request::send`] sends.
//!
//! ```no_run
//! use wharf_client::{Client, Error, types};
//!
//! # async fn example() -> Result<(), Error> {
//! let client = Client::new("https://wharf.example.org", Some("wharf_...".into()))?;
//! let mut body = types::CreateRequest::new(10, 1, 1, types::ResourceType::Container);
//! body.name = Some("training-run".to_owned());
//! match client.create_instance(&body).send().await {
//!     Ok(created) => match created.body()? {
//!         types::InstanceOrState::Instance(instance) => println!("{:?}", instance.ssh_command),
//!         // The key has no scope `read`.
//!         types::InstanceOrState::ChangedInstance(changed) => println!("{}", changed.uuid),
//!     },
//!     Err(Error::Refused(refusal)) => println!("{:?}", refusal.fields),
//!     Err(other) => return Err(other),
//! }
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod client;
mod error;
mod events;
mod generated;
mod reply;
mod request;
mod secret;
mod socket;
mod terminal;
pub mod tls;
mod tunnel;
mod unreachable;

/// The OpenAPI document of the interface, as JSON.
pub const DOCUMENT: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

pub use client::Client;
pub use error::{ApiRefusal, Error};
pub use events::{EventStream, Message};
pub use generated::types;
pub use http::Method;
pub use reply::Reply;
pub use request::Request;
pub use secret::Secret;
pub use terminal::{TerminalEvent, TerminalInput, TerminalOutput, WindowSize};
pub use tunnel::{Bytes, TunnelEvent, TunnelInput, TunnelOutput};
pub use unreachable::Unreachable;
