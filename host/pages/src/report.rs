//! The report of each answer, for the log and the metrics of Wharf.

use crate::directory::{Answered, Directory};
use http::Method;
use std::net::IpAddr;
use std::time::Instant;
use wharf_domain::ids::UserId;

/// A request in progress. It is reported when this is dropped, also if the visitor goes away.
pub(crate) struct Report<'a> {
    pub(crate) directory: &'a dyn Directory,
    pub(crate) begun: Instant,
    pub(crate) method: Method,
    pub(crate) client: IpAddr,
    pub(crate) label: Option<String>,
    pub(crate) user: Option<UserId>,
    pub(crate) status: Option<u16>,
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        self.directory.answered(&Answered {
            method: &self.method,
            label: self.label.as_deref(),
            status: self.status,
            elapsed: self.begun.elapsed(),
            client: self.client,
            user: self.user,
        });
    }
}
