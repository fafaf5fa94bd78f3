//! `cargo xtask up --incus`: a check, and a kill with `down` after it. Neither leaves anything on the
//! machine, and the instances' disks are there at the next run.

use crate::ends::down;
use crate::lifecycle::{assert_none, remains};
use crate::run::Run;
use crate::traces::Traces;
use crate::up::{START_LIMIT, Up};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wharf_testkit::http::Request;
use wharf_testkit::process::wait_until;
use wharf_testkit::ssh::{Destination, KeyPair};
use wharf_testkit::{incus, progress, workspace};

/// The directory of the run, below cargo's target directory.
pub const DIRECTORY: &str = "up-incus-test";
/// The time in which a run starts the instances of an earlier one.
const INSTANCE_LIMIT: Duration = Duration::from_secs(60);

/// A part of the test, with its name.
type Step = (&'static str, fn(&Place) -> Result<()>);

pub fn all() -> Result<()> {
    if !incus::can_install() {
        progress::skipped("this machine has no package of Incus");
        return Ok(());
    }
    let dir = workspace::target().join(DIRECTORY);
    let _ = fs::remove_dir_all(&dir);
    let place = Place {
        before: Traces::read()?,
        dir,
    };
    let steps: [Step; 3] = [
        ("a check", Place::check),
        ("killed, then `down`", Place::killed_then_down),
        ("the next run", Place::next_run),
    ];
    for (name, step) in steps {
        let start = Instant::now();
        step(&place).context(name)?;
        eprintln!("{name}: {:.1?}", start.elapsed());
    }
    Ok(fs::remove_dir_all(&place.dir)?)
}

struct Place {
    dir: PathBuf,
    before: Traces,
}

impl Place {
    fn check(&self) -> Result<()> {
        let mut check = Up::start(&self.dir, &["--incus", "--check"])?;
        let status = check.end(START_LIMIT)?;
        ensure!(status.success(), "{status}: {}", check.output());
        self.is_clean()
    }

    fn killed_then_down(&self) -> Result<()> {
        let mut up = Up::start(&self.dir, &["--incus"])?;
        up.wait_for("Ctrl-C stops")?;
        let key = fs::metadata(self.run_dir().join("incus-client.key"))?;
        ensure!(key.permissions().mode() & 0o777 == 0o600);
        self.on_hello("echo x >kept; sync")?;
        up.kill()?;
        down(&self.dir)?;
        self.is_clean()
    }

    /// The next run has the instance with its disk.
    fn next_run(&self) -> Result<()> {
        let mut up = Up::start(&self.dir, &["--incus"])?;
        up.wait_for("Ctrl-C stops")?;
        ensure!(up.output().contains("hello is running"), "{}", up.output());
        let read = || self.on_hello("cat kept").is_ok();
        ensure!(wait_until(INSTANCE_LIMIT, read), "the file is gone");
        up.ctrl_c();
        up.ends_well()?;
        self.is_clean()
    }

    /// Runs a command on the first instance.
    fn on_hello(&self, command: &str) -> Result<String> {
        let run = Run::of(&self.run_dir())?;
        let hello = run
            .ask(Request::new("GET", "/api/instance/hello/"))?
            .ok()?
            .json()?;
        let port = hello.get("wan_ssh_port").and_then(Value::as_u64);
        let to = Destination {
            user: "user",
            host: run.setting("ssh_host")?.trim_matches('"'),
            port: port.context("no port")?.try_into()?,
        };
        KeyPair::in_directory(&self.run_dir().join("ssh"))?.run(to, command)
    }

    fn run_dir(&self) -> PathBuf {
        self.dir.join("incus")
    }

    fn is_clean(&self) -> Result<()> {
        let namespaces: Vec<_> = fs::read_dir("/run/netns")
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        let all = format!("{}\n{}", remains()?, namespaces.join("\n"));
        assert_none(&all, &[DIRECTORY, "wharf-incus-", "whfi"]);
        let left = Traces::read()?.more_than(&self.before);
        ensure!(left.is_empty(), "left on the machine: {left:#?}");
        Ok(())
    }
}
