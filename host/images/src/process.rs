//! Running other programs, and waiting.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Finds a program, also where `/usr/sbin` is not in PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

/// A command for a program that [`find`] finds.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(find(program).unwrap_or_else(|| PathBuf::from(program)));
    if SHIELDS.load(Ordering::Relaxed) > 0 {
        command.process_group(0);
    }
    command
}

/// The number of [`Shield`]s.
static SHIELDS: AtomicUsize = AtomicUsize::new(0);

/// A Ctrl-C at the terminal does not reach programs of [`command`] while a shield lives. A removal that
/// a second Ctrl-C breaks off would leave things behind.
#[derive(Debug)]
pub struct Shield(());

impl Shield {
    /// Protects the programs from now on.
    #[must_use]
    pub fn raise() -> Self {
        SHIELDS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        SHIELDS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs a program to its end, with the terminal's output; fails unless it succeeds.
pub fn run(command: &mut Command) -> Result<()> {
    let name = describe(command);
    let status = command
        .status()
        .with_context(|| format!("cannot run {name}"))?;
    if !status.success() {
        bail!("{name}: {status}");
    }
    Ok(())
}

/// Runs a program to its end and returns its stdout; fails with its stderr unless it succeeds.
pub fn output(command: &mut Command) -> Result<String> {
    let name = describe(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{name}: {}: {}", output.status, stderr.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program to its end without output; returns whether it succeeded.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Whether this process is root's.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Polls until `ready` returns true; returns false when `limit` is over.
pub fn wait_until(limit: Duration, mut ready: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    let mut pause = Duration::from_millis(5);
    loop {
        if ready() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    let mut text = format!("`{}`", words.join(" "));
    if text.len() > 300 {
        text = format!("`{} …`", words.first().map_or("", |word| word));
    }
    text
}
