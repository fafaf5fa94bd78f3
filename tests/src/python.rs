//! Python environments below `target/`, each with what a `requirements.txt` names; made once.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use xtask::packages::{self, Need};

/// `python3 -m venv` works only where the package is installed that has its parts.
const VENV: Need = Need {
    program: "python3",
    package: "python3-venv",
    why: "an environment for test tools",
};

/// Where the tools are.
pub struct Python {
    bin: PathBuf,
}

impl Python {
    /// Makes the environment, unless it is there for just these requirements.
    pub fn ensure(requirements: &Path) -> Result<Self> {
        let root = xtask::workspace::root().join("target/test-tools");
        fs::create_dir_all(&root)?;
        // Tests that run side by side, and test runs side by side, make it once.
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
            .context("the tools come from PyPI, which must be in reach the first time")?;
            File::create(done)?;
        }
        Ok(Self { bin })
    }

    /// A program of the environment, which finds the others too.
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

/// Runs it to its end; its output, or all that it said as an error.
pub fn succeed(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().with_context(|| program.clone())?;
    let said = String::from_utf8_lossy(&stdout).into_owned();
    if !status.success() {
        bail!(
            "{program}: {status}\n{said}{}",
            String::from_utf8_lossy(&stderr)
        );
    }
    Ok(said)
}

fn has_venv() -> bool {
    succeed(Command::new("python3").args(["-c", "import venv, ensurepip"])).is_ok()
}
