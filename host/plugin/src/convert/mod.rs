//! Conversion between the bindings and the domain. Every value from a guest is checked here, and trusted
//! afterwards.

pub mod blueprint;
pub mod driver;
pub mod flavor;
pub mod snapshots;
pub mod volumes;

use super::bindings::types as wit;
use std::time::Duration;
use wharf_domain::capacity::Size;
use wharf_domain::driver::{PluginError, ReportedShortage};
use wharf_domain::instance::ResourceType;

/// Longest text of a phase or an error, bytes.
pub const MAX_TEXT: usize = 1000;
/// Longest name of a field in an error, bytes.
const MAX_FIELD: usize = 64;
/// Most shortages in one error; a request has fewer fields.
const MAX_SHORTAGES: usize = 16;
/// Shortest and longest time for which a driver can postpone a retry.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(600));

fn resource_type_to_guest(kind: ResourceType) -> wit::ResourceType {
    match kind {
        ResourceType::Vm => wit::ResourceType::Vm,
        ResourceType::Container => wit::ResourceType::Container,
    }
}

fn resource_type_from_guest(kind: wit::ResourceType) -> ResourceType {
    match kind {
        wit::ResourceType::Vm => ResourceType::Vm,
        wit::ResourceType::Container => ResourceType::Container,
    }
}

fn size_to_guest(size: Size) -> wit::Size {
    wit::Size {
        n_vcpus: size.n_vcpus,
        mem_gib: size.mem_gib,
        disk_size_gib: size.disk_size_gib,
    }
}

fn size_from_guest(size: wit::Size) -> Size {
    Size {
        n_vcpus: size.n_vcpus,
        mem_gib: size.mem_gib,
        disk_size_gib: size.disk_size_gib,
    }
}

/// The error for an invalid answer.
fn nonsense(what: impl Into<String>) -> PluginError {
    PluginError::Fault(format!("nonsense answer: {}", what.into()))
}

/// An error of a guest, with its texts cleaned and cut.
pub fn error_from_guest(error: wit::Error) -> PluginError {
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

/// Replaces control characters by spaces, and cuts the text to `most` bytes.
pub fn clean(text: &str, most: usize) -> String {
    let mut cut = text.len().min(most);
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    let kept = text.get(..cut).unwrap_or_default();
    kept.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Cleans a text of a phase or an error.
pub fn short(text: &str) -> String {
    clean(text, MAX_TEXT)
}

/// Whether a name has only `a-z`, `0-9` and single hyphens inside.
pub fn is_kebab(text: &str, most: usize) -> bool {
    !text.is_empty()
        && text.len() <= most
        && text.split('-').all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaning() {
        assert_eq!(clean("a\nb\u{1b}[2J", 100), "a b [2J");
        assert_eq!(clean("äöü", 3), "ä");
        assert_eq!(clean("äöü", 0), "");
    }

    #[test]
    fn kebab() {
        assert!(is_kebab("data-science2", 63));
        for wrong in ["", "-a", "a-", "a--b", "A", "a_b", "ä"] {
            assert!(!is_kebab(wrong, 63), "{wrong}");
        }
        assert!(!is_kebab("aaaa", 3));
    }
}
