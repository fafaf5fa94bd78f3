//! Two runs of `up` side by side; a dockerd that is killed; a run that is killed; a full machine.

use crate::up::Up;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::time::Duration;
use wharf_testkit::engine::short_hash;
use wharf_testkit::http::{Client, Endpoint, Request};
use wharf_testkit::process::{command, output, wait_until};
use wharf_testkit::ssh::has_banner;
use wharf_testkit::workspace;

/// The directory of the runs, below cargo's target directory.
pub const DIRECTORY: &str = "up-apart";
const LIMIT: Duration = Duration::from_secs(120);

pub fn works() -> Result<()> {
    let dir = workspace::target().join(DIRECTORY);
    let _ = fs::remove_dir_all(&dir);
    let (one, two) = (dir.join("one"), dir.join("two"));
    for dir in [&one, &two] {
        fs::create_dir_all(dir)?;
    }
    let mut first = Up::running(&one)?;
    let mut second = Up::running(&two)?;
    let (mine, theirs) = (Run::of(&one)?, Run::of(&two)?);
    ensure!(mine.setting("lan_cidr")? != theirs.setting("lan_cidr")?);
    ensure!(mine.setting("from")? != theirs.setting("from")?);
    mine.logs_in()?;
    theirs.logs_in()?;

    engine_is_started_again(&mut second, &theirs).context("a killed dockerd")?;
    second.stop()?;
    mine.logs_in().context("after the end of the other")?;

    full(&mut first, &mine).context("a full machine")?;
    killed(first, &one, &two).context("a killed run")?;
    Ok(fs::remove_dir_all(&dir)?)
}

/// The server and the first instance of a run.
struct Run {
    dir: std::path::PathBuf,
    config: String,
    url: String,
    key: String,
}

impl Run {
    fn of(dir: &Path) -> Result<Self> {
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

    fn setting(&self, key: &str) -> Result<&str> {
        let mut lines = self.config.lines();
        let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        line.with_context(|| format!("no {key}"))
    }

    fn ask(&self, request: Request<'_>) -> Result<wharf_testkit::http::Response> {
        Client::new(Endpoint::parse(&self.url)?).send(request.key(&self.key).timeout(LIMIT))
    }

    /// Logs in to `hello` by the key of this run.
    fn logs_in(&self) -> Result<()> {
        let hello = self
            .ask(Request::new("GET", "/api/instance/hello/"))?
            .ok()?
            .json()?;
        let port = hello
            .get("wan_ssh_port")
            .and_then(serde_json::Value::as_u64);
        let port = port.context("no port")?;
        ensure!(
            has_banner("127.0.0.1", u16::try_from(port)?),
            "no banner at {port}"
        );
        let mut ssh = command("ssh");
        ssh.args([
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
        ])
        .args(["-o", "BatchMode=yes", "-i"])
        .arg(self.dir.join("ssh/id_ed25519"))
        .args(["-p", &port.to_string(), "user@127.0.0.1", "uname -n"]);
        ensure!(output(&mut ssh)?.trim() == "hello");
        Ok(())
    }
}

fn engine_is_started_again(up: &mut Up, run: &Run) -> Result<()> {
    let id = short_hash(run.dir.join("engine").as_os_str().as_encoded_bytes());
    let pid = crate::read(format!("/run/wharf-{id}/engine.pid"));
    output(command("kill").args(["-9", pid.trim()]))?;
    let told = wait_until(LIMIT, || up.output().contains("It runs again"));
    ensure!(told, "{}", up.output());
    run.logs_in()?;
    let restarted = wait_until(LIMIT, || {
        let restart = Request::new("POST", "/api/instance/hello/stop/");
        run.ask(restart).is_ok_and(|answer| answer.status == 200)
    });
    ensure!(restarted, "the node does not come back");
    Ok(())
}

/// Fills the capacity without `hello`; the next run serves nevertheless.
fn full(up: &mut Up, run: &Run) -> Result<()> {
    let delete = Request::new("DELETE", "/api/instance/hello/");
    ensure!(run.ask(delete)?.status == 204);
    let room = run.setting("capacity")?;
    let mem = room
        .split("mem_gib = ")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let mem: u64 = mem.context("mem_gib")?.parse()?;
    let body = serde_json::json!({
        "resource_type": "container", "n_vcpus": 1, "mem_gib": mem, "disk_size_gib": 10,
    });
    let made = wait_until(LIMIT, || {
        let create = Request::new("POST", "/api/instance/").json(body.clone());
        run.ask(create).is_ok_and(|answer| answer.status == 201)
    });
    ensure!(made, "the machine cannot be filled");
    up.stop()?;
    *up = Up::running(&run.dir)?;
    ensure!(
        up.output().contains("There is no room for hello"),
        "{}",
        up.output()
    );
    Ok(())
}

/// Kills a run. The start and the end of another one remove what it left.
fn killed(up: Up, dir: &Path, other: &Path) -> Result<()> {
    let id = short_hash(dir.join("engine").as_os_str().as_encoded_bytes());
    up.kill()?;
    ensure!(
        crate::lifecycle::remains()?.contains(&id),
        "nothing was left"
    );
    let mut next = Up::running(other)?;
    ensure!(
        next.output().contains("Ending what a killed run left"),
        "{}",
        next.output()
    );
    next.stop()?;
    let remains = crate::lifecycle::remains()?;
    crate::lifecycle::assert_none(&remains, &[&id]);
    // The table is gone, or has rules of another program.
    let filter = output(command("nft").args(["list", "table", "ip", "filter"]));
    let filter = filter.unwrap_or_else(|_| "accept\n".to_owned());
    ensure!(
        filter.contains("accept\n"),
        "an empty chain is left: {filter}"
    );
    Ok(())
}
