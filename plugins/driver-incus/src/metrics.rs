//! The engine's metrics in the text format of OpenMetrics, one sample a line:
//! `incus_procs_total{name="N",project="P",type="container"} 3`.

use std::collections::BTreeSet;

/// Every running instance has one sample of it.
const PROCESSES: &str = "incus_procs_total{";
const MEMORY_AVAILABLE: &str = "incus_memory_MemAvailable_bytes{";
const MEMORY_TOTAL: &str = "incus_memory_MemTotal_bytes{";
/// Files in memory. The engine counts them as cache, hence as available.
const MEMORY_SHARED: &str = "incus_memory_Shmem_bytes{";

/// The names of all running instances.
pub fn running(text: &[u8]) -> BTreeSet<&str> {
    samples(text, PROCESSES)
        .filter(|(_, value)| *value > 0)
        .map(|(name, _)| name)
        .collect()
}

/// The memory of an instance that the kernel cannot reclaim, in bytes.
pub fn memory_used(text: &[u8], name: &str) -> Option<u64> {
    let of = |family| {
        let mut all = samples(text, family);
        all.find(|(named, _)| *named == name)
            .map(|(_, value)| value)
    };
    let unavailable = of(MEMORY_TOTAL)?.saturating_sub(of(MEMORY_AVAILABLE)?);
    Some(unavailable + of(MEMORY_SHARED).unwrap_or(0))
}

/// Names and values of one family.
fn samples<'a>(text: &'a [u8], family: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(move |line| {
        let rest = line.strip_prefix(family.as_bytes())?;
        let rest = std::str::from_utf8(rest).ok()?;
        let (labels, value) = rest.rsplit_once("} ")?;
        let name = labels
            .split(',')
            .find_map(|label| label.strip_prefix("name=\""))?;
        Some((name.strip_suffix('"')?, whole(value)?))
    })
}

/// `5.3340569e+08` → 533 340 569. Values beyond 2^53 are not exact.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn whole(value: &str) -> Option<u64> {
    const MAX: f64 = 1e18;
    let value: f64 = value.trim().parse().ok()?;
    (0.0..MAX).contains(&value).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::{memory_used, running};

    const TEXT: &str = "\
# HELP incus_procs_total The number of running processes.
incus_memory_MemAvailable_bytes{name=\"a\",project=\"wharf\",type=\"container\"} 5.33405696e+08
incus_memory_MemTotal_bytes{name=\"a\",project=\"wharf\",type=\"container\"} 5.36870912e+08
incus_memory_Shmem_bytes{name=\"a\",project=\"wharf\",type=\"container\"} 4096
incus_procs_total{name=\"a\",project=\"wharf\",type=\"container\"} 3
incus_procs_total{name=\"b\",project=\"wharf\",type=\"container\"} 0
incus_uptime_seconds 12
";

    #[test]
    fn running_instances_have_processes() {
        let names: Vec<_> = running(TEXT.as_bytes()).into_iter().collect();
        assert_eq!(names, ["a"]);
        assert!(running(b"\xff\nx{name=").is_empty());
    }

    #[test]
    fn memory_in_use_is_the_part_that_is_not_available() {
        assert_eq!(memory_used(TEXT.as_bytes(), "a"), Some(3_469_312));
        assert_eq!(memory_used(TEXT.as_bytes(), "b"), None);
    }
}
