//! The gateway: it answers for the pages of instances, each on a host of its own below one domain. It decides
//! which visitor sees a page, adds the page's own credential, and so makes the checks that the page leaves out
//! for a request with that credential.

pub mod directory;
