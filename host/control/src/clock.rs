//! The wall clock.

use wharf_domain::time::Timestamp;

/// Returns the current time.
pub fn now() -> Timestamp {
    Timestamp(chrono::Utc::now().timestamp_millis())
}
