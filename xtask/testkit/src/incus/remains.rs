//! The processes of members: the daemon, those that it starts, and instances.

use super::place::Place;
use crate::process::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// From the end of an instance's first process to that of its monitor, which removes the control groups.
const MONITOR_LIMIT: Duration = Duration::from_secs(15);

/// Ends a process with TERM, and with KILL when `grace` is over.
pub(super) fn end(pid: u32, grace: Duration) {
    signal(pid, Signal::TERM);
    if !wait_until(grace, || !is_alive(pid)) {
        signal(pid, Signal::KILL);
        wait_until(Duration::from_secs(5), || !is_alive(pid));
    }
}

/// Kills a process.
pub(super) fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// The first processes of instances: they have mount namespaces of their own, and a monitor as parent.
pub(super) fn instances(file: &Path) -> Vec<u32> {
    let own = inside(file);
    processes()
        .filter(|pid| !own.contains(pid))
        .filter(|pid| parent(*pid).is_some_and(|pid| own.contains(&pid) && is_monitor(pid)))
        .collect()
}

/// Ends all processes of a member.
pub(super) fn end_all(place: &Place, member: u8) {
    let file = place.mounts(member);
    for _ in 0..20 {
        let instances = instances(&file);
        if instances.is_empty() {
            break;
        }
        for pid in &instances {
            signal(*pid, Signal::KILL);
        }
        wait_until(Duration::from_secs(2), || {
            instances.iter().all(|pid| !is_alive(*pid))
        });
    }
    // The monitors end by themselves.
    wait_until(MONITOR_LIMIT, || {
        inside(&file).iter().all(|pid| !is_monitor(*pid))
    });
    for pid in inside(&file) {
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

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
}

/// State and parent follow the name, which is in parentheses and may contain any character.
fn stat(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut rest = stat.rsplit(')').next()?.split_whitespace();
    Some((rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|(_, parent)| parent)
}

fn is_alive(pid: u32) -> bool {
    !matches!(stat(pid), None | Some(('Z' | 'X', _)))
}

fn is_monitor(pid: u32) -> bool {
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.starts_with("[lxc monitor]")
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // Fails if the process has ended.
        let _ = kill_process(pid, signal);
    }
}
