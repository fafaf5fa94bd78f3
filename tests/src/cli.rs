//! The commands for users, run as a user with a home directory of its own.

use crate::{Server, document, wharf_binary};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// The most time for output of a terminal.
const PATIENCE: Duration = Duration::from_secs(120);

/// A user at a shell.
pub struct Shell {
    home: TempDir,
}

/// The end of a command.
#[derive(Debug)]
pub struct Ended {
    /// Exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Shell {
    /// Creates a home directory.
    pub fn new() -> Result<Self> {
        let home = tempfile::Builder::new().prefix("wharf-home-").tempdir()?;
        Ok(Self { home })
    }

    /// Creates a home directory, and signs in with a new key of this user.
    pub fn signed_in(server: &Server, email: &str) -> Result<Self> {
        let shell = Self::new()?;
        let key = server.cli(&["key", "new", email])?;
        let login = ["login", server.base_url(), "--with-key"];
        shell.run_with(&login, &[], &key)?.succeeded()?;
        Ok(shell)
    }

    /// The home directory.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The file of profiles.
    pub fn config(&self) -> PathBuf {
        self.home.path().join(".config/wharf/config.toml")
    }

    /// A command of `wharf` that knows only this home directory.
    pub fn command(&self, args: &[&str]) -> Command {
        self.own(&wharf_binary(), args)
    }

    /// A program that knows only this home directory.
    pub fn own(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .current_dir(self.home.path());
        command
    }

    /// Runs `wharf` with variables and stdin.
    pub fn run_with(
        &self,
        args: &[&str],
        variables: &[(&str, &str)],
        stdin: &str,
    ) -> Result<Ended> {
        let mut command = self.command(args);
        command.envs(variables.iter().copied());
        end(&mut command, stdin)
    }

    /// Runs `wharf`.
    pub fn run(&self, args: &[&str]) -> Result<Ended> {
        self.run_with(args, &[], "")
    }

    /// Runs `wharf`, which must succeed, and returns its stdout.
    pub fn ok(&self, args: &[&str]) -> Result<String> {
        Ok(self.run(args)?.succeeded()?.stdout)
    }

    /// Runs `wharf … -o json`, whose output must be the documented body of a response.
    pub fn json(&self, args: &[&str], method: &str, path: &str, status: u16) -> Result<Value> {
        let stdout = self.ok(&[args, &["-o", "json"]].concat())?;
        let value = serde_json::from_str(&stdout).with_context(|| format!("no JSON: {stdout}"))?;
        document::check_body(method, path, status, &value)?;
        Ok(value)
    }
}

/// A line of a shell that runs on a terminal of its own.
pub struct OnTerminal {
    child: Child,
    keyboard: ChildStdin,
    screen: Receiver<Vec<u8>>,
    shown: Vec<u8>,
    from: usize,
}

impl Shell {
    /// Runs a line of `sh` on a terminal.
    pub fn on_terminal(&self, line: &str) -> Result<OnTerminal> {
        let directory = wharf_binary();
        let directory = directory.parent().context("the directory of wharf")?;
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = self.own(Path::new("script"), &["-qfec", line, "/dev/null"]);
        command
            .env("PATH", format!("{}:{path}", directory.display()))
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot run script")?;
        let keyboard = child.stdin.take().context("stdin")?;
        let mut output = child.stdout.take().context("stdout")?;
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(OnTerminal {
            child,
            keyboard,
            screen,
            shown: Vec::new(),
            from: 0,
        })
    }
}

impl OnTerminal {
    /// Waits for a text after the last one that was waited for.
    pub fn wait_for(&mut self, text: &str) -> Result<()> {
        loop {
            let rest = String::from_utf8_lossy(&self.shown[self.from..]);
            if let Some(at) = rest.find(text) {
                self.from += at + text.len();
                return Ok(());
            }
            let more = self.screen.recv_timeout(PATIENCE);
            let more = more.with_context(|| format!("no {text:?} in {:?}", self.output()))?;
            self.shown.extend(more);
        }
    }

    /// Presses keys.
    pub fn type_in(&mut self, keys: &str) -> Result<()> {
        Ok(self.keyboard.write_all(keys.as_bytes())?)
    }

    /// All output so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    /// Waits for the end of the line.
    pub fn end(self) -> Result<()> {
        let Self {
            mut child,
            keyboard,
            ..
        } = self;
        drop(keyboard);
        let status = child.wait()?;
        ensure!(status.success(), "{status}");
        Ok(())
    }
}

impl Ended {
    /// Fails unless the command succeeded.
    pub fn succeeded(self) -> Result<Self> {
        ensure!(self.code == Some(0), "{self:?}");
        Ok(self)
    }
}

/// Runs a command to its end.
pub fn end(command: &mut Command, stdin: &str) -> Result<Ended> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot run the command")?;
    // A command that does not read its input may have ended.
    let _ = child
        .stdin
        .take()
        .context("stdin")?
        .write_all(stdin.as_bytes());
    let output = child.wait_with_output()?;
    Ok(Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout)?,
        stderr: String::from_utf8(output.stderr)?,
    })
}
