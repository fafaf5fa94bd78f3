//! That it works: an instance, made over REST, that its user logs in to.

use super::account::Account;
use super::admin::Admin;
use super::asker::{Asker, Kind, text};
use super::config::{HOST, LOGIN_USER};
use super::traces::Traces;
use super::warnings::Warnings;
use crate::http::Client;
use crate::process::wait_until;
use crate::say;
use crate::server::Server;
use crate::signals::Signals;
use crate::ssh::{Destination, greets};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The instance that everyone gets.
pub(super) const CONTAINER: Kind = Kind {
    name: "hello",
    resource_type: "container",
};
/// And with virtual machines.
pub(super) const VM: Kind = Kind {
    name: "hello-vm",
    resource_type: "vm",
};
/// Beyond Wharf's own deadline for provisioning.
const RUNNING_LIMIT: Duration = Duration::from_secs(660);
/// Until Wharf has seen that the node's instances are stopped, and started them.
const BANNER_LIMIT: Duration = Duration::from_secs(60);
/// Wharf looks twice for what an engine may still be making.
const PURGE_LIMIT: Duration = Duration::from_secs(120);

/// Makes instances and logs in to them.
pub(super) struct Proof<'a> {
    client: Client,
    log: String,
    account: &'a Account,
    admin: &'a Admin,
    /// None where instances are simulated.
    traces: Option<Traces>,
    check: bool,
}

/// What has become of an instance that was waited for.
enum End {
    /// Its user can log in.
    Up(Value),
    /// It is in this state.
    Down(String),
}

impl<'a> Proof<'a> {
    pub fn new(
        server: &Server,
        account: &'a Account,
        admin: &'a Admin,
        traces: Option<Traces>,
        check: bool,
    ) -> Result<Self> {
        Ok(Self {
            client: server.client()?,
            log: server.log(),
            account,
            admin,
            traces,
            check,
        })
    }

    /// Makes the instance (or finds that of an earlier run) and logs in; a check deletes it again.
    pub fn run(&self, kind: Kind, signals: &Signals) -> Result<Value> {
        let asker = Asker {
            client: &self.client,
            account: self.account,
            kind,
        };
        let proven = self.prove(&asker, signals);
        if self.check {
            // After a failure too: the engine may be the user's own, and stays.
            let cleared = self.clear(&asker);
            let instance = proven?;
            cleared?;
            return Ok(instance);
        }
        proven
    }

    fn prove(&self, asker: &Asker<'_>, signals: &Signals) -> Result<Value> {
        let start = Instant::now();
        let (instance, words) = match self.earlier(asker, signals)? {
            Some(instance) => (instance, "running"),
            None => (self.new_one(asker, signals)?, "created and running"),
        };
        say::note(&format!(
            "{} is {words} after {:.1} s.",
            asker.kind.name,
            start.elapsed().as_secs_f64()
        ));
        if self.traces.is_some() {
            log_in(self.account, &instance)?;
        }
        Ok(instance)
    }

    fn new_one(&self, asker: &Asker<'_>, signals: &Signals) -> Result<Value> {
        let created = asker.create()?;
        match self.wait(asker, signals)? {
            End::Up(instance) => Ok(instance),
            End::Down(state) => bail!(
                "{} is {state} rather than running: {}",
                asker.kind.name,
                self.admin.why(text(&created, "uuid")?)?
            ),
        }
    }

    /// That of an earlier run, up; none if there is none, or none that comes up.
    fn earlier(&self, asker: &Asker<'_>, signals: &Signals) -> Result<Option<Value>> {
        let name = asker.kind.name;
        let Some(found) = asker.find()? else {
            return Ok(None);
        };
        say::step(&format!(
            "Looking for the instance {name} of an earlier run"
        ));
        let state = text(&found, "state")?;
        if !matches!(state, "exited" | "shut_off") || asker.restart()? {
            match self.wait(asker, signals)? {
                End::Up(instance) => return Ok(Some(instance)),
                End::Down(state) => say::note(&format!("It is {state}.")),
            }
        }
        let uuid = text(&found, "uuid")?;
        say::note(&format!(
            "It does not come up again: {}.",
            self.admin.why(uuid)?
        ));
        let is_there = self.traces.as_ref().map(|traces| traces.have(uuid));
        if state != "error" && is_there.transpose()?.unwrap_or(false) {
            // Its disk may hold something.
            let kept = format!("{name}-{}", uuid.get(..8).unwrap_or(uuid));
            say::note(&format!("It is kept, as {kept}."));
            asker.rename(&kept)?;
        } else {
            asker.delete()?;
        }
        Ok(None)
    }

    /// Waits until its user can log in.
    fn wait(&self, asker: &Asker<'_>, signals: &Signals) -> Result<End> {
        let name = asker.kind.name;
        let start = Instant::now();
        let mut running = None;
        let mut warnings = Warnings::of(&self.log);
        while start.elapsed() < RUNNING_LIMIT {
            let instance = asker.find()?;
            let instance = instance.with_context(|| format!("{name} is gone"))?;
            match text(&instance, "state")? {
                "running" => {
                    if self.traces.is_none() || greets(HOST, ssh_port(&instance)?) {
                        return Ok(End::Up(instance));
                    }
                    // One of an earlier run was stopped when that ended; Wharf is starting it again.
                    let since = *running.get_or_insert_with(Instant::now);
                    ensure!(
                        since.elapsed() < BANNER_LIMIT,
                        "{name} is running, and no SSH server greets at {HOST}:{} within \
                         {BANNER_LIMIT:?}",
                        ssh_port(&instance)?
                    );
                }
                "provisioning" => {}
                other => return Ok(End::Down(other.to_owned())),
            }
            warnings.tell();
            if signals.wait(Duration::from_millis(20)) {
                bail!("interrupted");
            }
        }
        bail!("{name} is not running after {RUNNING_LIMIT:?}")
    }

    /// Deletes the instance, if there is one, and waits until its engine has nothing of it.
    fn clear(&self, asker: &Asker<'_>) -> Result<()> {
        let Some(found) = asker.find()? else {
            return Ok(());
        };
        asker.delete()?;
        let uuid = text(&found, "uuid")?;
        let purged = wait_until(PURGE_LIMIT, || self.admin.has_purged(uuid).unwrap_or(false));
        ensure!(
            purged,
            "{} is not removed after {PURGE_LIMIT:?}",
            asker.kind.name
        );
        self.traces.as_ref().map_or(Ok(()), Traces::wait_until_gone)
    }
}

fn ssh_port(instance: &Value) -> Result<u16> {
    let port = instance.get("wan_ssh_port").and_then(Value::as_u64);
    Ok(u16::try_from(port.context("no wan_ssh_port")?)?)
}

fn log_in(account: &Account, instance: &Value) -> Result<()> {
    say::step("Logging in over SSH, by key and by password");
    let to = Destination {
        user: LOGIN_USER,
        host: HOST,
        port: ssh_port(instance)?,
    };
    let script = "echo \"$(id -un) on $(hostname), $(python3 --version), $(uname -sr)\"";
    let seen = account.ssh.run(to, script).context("login by key")?;
    say::note(&seen);
    let password = text(instance, "original_service_password")?;
    account
        .ssh
        .run_with_password(to, password, "true")
        .context("login by password")?;
    let wrong = account.ssh.run_with_password(to, "wrong", "true");
    ensure!(wrong.is_err(), "a wrong password was let in");
    Ok(())
}
