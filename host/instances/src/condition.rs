//! Conditions of requests (`If-Match`). They are decided within the write, so that no other change can
//! come between the decision and the change.

use super::find::{Selector, find};
use super::read::Viewer;
use super::{App, InstanceView};
use std::sync::Arc;
use wharf_db::Read;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::instance::Instance;
use wharf_ground::caller::Caller;

type Check = dyn Fn(&InstanceView) -> Result<bool, Error> + Send + Sync;

/// A condition on the instance that a request changes. The default one always holds.
#[derive(Clone, Default)]
pub struct InstanceCondition(Option<Arc<Check>>);

impl InstanceCondition {
    /// Creates a condition from a function that decides whether it holds.
    pub fn new(
        check: impl Fn(&InstanceView) -> Result<bool, Error> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(check)))
    }
}

/// The instance that a request changes, with the condition of the request.
pub(super) struct InstanceTarget {
    owner: UserId,
    selector: Selector,
    check: Option<(Arc<Check>, Viewer)>,
}

impl App {
    pub(super) fn target(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
    ) -> InstanceTarget {
        InstanceTarget {
            owner: caller.user,
            selector: selector.clone(),
            check: condition
                .0
                .clone()
                .map(|check| (check, self.viewer(caller))),
        }
    }
}

impl InstanceTarget {
    /// Finds the instance. Fails if the condition does not hold for it.
    pub(super) fn find(&self, rows: &impl Read) -> Result<Instance, Error> {
        let instance = find(rows, self.owner, &self.selector)?;
        if let Some((check, viewer)) = &self.check
            && !check(&viewer.view(rows, instance.clone()))?
        {
            return Err(Error::PreconditionFailed);
        }
        Ok(instance)
    }
}
