//! The operator's program that changes the DNS.

use super::files::AcmeFiles;
use super::order::AcmeError;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wharf_config::AcmeConfig;

const POLL_EVERY: Duration = Duration::from_millis(50);
/// The part of its error output that an error has.
const SHOWN: u64 = 500;

/// A task of the program.
#[derive(Debug, Clone, Copy)]
pub(super) enum Task {
    Present,
    CleanUp,
}

/// The program. If it runs when this is dropped, it ends with all that it started.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

/// Runs the program for a TXT record, without a shell.
pub(super) async fn run(
    acme: &AcmeConfig,
    files: &AcmeFiles,
    task: Task,
    record: (&str, &str),
) -> Result<(), AcmeError> {
    let word = match task {
        Task::Present => "present",
        Task::CleanUp => "cleanup",
    };
    let failed = |cause: String| AcmeError::Hook { task: word, cause };
    let start = || {
        let (output, path) = files.hook_output()?;
        let mut words = acme.hook.iter();
        let program = words.next().map(String::as_str).unwrap_or_default();
        let child = Command::new(program)
            .args(words)
            .args([word, record.0, record.1])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .process_group(0)
            .spawn()?;
        std::io::Result::Ok((Running(child), path))
    };
    let (mut running, path) = start().map_err(|error| failed(format!("cannot start: {error}")))?;
    let begun = Instant::now();
    let cause = loop {
        match running.0.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => break status.to_string(),
            Err(error) => break error.to_string(),
            Ok(None) if begun.elapsed() >= acme.hook_timeout() => {
                break format!("stopped after {} s", acme.hook_timeout_s);
            }
            Ok(None) => tokio::time::sleep(POLL_EVERY).await,
        }
    };
    let said = File::open(path).and_then(last_words).unwrap_or_default();
    Err(failed(format!("{cause}: {said}")))
}

/// The end of a file, in one line.
fn last_words(mut file: File) -> std::io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SHOWN)))?;
    let mut end = Vec::new();
    file.take(SHOWN).read_to_end(&mut end)?;
    let end = String::from_utf8_lossy(&end);
    Ok(end.split_whitespace().collect::<Vec<_>>().join(" "))
}
