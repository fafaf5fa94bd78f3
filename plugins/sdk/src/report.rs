//! Reports, and values that all drivers compute.

use crate::types::{Error, Phase, Report, Spec};

/// Bytes in a GiB.
pub const GIB: u64 = 1 << 30;

impl Report {
    /// A report with no further work.
    #[must_use]
    pub fn settled(generation: u64, phase: Phase) -> Self {
        Self {
            generation,
            phase,
            again_ms: None,
        }
    }

    /// A report that asks for another call.
    #[must_use]
    pub fn again(generation: u64, phase: Phase, ms: u32) -> Self {
        Self {
            generation,
            phase,
            again_ms: Some(ms),
        }
    }
}

impl Phase {
    /// Returns whether the processes of the instance run.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self, Self::Ready | Self::Booting)
    }
}

impl Spec {
    /// Returns the first GPU whose name does not have the engine's form.
    #[must_use]
    pub fn misnamed_gpu(&self, is_name: impl Fn(&str) -> bool) -> Option<&str> {
        let mut devices = self.gpu_devices.iter().map(String::as_str);
        devices.find(|device| !is_name(device))
    }
}

impl Error {
    /// The error for a size with less memory than the usage.
    #[must_use]
    pub fn memory_in_use(bytes: u64) -> Self {
        let gib = bytes.div_ceil(GIB);
        Self::invalid(
            "mem_gib",
            format!("{gib} GiB of memory are in use; free some first"),
        )
    }

    /// The error for such a size if the engine refuses it without naming the usage.
    #[must_use]
    pub fn more_memory_in_use() -> Self {
        Self::invalid(
            "mem_gib",
            "more than that is in use; free some memory first",
        )
    }
}

/// Returns the first two numbers of a version, which can be compared: `20.10.24+dfsg1` → (20, 10).
#[must_use]
pub fn version_numbers(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::version_numbers;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version_numbers("20.10.24+dfsg1"), (20, 10));
        assert!(version_numbers("1.9") < version_numbers("1.41"));
        assert!(version_numbers("6.0.4") >= (6, 0) && version_numbers("0.7") < (6, 0));
        assert!(version_numbers("1.53") > (1, 41));
        assert_eq!(version_numbers(""), (0, 0));
    }
}
