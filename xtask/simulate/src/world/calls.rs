//! Calls under way, and what becomes of those that nobody waits for any more.

use super::{LATE, Request, World};
use crate::dice::Dice;
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
    /// The number of the call.
    pub call: u64,
    pub node: &'a NodeId,
    pub request: Option<Request>,
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            // Each call has its own dice: the end of a runtime drops its tasks in an order that depends on other runtimes.
            let (seed, call) = (self.world.state.lock().seed, self.call);
            let mut dice = Dice::of_part(seed, &format!("late call {call}"));
            let after = Duration::from_millis(dice.below(LATE.as_millis() as u64));
            self.world.defer(call, self.node, request, after, false);
        }
    }
}
