//! Processes of engines. Those of a killed run are found by the engine's directory in their arguments.

use super::layout::Layout;
use crate::process::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The ids of all processes.
pub(crate) fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
}

/// State and parent follow the name, which is in parentheses and may contain any character.
fn stat(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut rest = stat.rsplit(')').next()?.split_whitespace();
    Some((rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
}

/// The parent of a process.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|(_, parent)| parent)
}

/// Whether a process is alive; a zombie is not.
pub(crate) fn is_alive(pid: u32) -> bool {
    !matches!(stat(pid), None | Some(('Z' | 'X', _)))
}

/// Ends a process with TERM, and with KILL when `grace` is over.
pub(crate) fn end(pid: u32, grace: Duration) {
    signal(pid, Signal::TERM);
    if !wait_until(grace, || !is_alive(pid)) {
        kill(pid);
        wait_until(Duration::from_secs(5), || !is_alive(pid));
    }
}

/// Kills a process, without waiting for its end.
pub(crate) fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // Fails if the process has ended.
        let _ = kill_process(pid, signal);
    }
}

/// The process whose id is in this file, if its command line has the text.
pub(super) fn of_pidfile(file: &Path, has: impl Fn(&str) -> bool) -> Option<u32> {
    let pid = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (is_alive(pid) && command_line(pid).is_some_and(|line| has(&line))).then_some(pid)
}

/// The engine process of an earlier run, if the process in the pid file is one.
pub(super) fn old_daemon(layout: &Layout) -> Option<u32> {
    of_pidfile(&layout.pidfile(), |line| names(line, &layout.run))
}

/// Ends the engine's containerd if it outlived dockerd. Removes its pid file, because the next dockerd
/// would wait for an unrelated process. Containers go on running.
pub(super) fn end_containerd(layout: &Layout) {
    let directory = layout.exec_root().join("containerd");
    for pid in with_argument_below(&directory) {
        if command_line(pid).is_some_and(|line| !line.contains("containerd-shim")) {
            end(pid, Duration::from_secs(5));
        }
    }
    let _ = fs::remove_file(directory.join("containerd.pid"));
}

/// Ends all processes of an engine, those of containers included: those with an argument below `run`,
/// and those whose runtime state is below `exec_root`.
pub fn end_all(run: &Path, exec_root: &Path) {
    for pid in with_argument_below(run) {
        end(pid, Duration::from_secs(2));
    }
    for (pid, container) in first_processes(exec_root) {
        let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        if cgroup.contains(&container) {
            end(pid, Duration::ZERO);
        }
    }
}

fn with_argument_below(directory: &Path) -> Vec<u32> {
    all()
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| command_line(*pid).is_some_and(|line| names(&line, directory)))
        .collect()
}

/// Whether an argument is `directory` or a path below it.
fn names(command_line: &str, directory: &Path) -> bool {
    command_line.split('\0').any(|argument| {
        let path = argument.rsplit(['=', '@']).next().unwrap_or(argument);
        let path = path.strip_prefix("unix://").unwrap_or(path);
        Path::new(path).starts_with(directory)
    })
}

/// The arguments of a process.
pub(crate) fn command_line(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first process of each container whose runtime state is below `directory`, with its id:
/// `ID/init.pid` under dockerd, `ID/userdata/pidfile` under Podman.
fn first_processes(directory: &Path) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && entry.file_name() != "rootfs" {
            found.extend(first_processes(&path));
        } else if let Some(id) = container_of(&path)
            && let Some(pid) = fs::read_to_string(&path)
                .ok()
                .and_then(|text| text.trim().parse().ok())
        {
            found.push((pid, id.to_string_lossy().into_owned()));
        }
    }
    found
}

fn container_of(pid_file: &Path) -> Option<&std::ffi::OsStr> {
    let directory = match pid_file.file_name()?.to_str()? {
        "init.pid" => pid_file.parent()?,
        "pidfile" => pid_file.parent()?.parent()?,
        _ => return None,
    };
    directory.file_name()
}

#[cfg(test)]
mod tests {
    use super::{is_alive, names};
    use std::path::Path;

    #[test]
    fn a_command_line_names_a_directory_by_whole_segments() {
        let names = |line| names(line, Path::new("/run/wharf-1"));
        assert!(names("shim\0-address\0/run/wharf-1/exec/x.sock"));
        assert!(names("dockerd\0--config-file=/run/wharf-1/dockerd.json"));
        assert!(names("podman\0service\0unix:///run/wharf-1/engine.sock"));
        assert!(!names("shim\0-address\0/run/wharf-12/exec/x.sock"));
    }

    #[test]
    fn this_process_is_alive() {
        assert!(is_alive(std::process::id()));
        assert!(!is_alive(u32::MAX));
    }
}
