//! Suspensions: the operator stops instances, and their owner cannot start them.

use super::error::Error;
use super::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A suspension of an instance, or of all instances of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// Words for the user.
    pub reason: String,
    /// Its begin.
    pub at: Timestamp,
}

impl Suspension {
    /// Returns the refusal of a request for an instance that is suspended alone.
    pub fn of_instance(self) -> Error {
        self.refusal("this instance")
    }

    /// Returns the refusal of a request of a user whose instances are all suspended.
    pub fn of_user(self) -> Error {
        self.refusal("all of your instances")
    }

    fn refusal(self, suspended: &'static str) -> Error {
        let reason = self.reason;
        Error::Suspended { suspended, reason }
    }
}
