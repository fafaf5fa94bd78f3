//! Errors of guests.

use super::text::{clean, short};
use crate::bindings::types as wit;
use std::time::Duration;
use wharf_domain::driver::{PluginError, ReportedShortage};

/// Longest field name, bytes.
const MAX_FIELD: usize = 64;
/// Most shortages in one error; a request has fewer fields.
const MAX_SHORTAGES: usize = 16;
/// Shortest and longest time for which a driver can postpone a retry.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(600));

/// From a guest, with its texts cleaned and cut.
pub fn from_guest(error: wit::Error) -> PluginError {
    match error {
        wit::Error::Invalid(field) => PluginError::Invalid {
            field: clean(&field.field, MAX_FIELD),
            message: short(&field.message),
        },
        wit::Error::NotFound => PluginError::NotFound,
        wit::Error::Conflict(why) => PluginError::Conflict(short(&why)),
        wit::Error::Insufficient(list) => {
            PluginError::Insufficient(list.into_iter().take(MAX_SHORTAGES).map(shortage).collect())
        }
        wit::Error::Unreachable(why) => PluginError::Unreachable(short(&why)),
        wit::Error::Unsupported(why) => PluginError::Unsupported(short(&why)),
        wit::Error::RetryLater(ms) => {
            PluginError::RetryLater(Duration::from_millis(ms.into()).clamp(RETRY.0, RETRY.1))
        }
        wit::Error::Other(why) => PluginError::Other(short(&why)),
    }
}

fn shortage(shortage: wit::Shortage) -> ReportedShortage {
    ReportedShortage {
        field: clean(&shortage.field, MAX_FIELD),
        requested: shortage.requested,
        available: shortage.available,
    }
}
