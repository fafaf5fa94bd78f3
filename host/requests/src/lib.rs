//! The requests to an engine. A driver names a request of its kind's file and gives a few arguments;
//! this crate writes method, path, query and body from the file and the scope of the call.

mod learn;
mod publish;
mod scope;

pub use scope::{CallScope, CreateScope, Limits, Subject};
