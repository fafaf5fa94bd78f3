//! The engines behind the drivers' `engine` import: the endpoint of each node, and the requests to it. The
//! module knows no guests.

mod access;
mod archive;
mod changes;
mod client;
mod connect;
mod contact;
mod crypt;
mod endpoint;
mod image_form;

mod job;
mod message;
mod node;
mod objects;
mod offers;
mod outgoing;
mod registries;
mod tar_header;
mod tar_path;
mod tar_pipe;
mod tar_records;
mod tar_root;
mod tar_stream;
#[cfg(test)]
mod tests;
pub mod tls;
mod trace;
mod transfer;
mod transport;

pub use access::EngineAccess;
pub use endpoint::{EndpointError, EngineEndpoint};
pub use message::{EngineError, EngineRequest, EngineResponse, JobState, WrittenRequest};
pub use node::{EngineNode, EngineOpenError};
pub use objects::{ObjectContent, ObjectSource, ObjectTarget, Piece};
pub use offers::Offers;
pub use outgoing::Outgoing;
pub use registries::{Registries, RegistryAccount, encoded, encoded_for_builds};
pub use transport::{InProcessEngine, Transport};
pub use wharf_requests::{CallScope, CallSubject, CreateScope};
