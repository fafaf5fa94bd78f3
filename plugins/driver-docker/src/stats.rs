//! The usage of an instance.

use crate::api::model::{MemoryStats, Stats};
use crate::context::Context;
use crate::found::{Found, find};
use chrono::DateTime;
use wharf_guest::{Error, Tag, Usage};

/// See the `driver` interface.
///
/// # Errors
/// See the `driver` interface; [`Error::Conflict`] if the instance does not run.
pub fn stats(ctx: &Context, tag: &Tag, disk: bool) -> Result<Usage, Error> {
    let found = find(ctx, tag, disk)?.ok_or(Error::NotFound)?;
    if !found.is_up() {
        return Err(not_running());
    }
    let stats = sample(ctx, &found.name)?;
    Ok(Usage {
        cpu_ns: stats.cpu_stats.cpu_usage.total_usage,
        // An engine reports zeros for a container that has just stopped.
        at_ns: nanos(&stats.read).ok_or_else(not_running)?,
        mem_used_bytes: held(ctx, &found.name, &stats.memory_stats)?,
        disk_used_bytes: found
            .details
            .size_rw
            .and_then(|n| n.try_into().ok())
            .unwrap_or(0),
    })
}

/// Memory of an instance beyond the resident memory of its processes and `/dev/shm`. It covers `/dev`,
/// the only other tmpfs mount open to users, at 64 MiB, and the kernel's own use.
const NOT_RESIDENT: u64 = 128 << 20;

/// Memory that the instance holds. Podman includes the page cache and does not report its size, so
/// the resident memory of the processes stands in.
fn held(ctx: &Context, name: &str, memory: &MemoryStats) -> Result<u64, Error> {
    without_cache(ctx, name, memory, 0)
}

/// Returns an upper bound of the memory that the instance holds.
pub fn needed(ctx: &Context, found: &Found, memory: &MemoryStats) -> Result<u64, Error> {
    let shared = u64::try_from(found.details.host_config.shm_size).unwrap_or(0);
    without_cache(ctx, &found.name, memory, NOT_RESIDENT + shared)
}

/// Memory in use. Where only resident memory is known, `beside` is added to it.
fn without_cache(
    ctx: &Context,
    name: &str,
    memory: &MemoryStats,
    beside: u64,
) -> Result<u64, Error> {
    if memory.stats.as_ref().is_some_and(|stats| !stats.is_empty()) {
        return Ok(used(memory));
    }
    Ok(match ctx.api.resident(name)? {
        Ok(processes) => memory.usage.min(processes.bytes().saturating_add(beside)),
        Err(_) => memory.usage,
    })
}

/// Reads one sample.
///
/// # Errors
/// When the engine has no sample.
pub fn sample(ctx: &Context, name: &str) -> Result<Stats, Error> {
    match ctx.api.stats(name)? {
        Ok(stats) => Ok(stats),
        Err(refusal) if refusal.is_not_found() => Err(Error::NotFound),
        Err(refusal) => Err(refusal.during("reading usage")),
    }
}

/// Memory in use, without the page cache that the kernel can reclaim. The counter's name depends on
/// the version of cgroups; Podman sends neither.
fn used(memory: &MemoryStats) -> u64 {
    let counters = memory.stats.as_ref();
    let cache = ["total_inactive_file", "inactive_file"]
        .iter()
        .find_map(|name| counters?.get(*name))
        .copied();
    memory.usage.saturating_sub(cache.unwrap_or(0))
}

/// Nanoseconds since 1970. None if the timestamp is invalid, before 1970 or after 2262.
fn nanos(timestamp: &str) -> Option<u64> {
    let time = DateTime::parse_from_rfc3339(timestamp).ok()?;
    time.timestamp_nanos_opt()?.try_into().ok()
}

fn not_running() -> Error {
    Error::Conflict("the instance does not run".into())
}

#[cfg(test)]
mod tests {
    use super::{nanos, used};
    use crate::api::model::MemoryStats;

    fn memory(usage: u64, counters: &[(&str, u64)]) -> MemoryStats {
        let stats = counters
            .iter()
            .map(|(name, n)| ((*name).to_owned(), *n))
            .collect();
        MemoryStats {
            usage,
            stats: Some(stats),
            ..MemoryStats::default()
        }
    }

    #[test]
    fn reclaimable_cache_is_not_in_use() {
        assert_eq!(used(&memory(100, &[("inactive_file", 30)])), 70);
        assert_eq!(
            used(&memory(
                100,
                &[("inactive_file", 1), ("total_inactive_file", 30)]
            )),
            70
        );
        assert_eq!(used(&memory(100, &[])), 100);
        assert_eq!(used(&memory(10, &[("inactive_file", 30)])), 0);
        assert_eq!(
            used(&MemoryStats {
                usage: 5,
                ..MemoryStats::default()
            }),
            5
        );
    }

    #[test]
    fn timestamps_of_engines_are_parsed() {
        assert_eq!(nanos("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(
            nanos("2026-11-21T05:22:03.64060921Z"),
            Some(1_795_238_523_640_609_210)
        );
        assert_eq!(
            nanos("2024-02-29T23:59:60.5+01:00"),
            Some(1_709_247_600_500_000_000)
        );
        assert_eq!(
            nanos("2000-03-01T00:00:00.1234567899Z"),
            Some(951_868_800_123_456_789)
        );
    }

    #[test]
    fn invalid_timestamps_are_none() {
        let cases = [
            "",
            "now",
            "2026-11-21",
            "2026-13-01T00:00:00Z",
            "2026-11-21T05:22Z",
            "0001-01-01T00:00:00Z",
            "2026-11-21T05:22:03",
            "2026-11-21T05:22:03.xZ",
            "é-11-21T05:22:03Z",
            "9999-12-31T00:00:00Z",
            "2026-11-21T05:22:03.123456é89Z",
        ];
        for text in cases {
            assert_eq!(nanos(text), None, "{text}");
        }
    }
}
