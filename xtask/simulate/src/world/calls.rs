//! Calls under way, and what becomes of those that nobody waits for any more.

use super::{LATE, Request, World};
use std::time::Duration;
use wharf_domain::ids::NodeId;

/// A call that Wharf waits for. A call that is dropped is not waited for any more.
pub struct InFlight<'a>(pub &'a World, pub u64);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.state.lock().in_flight.remove(&self.1);
    }
}

/// A request on its way to an engine. If nobody waits for the answer any more, the engine carries it out a little later.
pub struct Sent<'a> {
    pub world: &'a World,
    pub node: &'a NodeId,
    pub request: Option<Request>,
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            let after = self.world.state.lock().dice.below(LATE.as_millis() as u64);
            let after = Duration::from_millis(after);
            self.world.defer(self.node, request, after, false);
        }
    }
}
