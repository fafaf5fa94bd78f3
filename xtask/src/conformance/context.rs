//! What a check works with: users, and instances that go when it is over.

use super::check::{Skip, skip};
use super::client::{Answer, Client, INSTANCES};
use super::redact::redacted;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks at an instance.
const PAUSE: Duration = Duration::from_millis(40);

/// What all checks of a run share.
pub struct Shared {
    /// The user whose instances are made.
    pub me: Client,
    /// Another user.
    pub other: Option<Client>,
    /// No key.
    pub anyone: Client,
    /// How long anything may take.
    pub patience: Duration,
    /// What the names of all instances of this run begin with.
    pub prefix: String,
    /// What the operator of the service prepared.
    pub staged: Staged,
    /// For numbering names.
    pub count: AtomicUsize,
    /// Instances that checks only look at.
    pub samples: Samples,
}

/// Names for which the service is set up to behave badly, and hardware that cannot be asked for.
#[derive(Debug, Clone, Default)]
pub struct Staged {
    /// An instance of this name cannot be provisioned.
    pub failing_name: Option<String>,
    /// The host of an instance of this name cannot be reached for its usage and its size.
    pub unreachable_name: Option<String>,
    /// An instance of this name ends by itself some time after it ran.
    pub dying_name: Option<String>,
    /// An instance of this name does not start again once it was stopped.
    pub unstartable_name: Option<String>,
    /// An instance of this name takes a second or more to stop.
    pub slow_name: Option<String>,
    /// A GPU model of which at least one is free.
    pub gpu_model: Option<String>,
    /// Ports or addresses run out before the sizes of small VMs do.
    pub few_addresses: bool,
}

/// A running container and a running VM; or why there is none.
#[derive(Default)]
pub struct Samples {
    /// The container.
    pub container: OnceLock<Result<Value, String>>,
    /// The VM.
    pub vm: OnceLock<Result<Value, String>>,
}

/// What one check has. Dropping it deletes the instances that the check made.
pub struct Context<'s> {
    shared: &'s Shared,
    made: Mutex<Vec<(Client, String)>>,
}

impl<'s> Context<'s> {
    /// For one check.
    pub fn new(shared: &'s Shared) -> Self {
        Self {
            shared,
            made: Mutex::default(),
        }
    }

    /// The user.
    pub fn me(&self) -> &Client {
        &self.shared.me
    }

    /// Another user.
    pub fn other(&self) -> Result<&Client> {
        let none = || Skip("there is no key of another user (--other-key)".to_owned());
        Ok(self.shared.other.as_ref().ok_or_else(none)?)
    }

    /// No key.
    pub fn anyone(&self) -> &Client {
        &self.shared.anyone
    }

    /// What the operator prepared; skips if it is missing.
    pub fn staged(&self, pick: fn(&Staged) -> &Option<String>, option: &str) -> Result<&str> {
        match pick(&self.shared.staged) {
            Some(name) => Ok(name),
            None => skip(format!("the service was not prepared for it ({option})")),
        }
    }

    /// Whether ports or addresses run out before the sizes of small VMs do.
    pub fn few_addresses(&self) -> bool {
        self.shared.staged.few_addresses
    }

    /// A name for an instance that takes its time to stop, if the operator prepared one.
    pub fn slow_name(&self) -> String {
        let prepared = self.shared.staged.slow_name.clone();
        prepared.unwrap_or_else(|| self.name())
    }

    /// A free name that begins like all of this run.
    pub fn name(&self) -> String {
        let n = self.shared.count.fetch_add(1, Ordering::Relaxed);
        format!("{}{n}", self.shared.prefix)
    }

    /// The least that can be asked for, with a name of its own.
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

    /// Asks for an instance; one that is made goes when the check is over.
    pub fn try_create(&self, user: &Client, body: &Value) -> Result<Answer> {
        let answer = user.post(INSTANCES, body)?;
        self.keep(user, &answer);
        Ok(answer)
    }

    /// Notes an instance that an answer says was made.
    pub fn keep(&self, user: &Client, answer: &Answer) {
        if let (201, Some(uuid)) = (answer.status, answer.body["uuid"].as_str()) {
            self.lock().push((user.for_cleaning(), uuid.to_owned()));
        }
    }

    /// An instance. Other checks give room back when they are over, so a full service is waited
    /// for; one that stays full cannot be checked.
    pub fn create(&self, body: &Value) -> Result<Value> {
        self.create_as(self.me(), body)
    }

    /// The same for a user.
    pub fn create_as(&self, user: &Client, body: &Value) -> Result<Value> {
        let begin = Instant::now();
        loop {
            let answer = self.try_create(user, body)?;
            if answer.status != 422 {
                return answer.expect(201);
            }
            if begin.elapsed() > self.shared.patience {
                return skip(format!("there is no room: {answer}"));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// A small instance that runs.
    pub fn running(&self, kind: &str) -> Result<Value> {
        // Skips where there is none of the kind.
        self.sample(kind)?;
        self.running_with(&self.small(kind))
    }

    /// An instance that runs.
    pub fn running_with(&self, body: &Value) -> Result<Value> {
        let created = self.create(body)?;
        self.wait(uuid(&created)?, "running")
    }

    /// A small instance that is stopped.
    pub fn stopped(&self, kind: &str) -> Result<Value> {
        let running = self.running(kind)?;
        self.me().act(uuid(&running)?, "stop")?.is(200)?;
        self.wait(uuid(&running)?, stopped_state(kind))
    }

    /// Waits until an instance is in a state.
    pub fn wait(&self, uuid: &str, state: &str) -> Result<Value> {
        let begin = Instant::now();
        loop {
            let body = self.me().instance(uuid)?.expect(200)?;
            let now = body["state"].as_str().unwrap_or("");
            if now == state {
                return Ok(body);
            }
            ensure!(
                now != "error",
                "the instance is in error: {}",
                redacted(&body)
            );
            if begin.elapsed() > self.shared.patience {
                bail!("still {now}, not {state}, after {:?}", self.shared.patience);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Asks until the answer is yes, as long as anything may take.
    pub fn retry(&self, ask: impl Fn() -> Result<bool>) -> Result<()> {
        let begin = Instant::now();
        while !ask()? {
            if begin.elapsed() > self.shared.patience {
                bail!("still not after {:?}", self.shared.patience);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// A running instance to look at, not to change.
    pub fn sample(&self, kind: &str) -> Result<&'s Value> {
        let samples = &self.shared.samples;
        let sample = match kind {
            "vm" => samples.vm.get(),
            _ => samples.container.get(),
        };
        match sample {
            Some(Ok(instance)) => Ok(instance),
            Some(Err(why)) => skip(format!("there is no {kind}: {why}")),
            None => skip(format!("no {kind} was made")),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Client, String)>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        for (user, uuid) in self.lock().drain(..) {
            // What stays is found by its name at the end of the run.
            let _ = user.delete(&uuid);
        }
    }
}

/// What get and list show of a stopped instance.
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

/// Fields added or replaced.
pub fn with(mut body: Value, fields: &Value) -> Value {
    if let (Some(body), Some(fields)) = (body.as_object_mut(), fields.as_object()) {
        body.extend(fields.clone());
    }
    body
}

/// Fails unless a field has a value.
pub fn same(object: &Value, field: &str, expected: &Value) -> Result<()> {
    let equal = match (object[field].as_f64(), expected.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        _ => object[field] == *expected,
    };
    ensure!(
        equal,
        "`{field}` is {}, not {expected}: {}",
        object[field],
        redacted(object)
    );
    Ok(())
}
