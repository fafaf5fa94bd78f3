//! Python environments below `target/`, one for each `requirements.txt`.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use wharf_testkit::packages::{self, Need};

/// `python3 -m venv` needs its own package.
const VENV: Need = Need {
    program: "python3",
    package: "python3-venv",
    why: "an environment for test tools",
};

/// A Python environment.
pub struct Python {
    bin: PathBuf,
}

impl Python {
    /// Creates the environment, unless it exists for these requirements.
    pub fn ensure(requirements: &Path) -> Result<Self> {
        let root = wharf_testkit::workspace::root().join("target/test-tools");
        fs::create_dir_all(&root)?;
        // Concurrent tests and test runs create it once.
        let lock = File::create(root.join("lock"))?;
        lock.lock()?;
        let mut hasher = DefaultHasher::new();
        fs::read(requirements)
            .with_context(|| format!("{}", requirements.display()))?
            .hash(&mut hasher);
        let dir = root.join(format!("python-{:016x}", hasher.finish()));
        let bin = dir.join("bin");
        let done = dir.join("complete");
        if !done.exists() {
            packages::ensure_unless(&[VENV], |_| has_venv())?;
            let _ = fs::remove_dir_all(&dir);
            succeed(Command::new("python3").args(["-m", "venv"]).arg(&dir))?;
            succeed(
                Command::new(bin.join("pip"))
                    .args(["install", "--quiet", "--disable-pip-version-check", "-r"])
                    .arg(requirements),
            )
            .context("the first run downloads the tools from the Python package index")?;
            File::create(done)?;
        }
        Ok(Self { bin })
    }

    /// Returns a program of the environment; its PATH has the other programs too.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin.join(name));
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", self.bin.display()))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null());
        command
    }
}

/// Runs a program to its end and returns its stdout; a failure includes the whole output.
pub fn succeed(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().with_context(|| program.clone())?;
    let text = String::from_utf8_lossy(&stdout).into_owned();
    if !status.success() {
        bail!(
            "{program}: {status}\n{text}{}",
            String::from_utf8_lossy(&stderr)
        );
    }
    Ok(text)
}

fn has_venv() -> bool {
    succeed(Command::new("python3").args(["-c", "import venv, ensurepip"])).is_ok()
}
