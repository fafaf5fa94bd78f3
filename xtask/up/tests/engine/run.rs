//! The server of a run of `up`.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::time::Duration;
use wharf_testkit::engine::short_hash;
use wharf_testkit::http::{Client, Endpoint, Request, Response};

const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// The server of a run, with the user of its first instance.
pub struct Run {
    config: String,
    url: String,
    key: String,
}

impl Run {
    /// The run that was last in this directory.
    pub fn of(dir: &Path) -> Result<Self> {
        let log = crate::read(dir.join("wharf.out"));
        let url = log
            .lines()
            .find_map(|line| line.strip_prefix("listening on "));
        Ok(Self {
            config: crate::read(dir.join("wharf.toml")),
            url: url.context("no URL")?.trim().to_owned(),
            key: crate::read(dir.join("api-key")).trim().to_owned(),
        })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The first value of a setting.
    pub fn setting(&self, key: &str) -> Result<&str> {
        let mut lines = self.config.lines();
        let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        line.with_context(|| format!("no {key}"))
    }

    pub fn ask(&self, request: Request<'_>) -> Result<Response> {
        let client = Client::new(Endpoint::parse(&self.url)?);
        client.send(request.key(&self.key).timeout(ANSWER_LIMIT))
    }

    /// Deletes `hello`, and gives all memory to another instance.
    pub fn fill(&self) -> Result<()> {
        let delete = Request::new("DELETE", "/api/instance/hello/");
        ensure!(self.ask(delete)?.status == 204);
        let room = self.setting("capacity")?;
        let mem = room
            .split("mem_gib = ")
            .nth(1)
            .and_then(|rest| rest.split(',').next());
        let mem: u64 = mem.context("mem_gib")?.parse()?;
        let body = serde_json::json!({
            "resource_type": "container", "n_vcpus": 1, "mem_gib": mem, "disk_size_gib": 10,
        });
        let made = wharf_testkit::process::wait_until(ANSWER_LIMIT, || {
            let create = Request::new("POST", "/api/instance/").json(body.clone());
            self.ask(create).is_ok_and(|answer| answer.status == 201)
        });
        ensure!(made, "the machine cannot be filled");
        Ok(())
    }
}

/// The id of the private engine of a run in this directory, which its traces on the machine have in
/// their names.
pub fn engine_id(dir: &Path) -> String {
    short_hash(dir.join("engine").as_os_str().as_encoded_bytes())
}
