//! A run of `up`: its server, its engine, and its names on the machine.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wharf_testkit::engine::short_hash;
use wharf_testkit::http::{Endpoint, HttpClient, Request, Response};
use wharf_testkit::ssh::{Destination, KeyPair, wait_for_banner};

const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// The time in which a run starts the instances of an earlier one.
const BANNER_LIMIT: Duration = Duration::from_secs(60);

/// The server of a run, with the user of its first instance.
pub struct Run {
    dir: PathBuf,
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
            dir: dir.to_owned(),
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
        line.map(|value| value.trim_matches('"'))
            .with_context(|| format!("no {key}"))
    }

    /// A client of the private dockerd.
    pub fn engine(&self) -> Result<HttpClient> {
        Ok(HttpClient::new(Endpoint::parse(self.setting("endpoint")?)?))
    }

    pub fn ask(&self, request: Request<'_>) -> Result<Response> {
        let client = HttpClient::new(Endpoint::parse(&self.url)?);
        client.send(request.key(&self.key).timeout(ANSWER_LIMIT))
    }

    /// Runs a script on `hello`, when it accepts logins.
    pub fn on_hello(&self, script: &str) -> Result<String> {
        let hello = self.ask(Request::new("GET", "/api/instance/hello/"))?;
        let port = hello.ok()?.json()?["wan_ssh_port"].as_u64();
        let to = Destination {
            user: "user",
            host: self.setting("ssh_host")?,
            port: port.context("no port")?.try_into()?,
        };
        wait_for_banner(to.host, to.port, BANNER_LIMIT)?;
        KeyPair::in_directory(&self.dir.join("ssh"))?.run(to, script)
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

/// The id of the private engine of a run in this directory.
pub fn engine_id(dir: &Path) -> String {
    short_hash(dir.join("engine").as_os_str().as_encoded_bytes())
}

/// The words in everything that runs in this directory have on the machine.
pub fn names(dir: &Path) -> Vec<String> {
    let mut names = vec![engine_id(dir), dir.display().to_string()];
    let config = crate::read(dir.join("wharf.toml"));
    let mut networks = config
        .lines()
        .filter_map(|line| line.strip_prefix("lan_cidr = \"10."));
    let second = networks
        .next()
        .and_then(|rest| rest.split('.').next()?.parse::<u8>().ok());
    // The bridges of the owners' networks.
    names.extend(second.map(|second| format!("whfn0a{second:02x}")));
    names
}
