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

type Check<V> = dyn Fn(&V) -> Result<bool, Error> + Send + Sync;

/// A condition on the object that a request changes. The default one always holds.
pub struct Condition<V>(Option<Arc<Check<V>>>);

/// A condition on an instance.
pub type InstanceCondition = Condition<InstanceView>;

impl<V> Clone for Condition<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V> Default for Condition<V> {
    fn default() -> Self {
        Self(None)
    }
}

impl<V> Condition<V> {
    /// Creates a condition from a function that decides whether it holds.
    pub fn new(check: impl Fn(&V) -> Result<bool, Error> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Fails if the condition does not hold.
    pub(crate) fn check(&self, view: impl FnOnce() -> Result<V, Error>) -> Result<(), Error> {
        match &self.0 {
            Some(check) if !check(&view()?)? => Err(Error::PreconditionFailed),
            _ => Ok(()),
        }
    }
}

/// The instance that a request changes, with the condition of the request.
pub(super) struct InstanceTarget {
    owner: UserId,
    selector: Selector,
    condition: InstanceCondition,
    viewer: Viewer,
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
            condition: condition.clone(),
            viewer: self.viewer(caller),
        }
    }
}

impl InstanceTarget {
    /// Finds the instance. Fails if the condition does not hold for it.
    pub(super) fn find(&self, rows: &impl Read) -> Result<Instance, Error> {
        let instance = find(rows, self.owner, &self.selector)?;
        let view = || Ok(self.viewer.view(rows, instance.clone()));
        self.condition.check(view)?;
        Ok(instance)
    }
}
