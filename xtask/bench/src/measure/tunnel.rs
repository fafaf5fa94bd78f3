//! OpenSSH through a tunnel to a container on dockerd: a keystroke, and many bytes. The baseline is OpenSSH at
//! the container's own port.

use super::engine::{LOCALHOST, Ours, is_possible, private};
use crate::Options;
use crate::pairs::Pairs;
use crate::table::{Table, Target};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wharf_testkit::engine::Kind;
use wharf_testkit::ssh::KeyPair;
use wharf_testkit::{images, workspace};

/// Pairs of runs, keystrokes of a run, and bytes of a run.
const PAIRS: usize = 5;
const STROKES: usize = 300;
const BYTES: u64 = 200_000_000;
/// The targets: of a keystroke, and of the time for many bytes.
const STROKE: f64 = 2.5;
const LATENESS: f64 = 2.0;
const DEADLINE: Duration = Duration::from_secs(120);

/// Measures keystrokes and bytes.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    if !is_possible(options, table, "SSH through a tunnel beside SSH") {
        return Ok(());
    }
    let dir = tempfile::Builder::new().prefix("wharf-bench-").tempdir()?;
    let engine = private(Kind::Dockerd, dir.path())?;
    images::ensure(&engine.client(), &["base"])?;
    let measured = Ours::start(&engine, dir.path()).and_then(|ours| {
        let pair = KeyPair::in_directory(dir.path())?;
        let wanted = json!({
            "resource_type": "container", "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
            "public_key": std::fs::read_to_string(pair.path().with_extension("pub"))?,
        });
        let instance = ours.create(wanted, DEADLINE)?;
        let id = instance["uuid"].as_str().context("uuid")?;
        let proxy = format!(
            "{} tunnel {id} 22 --stdio",
            workspace::wharf_binary().display()
        );
        let (url, key) = ours.access()?;
        let ssh = |options: &[&str], command: &str| {
            let mut ssh = Command::new("ssh");
            ssh.args([
                "-F",
                "/dev/null",
                "-o",
                "BatchMode=yes",
                "-o",
                "StrictHostKeyChecking=no",
            ])
            .args(["-o", "UserKnownHostsFile=/dev/null", "-i"])
            .arg(pair.path())
            .args(options)
            .args([&format!("user@{LOCALHOST}"), command])
            .envs([("WHARF_URL", &url), ("WHARF_API_KEY", &key)])
            .stderr(Stdio::null());
            ssh
        };
        let port = instance["wan_ssh_port"].to_string();
        let direct = |command: &str| ssh(&["-p", &port], command);
        let option = format!("ProxyCommand={proxy}");
        let tunnelled = |command: &str| ssh(&["-o", &option], command);
        let strokes = Pairs::measure(
            PAIRS,
            || keystroke(tunnelled("cat")),
            || keystroke(direct("cat")),
        )?;
        let (ours, theirs, ratio) = strokes.median(Duration::as_secs_f64)?;
        let shown = |time: Duration| format!("{} µs", time.as_micros());
        table.row(
            "a keystroke of SSH through a tunnel",
            (shown(*ours), format!("{}, SSH", shown(*theirs))),
            ratio,
            Target::AtMost(STROKE),
        );
        let much = format!("head -c {BYTES} /dev/zero");
        let rates = Pairs::measure(PAIRS, || bytes(tunnelled(&much)), || bytes(direct(&much)))?;
        let (ours, theirs, ratio) = rates.median(Duration::as_secs_f64)?;
        #[expect(clippy::cast_precision_loss, reason = "a number for people")]
        let shown = |time: Duration| format!("{:.0} MB/s", BYTES as f64 / 1e6 / time.as_secs_f64());
        table.row(
            "200 MB of SSH through a tunnel",
            (shown(*ours), format!("{}, SSH", shown(*theirs))),
            ratio,
            Target::AtMost(LATENESS),
        );
        Ok(())
    });
    engine.stop()?;
    measured
}

/// A program that is ended when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The median of the times from a byte to its echo.
fn keystroke(mut ssh: Command) -> Result<Duration> {
    let ssh = ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut ssh = Running(ssh);
    let mut input = ssh.0.stdin.take().context("stdin")?;
    let mut output = ssh.0.stdout.take().context("stdout")?;
    let mut stroke = || -> Result<Duration> {
        let begin = Instant::now();
        input.write_all(b"x")?;
        output.read_exact(&mut [0])?;
        Ok(begin.elapsed())
    };
    stroke()?;
    let mut times = (0..STROKES).map(|_| stroke()).collect::<Result<Vec<_>>>()?;
    times.sort_unstable();
    times.get(STROKES / 2).copied().context("no keystroke")
}

/// The time of a command's output, from its first byte.
fn bytes(mut ssh: Command) -> Result<Duration> {
    let ssh = ssh.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut ssh = Running(ssh);
    let mut output = ssh.0.stdout.take().context("stdout")?;
    output.read_exact(&mut [0])?;
    let begin = Instant::now();
    let read = std::io::copy(&mut output, &mut std::io::sink())?;
    ensure!(read + 1 == BYTES, "{read} bytes");
    Ok(begin.elapsed())
}
