//! One run against one service, from the first request to the last deletion.

use super::checks;
use super::client::{Client, VOLUMES, volume_path};
use super::context::{Context, Samples, Shared, Staged};
use super::openapi::Document;
use super::options::Options;
use super::report::Report;
use super::runner;
use super::watch::Watch;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;
use wharf_testkit::progress;

const TIMEOUT: Duration = Duration::from_secs(60);
const JOBS: usize = 4;

/// A service, with the keys and the prepared failures of its operator.
#[derive(Clone)]
pub struct Target {
    /// `http://HOST:PORT` or `https://…`.
    pub base_url: String,
    /// API key of a user.
    pub key: String,
    /// API key of another user.
    pub other_key: Option<String>,
    /// The failures that the operator prepared.
    pub staged: Staged,
}

/// Runs the checks that the options select, and deletes their instances.
pub fn check_service(
    target: &Target,
    options: &Options,
    interrupted: &Arc<AtomicBool>,
) -> Result<Report> {
    let timeout = options.timeout_s.map_or(TIMEOUT, Duration::from_secs);
    let client = |watch: &Arc<Watch>| {
        let (watch, interrupted) = (Arc::clone(watch), Arc::clone(interrupted));
        Client::new(&target.base_url, timeout, watch, interrupted)
    };
    let document = document(&client(&Arc::default()), options)?;
    let watch = Arc::new(Watch::new(document));
    let anonymous = client(&watch);
    let shared = Shared {
        me: anonymous.with_key(&target.key),
        other: target.other_key.as_ref().map(|key| anonymous.with_key(key)),
        anonymous,
        deadline: timeout,
        prefix: prefix(),
        staged: target.staged.clone(),
        count: AtomicUsize::new(0),
        samples: Samples::default(),
    };
    [Some(&target.key), target.other_key.as_ref()]
        .into_iter()
        .flatten()
        .for_each(|key| watch.add_secret(key));
    shared
        .me
        .list()
        .context("cannot use the service with this key")?;
    let chosen = runner::choose(
        checks::all(),
        options.filter.as_deref(),
        options.specification_only,
    );
    if chosen.is_empty() {
        bail!("no rule's section or name contains the filter");
    }
    progress::step(&format!(
        "Checking {} rules at {}",
        chosen.len(),
        target.base_url
    ));
    let mut outcomes = {
        let context = Context::new(&shared);
        for (kind, sample) in [
            ("container", &shared.samples.container),
            ("vm", &shared.samples.vm),
        ] {
            let sample_instance = context.running_with(&context.small(kind));
            // Cannot fail: the cell is empty.
            let _ = sample.set(sample_instance.map_err(|error| format!("{error:#}")));
        }
        let jobs = options.jobs.unwrap_or(JOBS);
        runner::run(&chosen, &shared, jobs, interrupted)
    };
    outcomes.extend(watch.outcomes());
    sweep(&shared);
    Ok(Report::new(outcomes, watch.unseen_statuses()))
}

/// Deletes the instances and volumes of requests whose response was lost.
fn sweep(shared: &Shared) {
    for user in [Some(&shared.me), shared.other.as_ref()]
        .into_iter()
        .flatten()
    {
        let user = user.for_cleanup();
        for instance in user.list().unwrap_or_default() {
            let field = |name: &str| instance[name].as_str().unwrap_or_default();
            if field("name").starts_with(&shared.prefix) {
                let _ = user.delete(field("uuid"));
            }
        }
        let volumes = user.get(VOLUMES).map(|volumes| volumes.body);
        for volume in volumes.iter().filter_map(Value::as_array).flatten() {
            let field = |name: &str| volume[name].as_str().unwrap_or_default();
            if field("name").starts_with(&shared.prefix) && volume["shared"] == false {
                let _ = user.raw("DELETE", &volume_path(field("id")), &[], None);
            }
        }
    }
}

fn document(client: &Client, options: &Options) -> Result<Option<Document>> {
    if let Some(file) = &options.openapi {
        let read = || -> Result<Document> {
            let document: Value = serde_json::from_slice(&std::fs::read(file)?)?;
            Document::new(&document)
        };
        return read()
            .with_context(|| format!("{}", file.display()))
            .map(Some);
    }
    let response = client.get("/api/openapi.json")?;
    if response.status != 200 {
        return Ok(None);
    }
    Document::new(&response.body)
        .context("cannot read the service's OpenAPI document")
        .map(Some)
}

/// A random prefix, so that concurrent runs do not collide.
fn prefix() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("conf-{:08x}-", random & 0xffff_ffff)
}
