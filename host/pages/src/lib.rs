//! The gateway: it answers for the pages of instances, each on a host of its own below one domain. It decides
//! which visitor sees a page, adds the page's own credential, and so makes the checks that the page leaves out
//! for a request with that credential.

mod address;
mod answer;
mod body;
mod connection;
mod cookie;
pub mod directory;
mod entrance;
mod exchange;
mod flow;
mod from_page;
mod gateway;
mod hop;
mod provenance;
mod report;
mod ticket;
mod to_page;
mod upstream;
mod web_socket;

pub use address::Addresses;
pub use connection::Accepted;
pub use exchange::Limits;
pub use gateway::{ClientAddress, CookieKey, Gateway, Settings};
