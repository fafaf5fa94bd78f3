//! The domain types and rules. They do no I/O; callers pass in time and randomness.

pub mod audit;
pub mod blueprint;
pub mod capacity;
pub mod draft;
pub mod driver;
pub mod email;
pub mod error;
pub mod event;
pub mod flavor;
pub mod host_key;
pub mod ids;
pub mod instance;
pub mod ledger;
pub mod money;
pub mod month;
pub mod name;
pub mod placement;
pub mod quota;
pub mod request;
pub mod scope;
pub mod secret;
pub mod shortage;
pub mod state;
pub mod suspension;
pub mod time;
pub mod webhook;
