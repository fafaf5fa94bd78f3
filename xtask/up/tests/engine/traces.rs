//! What a run of `up` has on the machine: it is found by the run's own names, because other engines may run
//! beside it.

use anyhow::{Result, ensure};
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;
use wharf_testkit::process::{command, find, output, wait_until};

/// Programs whose lines name mounts, interfaces, rules, files and namespaces.
const LISTS: [(&str, &[&str]); 6] = [
    ("ip", &["-brief", "link"]),
    ("ip", &["netns", "list"]),
    ("nft", &["list", "tables"]),
    ("iptables", &["-S", "FORWARD"]),
    (
        "losetup",
        &["--list", "--noheadings", "--output", "BACK-FILE"],
    ),
    ("ls", &["/run"]),
];
/// What engines share while one of them runs: the lock or the sign of those that do, and a file that exists
/// only meanwhile.
const LXCFS: [&str; 2] = ["/run/wharf-lxcfs.lock", "/run/wharf-lxcfs.pid"];
/// From the kill of an engine to the end of what it has left.
const CLEANUP_LIMIT: Duration = Duration::from_secs(60);
const PARAMETERS: [&str; 2] = [
    "/run/wharf-ip-forward-was-off",
    "/run/wharf-arp-notify-was-off",
];

/// The lines about the machine with one of these words.
pub fn with(words: &[String]) -> Result<Vec<String>> {
    let mut all = crate::read("/proc/self/mountinfo");
    for (program, arguments) in LISTS {
        // A private Incus does not need iptables.
        if find(program).is_some() {
            all += &output(command(program).args(arguments))?;
        }
    }
    for process in fs::read_dir("/proc")?.flatten() {
        // A daemon may name its directory in its environment alone.
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(process.path().join(file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).replace(['\0', '\n'], " ");
            all += &format!("{}: {text}\n", process.path().display());
        }
    }
    let has_word = |line: &&str| words.iter().any(|word| line.contains(word));
    Ok(all.lines().filter(has_word).map(str::to_owned).collect())
}

/// Fails if the machine has a line with one of these words, or something that engines share while none
/// runs.
pub fn none(words: &[String]) -> Result<()> {
    let left = with(words)?;
    ensure!(left.is_empty(), "left on the machine: {left:#?}");
    // While this has the locks, no engine starts or ends.
    let lxcfs = File::create(LXCFS[0])?;
    let is_in_order = || {
        let is_right = lxcfs.try_lock().is_err() || !Path::new(LXCFS[1]).exists();
        if !is_right {
            let _ = lxcfs.unlock();
        }
        is_right
    };
    // Tests beside this one kill engines. Lxcfs then ends with `down` or with the next engine.
    ensure!(
        wait_until(CLEANUP_LIMIT, is_in_order),
        "lxcfs runs without an engine"
    );
    let parameters = File::open("/run")?;
    parameters.lock()?;
    let tables = output(command("nft").args(["list", "tables", "inet"]))?;
    ensure!(
        tables.contains(" wharf_") || !PARAMETERS.iter().any(|mark| Path::new(mark).exists()),
        "a kernel parameter is not restored"
    );
    Ok(())
}
