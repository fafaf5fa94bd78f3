//! The environment of a check: users, and instances that are deleted at its end.

use super::check::{Skip, skip};
use super::client::{Client, INSTANCES, Response, VOLUMES, instance_path, volume_path};
use super::redact::redacted;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The interval of polling.
const PAUSE: Duration = Duration::from_millis(40);

/// Tries of a request that must arrive during provisioning.
const TRIES: usize = 8;

/// The state that all checks of a run share.
pub struct Shared {
    /// The user who creates the instances.
    pub me: Client,
    /// Another user.
    pub other: Option<Client>,
    /// A client without a key.
    pub anonymous: Client,
    /// The deadline of any wait.
    pub deadline: Duration,
    /// The prefix of the names of all instances of this run.
    pub prefix: String,
    /// The failures that the service's operator prepared.
    pub staged: Staged,
    /// The number of names handed out.
    pub count: AtomicUsize,
    /// Instances that checks read but do not change.
    pub samples: Samples,
}

/// Names of instances that fail as prepared by the operator, and the service's hardware.
#[derive(Debug, Clone, Default)]
pub struct Staged {
    /// An instance of this name cannot be provisioned.
    pub failing_name: Option<String>,
    /// The node of an instance of this name cannot be reached for stats and resize.
    pub unreachable_name: Option<String>,
    /// An instance of this name ends by itself some time after it ran.
    pub dying_name: Option<String>,
    /// An instance of this name does not start again once it was stopped.
    pub unstartable_name: Option<String>,
    /// An instance of this name takes a second or more to stop.
    pub slow_name: Option<String>,
    /// A GPU model of which at least one is free.
    pub gpu_model: Option<String>,
    /// Small VMs exhaust ports or addresses before vCPUs, RAM and disk.
    pub few_addresses: bool,
}

/// A running container and a running VM, or the reason for their absence.
#[derive(Default)]
pub struct Samples {
    /// The container.
    pub container: OnceLock<Result<Value, String>>,
    /// The VM.
    pub vm: OnceLock<Result<Value, String>>,
}

/// The environment of one check. Dropping it deletes the instances of the check.
pub struct Context<'s> {
    shared: &'s Shared,
    /// The paths of instances and volumes.
    created: Mutex<Vec<(Client, String)>>,
}

impl<'s> Context<'s> {
    /// The context of a new check.
    pub fn new(shared: &'s Shared) -> Self {
        Self {
            shared,
            created: Mutex::default(),
        }
    }

    /// The user.
    pub fn me(&self) -> &Client {
        &self.shared.me
    }

    /// Another user.
    pub fn other(&self) -> Result<&Client> {
        let none = || Skip("the key of another user is missing (--other-key)".to_owned());
        Ok(self.shared.other.as_ref().ok_or_else(none)?)
    }

    /// A client without a key.
    pub fn anonymous(&self) -> &Client {
        &self.shared.anonymous
    }

    /// A name that the operator prepared; skips the check if it is missing.
    pub fn staged(&self, pick: fn(&Staged) -> &Option<String>, option: &str) -> Result<&str> {
        match pick(&self.shared.staged) {
            Some(name) => Ok(name),
            None => skip(format!(
                "the service is not prepared for this rule ({option})"
            )),
        }
    }

    /// Whether small VMs exhaust ports or addresses before vCPUs, RAM and disk.
    pub fn few_addresses(&self) -> bool {
        self.shared.staged.few_addresses
    }

    /// A name for an instance that is slow to stop, if the operator prepared one; else any name.
    pub fn slow_name(&self) -> String {
        let prepared = self.shared.staged.slow_name.clone();
        prepared.unwrap_or_else(|| self.name())
    }

    /// A free name with the prefix of this run.
    pub fn name(&self) -> String {
        let n = self.shared.count.fetch_add(1, Ordering::Relaxed);
        format!("{}{n}", self.shared.prefix)
    }

    /// The smallest possible request, with a new name.
    pub fn small(&self, kind: &str) -> Value {
        json!({
            "resource_type": kind, "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
            "name": self.name(),
        })
    }

    /// [`Self::small`] with fields added or replaced.
    pub fn small_with(&self, kind: &str, fields: &Value) -> Value {
        with(self.small(kind), fields)
    }

    /// Requests an instance; it is deleted at the end of the check.
    pub fn try_create(&self, user: &Client, body: &Value) -> Result<Response> {
        let response = user.post(INSTANCES, body)?;
        self.delete_later(user, &response);
        Ok(response)
    }

    /// Records the instance or the volume of a 201 response for deletion.
    pub fn delete_later(&self, user: &Client, response: &Response) {
        let path = match (response.body["uuid"].as_str(), response.body["id"].as_str()) {
            (Some(uuid), _) => instance_path(uuid),
            (None, Some(id)) => volume_path(id),
            (None, None) => return,
        };
        if response.status == 201 {
            self.lock().push((user.for_cleanup(), path));
        }
    }

    /// Creates a volume of 1 GiB; it is deleted at the end of the check. Skips the check if the service has
    /// no volumes.
    pub fn volume(&self) -> Result<Value> {
        self.volume_with(&json!({}))
    }

    /// [`Self::volume`] with fields added or replaced.
    pub fn volume_with(&self, fields: &Value) -> Result<Value> {
        let body = with(json!({ "name": self.name(), "size_gib": 1 }), fields);
        let created = self.me().post(VOLUMES, &body)?;
        self.delete_later(self.me(), &created);
        if created.status == 404 {
            return skip("the service has no volumes");
        }
        created.expect(201)
    }

    /// Creates an instance. Retries while the service is full, because other checks release capacity.
    /// Skips the check if the service stays full.
    pub fn create(&self, body: &Value) -> Result<Value> {
        self.create_as(self.me(), body)
    }

    /// Creates an instance for a user.
    pub fn create_as(&self, user: &Client, body: &Value) -> Result<Value> {
        let mut refused = None;
        let created = self.poll(|| {
            let response = self.try_create(user, body)?;
            if response.status != 422 {
                return response.expect(201).map(Some);
            }
            refused = Some(response);
            Ok(None)
        })?;
        match (created, refused) {
            (Some(created), _) => Ok(created),
            (_, Some(response)) => skip(format!("the service stayed full: {response}")),
            _ => bail!("no response"),
        }
    }

    /// Creates a small instance, and waits until it runs.
    pub fn running(&self, kind: &str) -> Result<Value> {
        // Skips the check if the service offers no instances of this kind.
        self.sample(kind)?;
        self.running_with(&self.small(kind))
    }

    /// Creates an instance, and waits until it runs.
    pub fn running_with(&self, body: &Value) -> Result<Value> {
        let created = self.create(body)?;
        self.wait(uuid(&created)?, "running")
    }

    /// Creates a small instance and sends a request during its provisioning. Tries again if the instance
    /// is no longer provisioning after the response.
    pub fn during_provisioning(
        &self,
        kind: &str,
        send: impl Fn(&str) -> Result<Response>,
    ) -> Result<(Value, Response)> {
        self.sample(kind)?;
        for _ in 0..TRIES {
            let created = self.create(&self.small(kind))?;
            let response = send(uuid(&created)?)?;
            let now = self.me().instance(uuid(&created)?)?.expect(200)?;
            if now["state"] == "provisioning" {
                return Ok((created, response));
            }
        }
        skip("the instance was running before the request")
    }

    /// Creates a small instance, and stops it.
    pub fn stopped(&self, kind: &str) -> Result<Value> {
        let running = self.running(kind)?;
        self.me().act(uuid(&running)?, "stop")?.is(200)?;
        self.wait(uuid(&running)?, stopped_state(kind))
    }

    /// Waits until an instance is in a state.
    pub fn wait(&self, uuid: &str, state: &str) -> Result<Value> {
        let mut now = String::new();
        let found = self.poll(|| {
            let body = self.me().instance(uuid)?.expect(200)?;
            now = body["state"].as_str().unwrap_or("").to_owned();
            let failed = now == "error" && state != "error";
            ensure!(!failed, "the instance is in error: {}", redacted(&body));
            Ok((now == state).then_some(body))
        })?;
        let deadline = self.shared.deadline;
        found.with_context(|| {
            format!("the state is still {now} after {deadline:?}, expected {state}")
        })
    }

    /// Polls until `condition` holds.
    pub fn retry(&self, condition: impl Fn() -> Result<bool>) -> Result<()> {
        let deadline = self.shared.deadline;
        self.poll(|| Ok(condition()?.then_some(())))?
            .with_context(|| format!("the condition does not hold after {deadline:?}"))
    }

    /// Polls until there is a value. Returns none at the deadline.
    fn poll<T>(&self, mut look: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
        let begin = Instant::now();
        loop {
            let found = look()?;
            if found.is_some() || begin.elapsed() > self.shared.deadline {
                return Ok(found);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// A running instance that checks only read.
    pub fn sample(&self, kind: &str) -> Result<&'s Value> {
        let samples = &self.shared.samples;
        let sample = match kind {
            "vm" => samples.vm.get(),
            _ => samples.container.get(),
        };
        match sample {
            Some(Ok(instance)) => Ok(instance),
            Some(Err(why)) => skip(format!("no {kind} is available: {why}")),
            None => skip(format!("no {kind} was created")),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Client, String)>> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // A volume goes after its instances, and is refused until they are gone.
        let created: Vec<_> = self.lock().drain(..).collect();
        for (user, path) in created.into_iter().rev() {
            // The end of the run deletes the rest by name.
            let _ = self.poll(|| {
                let deleted = user.raw("DELETE", &path, &[], None)?;
                Ok((deleted.status != 400).then_some(()))
            });
        }
    }
}

/// The state of a stopped instance in get and list.
pub fn stopped_state(kind: &str) -> &'static str {
    match kind {
        "vm" => "shut_off",
        _ => "exited",
    }
}

/// The `uuid` of an instance.
pub fn uuid(instance: &Value) -> Result<&str> {
    text(instance, "uuid")
}

/// A field that is a string.
pub fn text<'v>(object: &'v Value, field: &str) -> Result<&'v str> {
    object[field]
        .as_str()
        .with_context(|| format!("`{field}` is not a string: {}", redacted(object)))
}

/// A request with fields added or replaced.
pub fn with(mut body: Value, fields: &Value) -> Value {
    if let (Some(body), Some(fields)) = (body.as_object_mut(), fields.as_object()) {
        body.extend(fields.clone());
    }
    body
}

/// Fails unless a field has this value.
pub fn expect_field(object: &Value, field: &str, expected: &Value) -> Result<()> {
    let equal = match (object[field].as_f64(), expected.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        _ => object[field] == *expected,
    };
    ensure!(
        equal,
        "`{field}` is {}, expected {expected}: {}",
        object[field],
        redacted(object)
    );
    Ok(())
}
