//! What stands behind a driver's `engine` import: the one endpoint of its node, and the policy
//! that says what may be asked there. Knows nothing of guests.

mod access;
mod archive;
mod contact;
mod crypt;
mod endpoint;
mod job;
mod message;
mod node;
pub mod policy;
mod refill;
mod scope;
mod tar_stream;
#[cfg(test)]
mod tests;
mod transfer;
mod transport;
mod unix;

pub use access::Access;
pub use endpoint::{Endpoint, EndpointError};
pub use message::{Body, EngineError, JobState, Request, Response, Transfer};
pub use node::{EngineNode, OpenError};
pub use transport::{InProcessEngine, Outgoing, Transport};
pub use scope::{Creation, Scope, Subject};
