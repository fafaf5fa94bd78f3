//! The processes of members: the daemon, those that it starts, and instances.

use crate::engine::{command_line, end, is_alive, kill, parent, processes};
use crate::process::wait_until;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// From the end of an instance's first process to that of its monitor, which removes the control groups.
const MONITOR_LIMIT: Duration = Duration::from_secs(15);

/// The first processes of instances: they have mount namespaces of their own, and a monitor as parent.
/// `file` keeps the mount namespace of their member.
fn instances(file: &Path) -> Vec<u32> {
    let own = inside(file);
    processes()
        .filter(|pid| !own.contains(pid))
        .filter(|pid| parent(*pid).is_some_and(|pid| own.contains(&pid) && is_monitor(pid)))
        .collect()
}

/// Ends all processes of a member.
pub(super) fn end_all(file: &Path) {
    for _ in 0..20 {
        let instances = instances(file);
        if instances.is_empty() {
            break;
        }
        instances.iter().for_each(|pid| kill(*pid));
        wait_until(Duration::from_secs(2), || {
            instances.iter().all(|pid| !is_alive(*pid))
        });
    }
    // The monitors end by themselves.
    wait_until(MONITOR_LIMIT, || {
        inside(file).iter().all(|pid| !is_monitor(*pid))
    });
    for pid in inside(file) {
        end(pid, Duration::from_secs(10));
    }
}

/// The processes in the mount namespace that this file keeps.
fn inside(file: &Path) -> BTreeSet<u32> {
    let Ok(namespace) = fs::metadata(file) else {
        return BTreeSet::new();
    };
    // Without a namespace, it is a plain file.
    processes()
        .filter(|pid| {
            let own = fs::metadata(format!("/proc/{pid}/ns/mnt"));
            own.is_ok_and(|own| own.ino() == namespace.ino() && own.dev() == namespace.dev())
        })
        .collect()
}

fn is_monitor(pid: u32) -> bool {
    command_line(pid).is_some_and(|line| line.starts_with("[lxc monitor]"))
}
