//! A server on a free port, with its own data directory.

use crate::api::Api;
use anyhow::{Context, Result, bail};
use std::cell::RefCell;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use wharf_testkit::process::run;
use wharf_testkit::workspace::wharf_binary;

/// The name of the log in the directory of a server.
const LOG: &str = "log";
/// A log has stopped growing if it is the same at this many looks. A busy server never stops.
const LOG_LOOKS: u32 = 5;
const LOG_WAIT: Duration = Duration::from_secs(2);

/// The most warnings of a server that a failure prints.
const WARNINGS: usize = 20;

const NO_ENVIRONMENT: &[(&str, &str)] = &[];

thread_local! {
    /// The logs of the servers that this thread has started.
    static LOGS: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
}

/// Prints the latest warnings of the servers that this thread has started, for a condition that never came.
pub(crate) fn print_warnings() {
    for path in LOGS.with_borrow(Clone::clone) {
        let log = fs::read_to_string(&path).unwrap_or_default();
        let is_warning = |line: &&str| line.contains(" WARN ") || line.contains(" ERROR ");
        let mut warnings: Vec<_> = log
            .lines()
            .rev()
            .filter(is_warning)
            .take(WARNINGS)
            .collect();
        warnings.reverse();
        eprintln!(
            "{} ends with these warnings:\n{}",
            path.display(),
            warnings.join("\n")
        );
    }
}

/// A server process. Dropping it kills it, or ends it with the checks of [`Self::finish`].
pub struct Server {
    dir: TempDir,
    /// Directories that the server needs until its end.
    kept: Vec<TempDir>,
    is_checked_at_end: bool,
    program: PathBuf,
    environment: Vec<(String, String)>,
    json_log: bool,
    process: Option<Child>,
    base_url: String,
}

impl Server {
    /// Starts a server. `settings` follow `listen` and `data_dir` in its configuration.
    pub fn start(settings: &str) -> Result<Self> {
        Self::start_in(settings, NO_ENVIRONMENT)
    }

    /// Returns the error with which a server refuses these settings.
    pub fn refused(settings: &str) -> Result<String> {
        match Self::start(settings) {
            Ok(_) => bail!("accepted: {settings}"),
            Err(error) => Ok(format!("{error:#}")),
        }
    }

    /// Starts a server with variables in its environment.
    pub fn start_in(
        settings: &str,
        environment: &[(impl AsRef<str>, impl AsRef<str>)],
    ) -> Result<Self> {
        let mut server = Self::new(settings, environment)?;
        server.run()?;
        Ok(server)
    }

    /// Starts a server that logs JSON.
    pub fn start_with_json_log(settings: &str) -> Result<Self> {
        let mut server = Self::new(settings, NO_ENVIRONMENT)?;
        server.json_log = true;
        server.run()?;
        Ok(server)
    }

    /// Starts a server of another installation of the program.
    pub fn start_program(program: &Path, settings: &str) -> Result<Self> {
        let mut server = Self::new(settings, NO_ENVIRONMENT)?;
        program.clone_into(&mut server.program);
        server.run()?;
        Ok(server)
    }

    /// Has the checks of [`Self::finish`] made when a running server is dropped, unless its test has failed.
    #[must_use]
    pub fn checked_at_end(mut self) -> Self {
        self.is_checked_at_end = true;
        self
    }

    /// Keeps a directory until the end of the server.
    #[must_use]
    pub fn keeping(mut self, dir: TempDir) -> Self {
        self.kept.push(dir);
        self
    }

    fn new(settings: &str, environment: &[(impl AsRef<str>, impl AsRef<str>)]) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("wharf-test-").tempdir()?;
        let config = format!("listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n{settings}");
        fs::write(dir.path().join("wharf.toml"), config)?;
        LOGS.with_borrow_mut(|logs| logs.push(dir.path().join(LOG)));
        Ok(Self {
            dir,
            kept: Vec::new(),
            is_checked_at_end: false,
            program: wharf_binary(),
            environment: environment
                .iter()
                .map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned()))
                .collect(),
            json_log: false,
            process: None,
            base_url: String::new(),
        })
    }

    /// Starts the server again, after [`Self::kill`] or [`Self::terminate`].
    pub fn run(&mut self) -> Result<()> {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.log_path())?;
        let mut process = Command::new(&self.program)
            .args(["serve", "--config"])
            .arg(self.config_path())
            .args(self.json_log.then_some("--log-json"))
            .env("WHARF_LOG", "debug")
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| {
                let program = self.program.display();
                format!("{program}: run `cargo xtask build` first")
            })?;
        let stdout = process.stdout.take().context("no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        self.process = Some(process);
        let Some(base_url) = line.trim().strip_prefix("listening on ") else {
            bail!("the server did not start:\n{}", self.log());
        };
        base_url.clone_into(&mut self.base_url);
        Ok(())
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the process id while the server runs.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Asks the server to read its configuration again.
    pub fn hang_up(&self) -> Result<()> {
        let id = self.process_id().context("the server does not run")?;
        run(Command::new("kill").args(["-HUP", &id.to_string()]))
    }

    /// Returns the path of the configuration file.
    pub fn config_path(&self) -> PathBuf {
        self.dir.path().join("wharf.toml")
    }

    /// Returns the path of the data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn log_path(&self) -> PathBuf {
        self.dir.path().join(LOG)
    }

    /// Returns the log so far. A running server writes it in the background, so this waits up to two
    /// seconds until it stops growing.
    pub fn log(&self) -> String {
        match self.process {
            Some(_) => crate::settled(LOG_LOOKS, LOG_WAIT, || self.written()),
            None => self.written(),
        }
    }

    /// Returns what the log has at this moment, for a look of many.
    pub fn written(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Runs `wharf ARGS --config FILE`, which must succeed, and returns its stdout.
    pub fn cli(&self, args: &[&str]) -> Result<String> {
        let output = Command::new(wharf_binary())
            .args(args)
            .arg("--config")
            .arg(self.config_path())
            .output()?;
        if !output.status.success() {
            bail!(
                "wharf {args:?}: {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Creates a client with a new key of this user.
    pub fn user(&self, email: &str) -> Result<Api> {
        let key = self.cli(&["key", "new", email])?;
        Ok(Api::new(&self.base_url, key.trim()))
    }

    /// Creates a client of this user after the server has restarted on another port.
    pub fn again(&self, api: &Api) -> Api {
        api.at(&self.base_url)
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// Sends SIGTERM and waits for the end.
    pub fn terminate(&mut self) -> Result<ExitStatus> {
        let Some(mut process) = self.process.take() else {
            bail!("not running");
        };
        let sent = Command::new("kill")
            .arg(process.id().to_string())
            .status()?;
        if !sent.success() {
            bail!("kill: {sent}");
        }
        crate::eventually("the server ends", Duration::from_secs(120), || {
            Ok(process.try_wait()?)
        })
    }

    /// Stops the server and checks its log and database. Any test can end with it.
    pub fn finish(mut self) -> Result<()> {
        self.check()
    }

    fn check(&mut self) -> Result<()> {
        let status = self.terminate()?;
        if !status.success() {
            bail!("the server ended with {status}:\n{}", self.log());
        }
        // A plugin's panic is part of a line of the log; only the server's own panics begin a line.
        let log = self.log();
        let own = |line: &&str| line.starts_with("thread '") && line.contains("panicked at");
        let panics = log.lines().filter(own).count();
        if panics > 0 {
            bail!("{panics} panics:\n{}", self.log());
        }
        self.cli(&["fsck"])?;
        Ok(())
    }

    /// Returns the bytes of the data directory and the log, to search for secrets.
    pub fn data_and_log(&self) -> Result<Vec<u8>> {
        let mut all = self.log().into_bytes();
        for entry in fs::read_dir(self.data_dir())? {
            let path = entry?.path();
            if path.is_file() {
                fs::File::open(&path)?.read_to_end(&mut all)?;
            }
        }
        Ok(all)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let runs = self.process.is_some() && !std::thread::panicking();
        let checked = if self.is_checked_at_end && runs {
            self.check()
        } else {
            Ok(())
        };
        let _ = self.kill();
        let own = self.log_path();
        LOGS.with_borrow_mut(|logs| logs.retain(|log| *log != own));
        if std::thread::panicking() || std::env::var_os("WHARF_TEST_LOG").is_some() {
            eprintln!("{}", self.log());
        }
        assert!(checked.is_ok(), "{checked:?}");
    }
}

/// Replaces a file with one that only its owner can read.
pub fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content)?;
    Ok(fs::set_permissions(path, Permissions::from_mode(0o600))?)
}
