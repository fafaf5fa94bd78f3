//! A directory with one public page, for tests and measurements.

use crate::directory::{Directory, NoVisitor, Page, Right, Visitor};
use std::net::IpAddr;
use wharf_domain::ids::InstanceId;
use wharf_domain::secret::SecretText;

/// The page under all labels, and the right of all visitors.
#[derive(Debug, Clone)]
pub struct OnePage(pub Page, pub Right);

impl Directory for OnePage {
    fn page(&self, _: &str) -> Option<Page> {
        Some(self.0.clone())
    }

    fn right(&self, _: &Page, _: &Visitor) -> Option<Right> {
        Some(self.1)
    }

    fn visitor_with_password(
        &self,
        _: &Page,
        _: &SecretText,
        _: IpAddr,
    ) -> Result<Visitor, NoVisitor> {
        Err(NoVisitor::Wrong)
    }

    fn refuse_password(&self, _: &str, _: IpAddr) -> NoVisitor {
        NoVisitor::Wrong
    }

    fn console_url(&self, _: InstanceId) -> String {
        String::new()
    }
}
