//! An engine as the scenarios see it, and the instances that some of them share.

use crate::own_size::operators_sources;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;
use wharf_tests::lanes::BoxedTest;
use wharf_tests::{Api, KeyPair, Login, Server, metric, node_check, small, until};

/// The name of the base image in blueprints.
pub const IMAGE: &str = "localhost/wharf/base:1";

/// The differences between engines that the scenarios know.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The address of published ports.
    pub host: String,
    /// Whether each owner has a network that goes with the last instance.
    pub has_owners_networks: bool,
    /// Whether root in an instance is an account without rights on the node.
    pub remaps_root: bool,
    /// Whether each instance has accounts of its own there.
    pub maps_each_alone: bool,
    pub drops_raw_sockets: bool,
    pub enforces_disk_size: bool,
    /// The content that fits on a disk of 10 GiB.
    pub usable_disk_mib: u32,
    /// Whether the disk of a running container grows.
    pub grows_running: bool,
    /// Whether a size below the usage is refused from the first moment.
    pub knows_usage_at_once: bool,
    /// Sizes to change to, vCPUs and RAM in GiB.
    pub sizes: &'static [(u32, u32)],
    /// The number of instances that come up at once.
    pub many: u16,
}

/// A change on the engine behind Wharf's back.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    Stop,
    Start,
    Remove,
}

/// The engine's object of an instance.
#[derive(Debug)]
pub struct Object {
    pub runs: bool,
    /// The networks of the instance on the engine.
    pub networks: Vec<String>,
    /// The member that has it, if the engine has several.
    pub place: String,
}

/// A private engine.
pub trait Lab: Sync {
    fn facts(&self) -> Facts;

    /// The settings of a server with this engine as its only node, after settings that precede nodes.
    fn settings(&self, more: &str) -> Result<String>;

    /// The engine's objects of an instance.
    fn objects(&self, instance: &Value) -> Result<Vec<Object>>;

    /// Changes an instance's object by hand.
    fn by_hand(&self, instance: &Value, act: Act) -> Result<()>;

    /// The names of Wharf's networks on the engine.
    fn networks(&self) -> Result<Vec<String>>;

    /// The instances that the scenarios share.
    fn neighbours(&self) -> &Once<Neighbours>;

    /// Checks that an instance has and shows this size, vCPUs and RAM in GiB, and its other limits.
    fn has_size(&self, instance: &Value, size: (u32, u32)) -> Result<()>;

    /// Checks what an engine has beside the object of a running instance.
    fn is_whole(&self, _: &Value) -> Result<()> {
        Ok(())
    }

    /// Runs a command in an instance, as its user, which must succeed.
    fn login(&self, instance: &Value, command: &str) -> Result<String> {
        inside(instance, command)
    }

    /// Starts a server and creates a user.
    fn served(&self, more: &str) -> Result<(Server, Api)> {
        let server = Server::start(&self.settings(more)?)?;
        let api = server.user("ann@example.com")?;
        Ok((server, api))
    }

    /// The only object of an instance.
    fn object(&self, instance: &Value) -> Result<Object> {
        let mut all = self.objects(instance)?;
        ensure!(all.len() == 1, "{} objects: {all:?}", all.len());
        all.pop().context("no object")
    }

    /// Waits until the only object of an instance runs, or does not. A busy dockerd updates its list later
    /// than a login.
    fn runs(&self, instance: &Value, wanted: bool) -> Result<()> {
        until(&format!("the engine's object runs: {wanted}"), || {
            Ok((self.object(instance)?.runs == wanted).then_some(()))
        })
    }

    /// Waits until the engine has no object of an instance.
    fn gone(&self, instance: &Value) -> Result<()> {
        until("the engine has no object of the instance", || {
            Ok(self.objects(instance)?.is_empty().then_some(()))
        })
    }

    /// Waits until the engine has none of these networks.
    fn networks_gone<'a>(&self, names: impl IntoIterator<Item = &'a String> + Clone) -> Result<()>
    where
        Self: Sized,
    {
        until("the networks are gone", || {
            let there = self.networks()?;
            let left = names.clone().into_iter().any(|name| there.contains(name));
            Ok((!left).then_some(()))
        })
    }

    /// Deletes an instance; the engine must have no object of it then.
    fn remove(&self, api: &Api, instance: &Value) -> Result<()> {
        api.delete(uuid(instance))?.expect(204)?;
        self.gone(instance)
    }
}

/// A value that the first test makes. If that fails, so do all tests of it.
pub struct Once<T>(Mutex<Option<Result<T, String>>>);

impl<T> Once<T> {
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Calls `test` with the value.
    pub fn with<R>(
        &self,
        make: impl FnOnce() -> Result<T>,
        test: impl FnOnce(&mut T) -> Result<R>,
    ) -> Result<R> {
        let mut value = self.lock();
        let made = value.get_or_insert_with(|| make().map_err(|error| format!("{error:#}")));
        match made {
            Ok(value) => test(value),
            Err(error) => anyhow::bail!("what the tests share: {error}"),
        }
    }

    /// Takes the value out, if there is one.
    pub fn take(&self) -> Option<T> {
        self.lock().take()?.ok()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Result<T, String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Instances that tests look at: two of one owner, and one of another owner.
pub struct Neighbours {
    /// The operator's authority, `ca.pem`.
    pub files: TempDir,
    pub server: Server,
    pub api: Api,
    pub pair: KeyPair,
    /// The instance with the key and with [`SIZE`].
    pub mine: Value,
    pub other: Value,
    pub theirs: Value,
}

/// The name of the instance that most tests look at.
pub const NAME: &str = "sized";
/// Its vCPUs and RAM in GiB.
pub const SIZE: (u32, u32) = (1, 2);

impl Neighbours {
    fn start(lab: &(impl Lab + ?Sized)) -> Result<Self> {
        let files = tempfile::tempdir()?;
        let (server, api) = lab.served(&operators_sources(&files.path().join("ca.pem"))?)?;
        let bob = server.user("bob@example.com")?;
        let pair = KeyPair::new()?;
        let mut body = small("container");
        body["name"] = json!(NAME);
        body["public_key"] = json!(pair.public);
        body["mem_gib"] = json!(SIZE.1);
        let mine = api.create(&body)?.expect(201)?;
        let (other, theirs) = (api.small_container()?, bob.small_container()?);
        Ok(Self {
            mine: api.wait_for(uuid(&mine), "running")?,
            other: api.wait_for(uuid(&other), "running")?,
            theirs: bob.wait_for(uuid(&theirs), "running")?,
            files,
            server,
            api,
            pair,
        })
    }
}

/// A test of the shared instances.
pub fn look<L: Lab + 'static>(look: fn(&L, &mut Neighbours) -> Result<()>) -> BoxedTest<L> {
    Box::new(move |lab| {
        let start = || Neighbours::start(lab);
        lab.neighbours().with(start, |all| look(lab, all))
    })
}

/// Ends the server of the shared instances, if they were made.
pub fn end_neighbours(lab: &impl Lab) -> Result<()> {
    match lab.neighbours().take() {
        Some(all) => all.server.finish(),
        None => Ok(()),
    }
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub fn uuid(instance: &Value) -> &str {
    text(&instance["uuid"])
}

/// The password that the interface shows.
pub fn password(instance: &Value) -> &str {
    text(&instance["original_service_password"])
}

/// A login with the password.
pub fn user(instance: &Value) -> Login<'_> {
    Login::Password(password(instance))
}

/// Runs a command in an instance, as its user, which must succeed.
pub fn inside(instance: &Value, command: &str) -> Result<String> {
    user(instance).output(instance, command)
}

/// The time at which an instance's first process started.
pub fn since(instance: &Value) -> Result<String> {
    // The time of a file of /proc is that of its first use, and it may leave the cache.
    inside(instance, "sed 's/.*) //' /proc/1/stat | cut -d ' ' -f 20")
}

/// Checks that an instance can be logged in to, and was not restarted.
pub fn runs_since(instance: &Value, began: &str) -> Result<()> {
    let now = until("the login works", || Ok(since(instance).ok()))?;
    ensure!(now == began, "the instance was restarted");
    Ok(())
}

/// Creates the smallest container and waits until it runs.
pub fn running(api: &Api) -> Result<Value> {
    api.wait_for(uuid(&api.small_container()?), "running")
}

/// Creates the smallest container of this name and waits until it runs.
pub fn named(api: &Api, name: &str) -> Result<Value> {
    let mut body = small("container");
    body["name"] = json!(name);
    api.create(&body)?.expect(201)?;
    api.wait_for(name, "running")
}

/// Stops an instance and starts it again, and waits for the first login.
pub fn restarted(api: &Api, instance: &Value) -> Result<Value> {
    api.act(uuid(instance), "stop")?.expect(200)?;
    api.act(uuid(instance), "restart")?.expect(200)?;
    let running = api.wait_for(uuid(instance), "running")?;
    user(&running).wait_for_login(&running)?;
    Ok(running)
}

/// The state in the interface.
pub fn state(api: &Api, instance: &Value) -> Result<String> {
    let body = api.instance(uuid(instance))?.expect(200)?;
    Ok(text(&body["state"]).to_owned())
}

/// Short intervals between observations, so that tests need not wait.
pub const OFTEN: &str = "[limits]\nobserve_every_ms = 300\n";

/// Settings with which a request waits for the engine as long as a busy machine needs.
pub fn patient(more: &str) -> String {
    const LIMITS: &str = "[limits]\n";
    const PATIENCE: &str = "answer_wait_ms = 50000\n";
    if more.contains(LIMITS) {
        more.replacen(LIMITS, &format!("{LIMITS}{PATIENCE}"), 1)
    } else {
        format!("{more}{LIMITS}{PATIENCE}")
    }
}

/// Waits until this many observations of the server's nodes have begun and ended.
pub fn after_observations(server: &Server, count: u32) -> Result<()> {
    let metrics = server.user("metrics@example.com")?;
    let ended = || metric(&metrics, "wharf_node_observations_total{");
    // One may be under way.
    let wanted = ended()? + f64::from(count) + 1.0;
    until(&format!("{count} observations"), || {
        Ok((ended()? >= wanted).then_some(()))
    })
}

/// Runs `wharf node check` with settings, which must succeed or fail, and say some words.
pub fn node_checks(node: &str, cases: &[(String, bool, &str)]) -> Result<()> {
    for (settings, ok, words) in cases {
        let (success, said) = node_check(node, settings)?;
        ensure!(
            success == *ok && said.contains(words),
            "no {words:?} in {said}"
        );
        println!("{}", said.trim());
    }
    Ok(())
}
