//! The engines behind the drivers' `engine` import: the endpoint of each node, and the policy for
//! requests to it. The module knows no guests.

mod access;
mod archive;
mod changes;
mod client;
mod connect;
mod contact;
mod crypt;
mod endpoint;

mod job;
mod message;
mod named;
mod node;
mod outgoing;
mod policy;
mod tar_pipe;
mod tar_stream;
#[cfg(test)]
mod tests;
pub mod tls;
mod trace;
mod transfer;
mod transport;

pub use access::Access;
pub use endpoint::{Endpoint, EndpointError};
pub use message::{Body, EngineError, JobState, Request, Response, Transfer};
pub use named::{NamedRequest, WrittenRequest};
pub use node::{DriverFile, EngineNode, OpenError};
pub use outgoing::Outgoing;
pub use policy::PolicyFile;
pub use transport::{InProcessEngine, Transport};
pub use wharf_requests::{CallScope, CreateScope, Subject};
