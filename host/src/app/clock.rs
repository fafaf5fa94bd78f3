//! The wall clock.

use crate::domain::time::Timestamp;

/// Now.
pub fn now() -> Timestamp {
    Timestamp(chrono::Utc::now().timestamp_millis())
}
