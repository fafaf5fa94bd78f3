//! The gateway: it answers for the pages of instances, each on a host of its own below one domain. It decides
//! which visitor sees a page, and adds the page's own credential. A page leaves out its checks for requests with
//! that credential, so the gateway makes them.

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
pub mod one_page;
mod provenance;
mod report;
mod ticket;
mod to_page;
mod upstream;
mod web_socket;
mod wire;

pub use address::Addresses;
pub use connection::AcceptedConnection;
pub use exchange::PageLimits;
pub use gateway::{ClientAddress, CookieKey, Gateway, GatewaySettings};
pub use ticket::PageInBrowser;
