//! CPU time and memory of a process.

use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::time::Duration;

/// The CPU time of all threads of a process; zero if it has ended. A short look takes less than a tick of
/// `/proc`.
pub fn cpu_time(pid: u32) -> Duration {
    let pid = Pid::from_raw(pid.cast_signed());
    let time = clock_getcpuclockid(pid).and_then(|clock| clock.now());
    time.map_or(Duration::ZERO, Duration::from)
}

/// The anonymous memory of a process, KiB.
pub fn resident_kib(pid: u32) -> u64 {
    status_kib(pid, "RssAnon:")
}

/// The most memory of a process so far, KiB.
pub fn peak_kib(pid: u32) -> u64 {
    status_kib(pid, "VmHWM:")
}

/// Makes the present memory of a process its peak, and returns it, KiB.
pub fn forget_peak(pid: u32) -> io::Result<u64> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")?;
    Ok(peak_kib(pid))
}

fn status_kib(pid: u32, line: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mut lines = status.lines().filter_map(|text| text.strip_prefix(line));
    let kib = lines.next().and_then(|rest| rest.split_whitespace().next());
    kib.and_then(|n| n.parse().ok()).unwrap_or(0)
}
