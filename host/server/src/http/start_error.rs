//! Errors that keep the interface from starting.

use std::path::PathBuf;

/// An error that keeps the interface from starting.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// A TLS file cannot be used.
    #[error("setting `{setting}`: {message}")]
    Tls {
        /// The setting that names it.
        setting: &'static str,
        /// The fault, in words.
        message: String,
    },
    /// The admin service's socket cannot be opened.
    #[error("cannot listen on {path}")]
    AdminSocket {
        /// Where it should be.
        path: PathBuf,
        /// Why it cannot.
        source: std::io::Error,
    },
    /// The threads of the pages cannot be started.
    #[error("cannot start the threads of the pages")]
    PageThreads(#[source] std::io::Error),
    /// An embedded schema or document is broken.
    #[error("the built-in interface description is broken: {0}")]
    Broken(String),
}
