//! The smoke test: creates an instance over REST and logs in to it.

use super::account::Account;
use super::admin::Admin;
use super::config::LOGIN_USER;
use super::footprint::Footprint;
use super::instance::{Kind, NamedInstance, Restart, text};
use super::warnings::Warnings;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use wharf_testkit::http::HttpClient;
use wharf_testkit::process::wait_until;
use wharf_testkit::progress;
use wharf_testkit::signals::Signals;
use wharf_testkit::ssh::{Destination, has_banner};

/// The first instance.
pub(super) const CONTAINER: Kind = Kind {
    name: "hello",
    resource_type: "container",
};
/// The first virtual machine.
pub(super) const VM: Kind = Kind {
    name: "hello-vm",
    resource_type: "vm",
};
/// More than Wharf's own deadline for provisioning.
const RUNNING_LIMIT: Duration = Duration::from_secs(660);
/// The time until a busy engine tells the usage.
const USAGE_LIMIT: Duration = Duration::from_secs(120);
/// The time until Wharf has restarted the instances of an earlier run.
const BANNER_LIMIT: Duration = Duration::from_secs(60);
/// Wharf looks twice, because the engine may still be creating something.
const PURGE_LIMIT: Duration = Duration::from_secs(120);

/// Creates instances and logs in to them.
pub(super) struct SmokeTest<'a> {
    pub client: HttpClient,
    /// The path of Wharf's log.
    pub log: String,
    /// The host of logins.
    pub host: Ipv4Addr,
    pub account: &'a Account,
    pub admin: &'a Admin,
    /// `None` where instances are simulated.
    pub footprint: Option<Footprint>,
    /// Whether instances are deleted after the test.
    pub check: bool,
}

/// The instance of an earlier run.
enum EarlierInstance {
    Up(Value),
    /// There is one, and no room to start it.
    NoRoom,
    /// There is none, or it does not start.
    None,
}

/// The result of waiting for an instance.
enum Outcome {
    /// The user can log in.
    Up(Value),
    /// The instance is in this other state.
    Down(String),
}

impl SmokeTest<'_> {
    /// Creates the instance, or finds that of an earlier run, and logs in. None if there is no room. A check
    /// needs room, and deletes the instance again.
    pub fn run(&self, kind: Kind, signals: &Signals) -> Result<Option<Value>> {
        let named = NamedInstance {
            client: &self.client,
            account: self.account,
            kind,
        };
        let tested = self.test(&named, signals);
        if self.check {
            // After a failure too, because the engine may be the user's own.
            let removed = self.remove(&named);
            let instance = tested?;
            removed?;
            ensure!(instance.is_some(), "a check needs room for {}", kind.name);
            return Ok(instance);
        }
        tested
    }

    fn test(&self, named: &NamedInstance<'_>, signals: &Signals) -> Result<Option<Value>> {
        let start = Instant::now();
        let (instance, state) = match self.earlier(named, signals)? {
            EarlierInstance::Up(instance) => (Some(instance), "running"),
            EarlierInstance::NoRoom => (None, ""),
            EarlierInstance::None => (self.new_one(named, signals)?, "created and running"),
        };
        let Some(instance) = instance else {
            return Ok(None);
        };
        progress::note(&format!(
            "{} is {state} after {:.1} s.",
            named.kind.name,
            start.elapsed().as_secs_f64()
        ));
        if self.footprint.is_some() {
            self.log_in(&instance)?;
            if named.kind.resource_type == CONTAINER.resource_type {
                let mut usage = named.usage();
                wait_until(USAGE_LIMIT, || {
                    if usage.is_err() {
                        usage = named.usage();
                    }
                    usage.is_ok()
                });
                let usage = usage?;
                let used = usage.get("mem_used_gib").and_then(Value::as_f64);
                let used = used.context("no memory in the usage")? * 1024.0;
                progress::note(&format!("It uses {used:.0} MiB of its RAM."));
            }
        }
        Ok(Some(instance))
    }

    fn new_one(&self, named: &NamedInstance<'_>, signals: &Signals) -> Result<Option<Value>> {
        let Some(created) = named.create()? else {
            return Ok(None);
        };
        match self.wait(named, signals)? {
            Outcome::Up(instance) => Ok(Some(instance)),
            Outcome::Down(state) => bail!(
                "{} is {state} rather than running: {}",
                named.kind.name,
                self.admin.why(text(&created, "uuid")?)?
            ),
        }
    }

    /// Returns the instance of an earlier run, if there is one and it starts.
    fn earlier(&self, named: &NamedInstance<'_>, signals: &Signals) -> Result<EarlierInstance> {
        let name = named.kind.name;
        let Some(found) = named.find()? else {
            return Ok(EarlierInstance::None);
        };
        progress::step(&format!(
            "Looking for the instance {name} of an earlier run"
        ));
        let state = text(&found, "state")?;
        let restart = match state {
            "exited" | "shut_off" => named.restart()?,
            _ => Restart::Begun,
        };
        if restart == Restart::NoRoom {
            return Ok(EarlierInstance::NoRoom);
        }
        if restart == Restart::Begun {
            match self.wait(named, signals)? {
                Outcome::Up(instance) => return Ok(EarlierInstance::Up(instance)),
                Outcome::Down(state) => progress::note(&format!("It is {state}.")),
            }
        }
        let uuid = text(&found, "uuid")?;
        progress::note(&format!("It does not start: {}.", self.admin.why(uuid)?));
        let is_there = self.footprint.as_ref().map(|footprint| footprint.has(uuid));
        if state != "error" && is_there.transpose()?.unwrap_or(false) {
            // Its disk may hold something.
            let kept = format!("{name}-{}", uuid.get(..8).unwrap_or(uuid));
            progress::note(&format!("It is kept as {kept}."));
            named.rename(&kept)?;
        } else {
            named.delete()?;
        }
        Ok(EarlierInstance::None)
    }

    /// Waits until the user can log in.
    fn wait(&self, named: &NamedInstance<'_>, signals: &Signals) -> Result<Outcome> {
        let name = named.kind.name;
        let host = self.host.to_string();
        let start = Instant::now();
        let mut running = None;
        let mut warnings = Warnings::of(&self.log);
        while start.elapsed() < RUNNING_LIMIT {
            let instance = named.find()?;
            let instance = instance.with_context(|| format!("{name} is gone"))?;
            match text(&instance, "state")? {
                "running" => {
                    if self.footprint.is_none() || has_banner(&host, ssh_port(&instance)?) {
                        return Ok(Outcome::Up(instance));
                    }
                    // Wharf may still be restarting an instance of an earlier run.
                    let since = *running.get_or_insert_with(Instant::now);
                    ensure!(
                        since.elapsed() < BANNER_LIMIT,
                        "{name} is running, and there is no SSH banner from {host}:{} within \
                         {BANNER_LIMIT:?}",
                        ssh_port(&instance)?
                    );
                }
                "provisioning" => {}
                other => return Ok(Outcome::Down(other.to_owned())),
            }
            warnings.print_new();
            if signals.wait(Duration::from_millis(20)) {
                bail!("interrupted");
            }
        }
        bail!("{name} is not running after {RUNNING_LIMIT:?}")
    }

    fn log_in(&self, instance: &Value) -> Result<()> {
        let (account, host) = (self.account, self.host.to_string());
        progress::step("Logging in over SSH, by key and by password");
        let to = Destination {
            user: LOGIN_USER,
            host: &host,
            port: ssh_port(instance)?,
        };
        let script = "echo \"$(id -un) on $(hostname), $(python3 --version), $(uname -sr)\"";
        let output = account.ssh.run(to, script).context("login by key")?;
        progress::note(&output);
        let password = text(instance, "original_service_password")?;
        account
            .ssh
            .run_with_password(to, password, "true")
            .context("login by password")?;
        let wrong = account.ssh.run_with_password(to, "wrong", "true");
        ensure!(wrong.is_err(), "a wrong password was accepted");
        Ok(())
    }

    /// Deletes the instance, if there is one, and waits until it is gone from its engine.
    fn remove(&self, named: &NamedInstance<'_>) -> Result<()> {
        let Some(found) = named.find()? else {
            return Ok(());
        };
        named.delete()?;
        let uuid = text(&found, "uuid")?;
        let purged = wait_until(PURGE_LIMIT, || self.admin.has_purged(uuid).unwrap_or(false));
        ensure!(
            purged,
            "{} is not removed after {PURGE_LIMIT:?}",
            named.kind.name
        );
        self.footprint
            .as_ref()
            .map_or(Ok(()), Footprint::wait_until_gone)
    }
}

fn ssh_port(instance: &Value) -> Result<u16> {
    let port = instance.get("wan_ssh_port").and_then(Value::as_u64);
    Ok(u16::try_from(port.context("no wan_ssh_port")?)?)
}
