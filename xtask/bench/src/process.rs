//! CPU time and memory of a process.

use std::fs;
use std::time::Duration;

/// The CPU time of all threads of a process.
pub fn cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in parentheses, may contain any character.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|n| n.parse::<u64>().ok()).sum();
    Duration::from_secs(ticks)
        / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100)
}

/// The anonymous memory of a process, KiB.
pub fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mut lines = status
        .lines()
        .filter_map(|line| line.strip_prefix("RssAnon:"));
    let kib = lines.next().and_then(|rest| rest.split_whitespace().next());
    kib.and_then(|n| n.parse().ok()).unwrap_or(0)
}
