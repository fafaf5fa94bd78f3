//! The methods and types that the build script generates.

mod operations {
    include!(concat!(env!("OUT_DIR"), "/operations.rs"));
}

#[allow(clippy::all, clippy::unwrap_used, missing_docs)]
pub mod types {
    include!(concat!(env!("OUT_DIR"), "/types.rs"));
}
