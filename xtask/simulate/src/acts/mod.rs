//! The acts by the part of the product that they are about.

pub mod backup;
pub mod instance;
pub mod machine;
pub mod operator;
pub mod page;
pub mod snapshot;
pub mod volume;
pub mod webhook;
