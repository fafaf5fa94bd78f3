//! That it works: an instance, made over REST, that its user logs in to.

use super::account::Account;
use super::config::{HOST, LOGIN_USER};
use super::nodes::Nodes;
use super::traces::Traces;
use crate::http::{Client, Request};
use crate::say;
use crate::server::Server;
use crate::signals::Signals;
use crate::ssh::{Destination, wait_for_banner};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
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

/// What is made.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    name: &'static str,
    resource_type: &'static str,
}

impl Kind {
    fn path(self) -> String {
        format!("/api/instance/{}/", self.name)
    }
}

/// Makes instances and logs in to them.
pub(super) struct Proof<'a> {
    client: Client,
    account: &'a Account,
    nodes: &'a Nodes,
    check: bool,
}

impl<'a> Proof<'a> {
    pub fn new(
        server: &Server,
        account: &'a Account,
        nodes: &'a Nodes,
        check: bool,
    ) -> Result<Self> {
        Ok(Self {
            client: server.client()?,
            account,
            nodes,
            check,
        })
    }

    /// Makes the instance (or finds that of an earlier run) and logs in; a check deletes it again.
    pub fn run(&self, kind: Kind, signals: &Signals) -> Result<Value> {
        let asker = Asker {
            client: &self.client,
            key: &self.account.key,
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
        let kind = asker.kind;
        let start = Instant::now();
        let created = asker.find_or_create(&self.account.ssh.public()?)?;
        let instance = asker.wait_until_running(signals)?;
        let words = if created {
            "created and running"
        } else {
            "running"
        };
        say::note(&format!(
            "{} is {words} after {:.1} s.",
            kind.name,
            start.elapsed().as_secs_f64()
        ));
        if self.nodes.are_real() {
            log_in(self.account, &instance)?;
        }
        Ok(instance)
    }

    /// Deletes the instance, if there is one, and waits until its engine has nothing of it.
    fn clear(&self, asker: &Asker<'_>) -> Result<()> {
        let found = asker.send(Request::new("GET", &asker.kind.path()))?;
        if found.status == 404 {
            return Ok(());
        }
        let traces = Traces::of(self.nodes.list(), text(&found.ok()?.json()?, "uuid")?)?;
        asker.delete()?;
        traces.map_or(Ok(()), |traces| traces.wait_until_gone())
    }
}

struct Asker<'a> {
    client: &'a Client,
    key: &'a str,
    kind: Kind,
}

impl Asker<'_> {
    fn send(&self, request: Request<'_>) -> Result<crate::http::Response> {
        self.client
            .send(request.key(self.key).timeout(Duration::from_secs(60)))
    }

    fn find_or_create(&self, public_key: &str) -> Result<bool> {
        let Kind {
            name,
            resource_type,
        } = self.kind;
        let found = self.send(Request::new("GET", &self.kind.path()))?;
        if found.status == 200 {
            say::step(&format!(
                "Looking for the instance {name} of an earlier run"
            ));
            self.restart_if_stopped(&found.json()?)?;
            return Ok(false);
        }
        say::step(&format!(
            "Creating the {resource_type} {name}: 1 vCPU, 1 GiB RAM, 10 GiB disk"
        ));
        let body = json!({
            "name": name, "resource_type": resource_type,
            "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
            "public_key": public_key,
        });
        let create = Request::new("POST", "/api/instance/").json(body);
        self.send(create)?.ok().context("create")?;
        Ok(true)
    }

    fn restart_if_stopped(&self, instance: &Value) -> Result<()> {
        if matches!(text(instance, "state")?, "exited" | "shut_off") {
            let path = format!("{}restart/", self.kind.path());
            let restarted = self.send(Request::new("POST", &path))?.ok();
            restarted.with_context(|| {
                format!(
                    "{0} cannot be started again; if its container is gone, delete it \
                     (DELETE /api/instance/{0}/) and run this again",
                    self.kind.name
                )
            })?;
        }
        Ok(())
    }

    fn wait_until_running(&self, signals: &Signals) -> Result<Value> {
        let start = Instant::now();
        while start.elapsed() < RUNNING_LIMIT {
            let instance = self
                .send(Request::new("GET", &self.kind.path()))?
                .ok()?
                .json()?;
            match text(&instance, "state")? {
                "running" => return Ok(instance),
                "provisioning" => {}
                other => bail!(
                    "{} is {other:?} rather than running; Wharf's log says why",
                    self.kind.name
                ),
            }
            if signals.wait(Duration::from_millis(20)) {
                bail!("interrupted");
            }
        }
        bail!("{} is not running after {RUNNING_LIMIT:?}", self.kind.name)
    }

    fn delete(&self) -> Result<()> {
        say::step(&format!("Deleting {}", self.kind.name));
        let deleted = self.send(Request::new("DELETE", &self.kind.path()))?;
        ensure!(deleted.status == 204, "delete answers {}", deleted.status);
        let after = self.send(Request::new("GET", &self.kind.path()))?;
        ensure!(
            after.status == 404,
            "a deleted instance answers {}",
            after.status
        );
        Ok(())
    }
}

fn log_in(account: &Account, instance: &Value) -> Result<()> {
    say::step("Logging in over SSH, by key and by password");
    let port = instance.get("wan_ssh_port").and_then(Value::as_u64);
    let port = u16::try_from(port.context("no wan_ssh_port")?)?;
    let to = Destination {
        user: LOGIN_USER,
        host: HOST,
        port,
    };
    // One of an earlier run was stopped with its engine; Wharf is starting it again.
    wait_for_banner(HOST, port, BANNER_LIMIT)?;
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

fn text<'a>(instance: &'a Value, field: &str) -> Result<&'a str> {
    let value = instance.get(field).and_then(Value::as_str);
    value.with_context(|| format!("the instance has no {field}"))
}
