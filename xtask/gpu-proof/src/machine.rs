//! The features of the machine that the proof needs. Names and serial numbers stay out of the report.

use super::report::Report;
use std::fs;
use std::path::Path;
use wharf_testkit::engine::kernel_has_btrfs;

/// The namespaces that an engine makes for a container.
const NAMESPACES: [&str; 6] = ["cgroup", "ipc", "mnt", "net", "pid", "user"];

/// Adds the facts of the machine to the report.
pub(crate) fn describe(report: &mut Report) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    report.fact(
        "Machine",
        format!(
            "{}, {cores} CPUs, {} GiB RAM",
            std::env::consts::ARCH,
            memory_gib()
        ),
    );
    report.fact("Kernel", line("/proc/sys/kernel/osrelease"));
    let has = |name: &&str| Path::new("/proc/self/ns").join(name).exists();
    let namespaces: Vec<_> = NAMESPACES.into_iter().filter(has).collect();
    report.fact(
        "Namespaces",
        format!(
            "{}; at most {} user namespaces",
            namespaces.join(", "),
            line("/proc/sys/user/max_user_namespaces")
        ),
    );
    report.fact("Control groups", control_groups());
    let overlay = line("/proc/filesystems").contains("overlay");
    let yes = |known| if known { "yes" } else { "no" };
    report.fact(
        "File systems",
        format!(
            "overlay: {}, btrfs: {}, loop devices: {}",
            yes(overlay),
            yes(kernel_has_btrfs()),
            yes(Path::new("/dev/loop-control").exists())
        ),
    );
}

fn control_groups() -> String {
    let controllers = line("/sys/fs/cgroup/cgroup.controllers");
    if controllers.is_empty() {
        "version 1".to_owned()
    } else {
        format!("version 2: {controllers}")
    }
}

fn memory_gib() -> u64 {
    let table = line("/proc/meminfo");
    let kib = table
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse::<u64>().ok());
    kib.unwrap_or(0) >> 20
}

/// The text of a file in one line; empty if there is none.
fn line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
