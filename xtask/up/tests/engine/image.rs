//! The promises of the image `base` and its init that no test of an engine proves, on a run of `up`.

use crate::run::Run;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::time::Duration;
use wharf_testkit::http::{Body, HttpClient, Request};
use wharf_testkit::process::{output, wait_until};

const HASH: &str = "$6$salt$hash";
const LIMIT: Duration = Duration::from_secs(60);
/// Milliseconds from a first start to its kill.
const KILLS: [u64; 8] = [0, 10, 20, 30, 45, 60, 80, 110];
/// The marks of a complete first start, as the user sees them.
const COMPLETE: &str = "sudo -n id -u; ls -A | head -1; stat -c '%U %a' .ssh .ssh/authorized_keys; \
    sudo getent shadow user | cut -d: -f2; sudo ls -A /etc/wharf";

pub fn keeps_its_promises(run: &Run) -> Result<()> {
    let seen = run.on_hello("locale | head -1; /usr/local/sbin/poweroff; echo $?")?;
    ensure!(seen == "LANG=C.UTF-8\n1", "poweroff is for root: {seen}");
    // sshd is restarted when it ends.
    run.on_hello("sudo pkill -o -x sshd; true").ok();
    run.on_hello("true")?;
    let engine = run.engine()?;
    std::thread::scope(|scope| {
        let engine = &engine;
        let starts = KILLS.map(|delay| scope.spawn(move || first_start(engine, delay)));
        starts.into_iter().try_for_each(|start| match start.join() {
            Ok(result) => result,
            Err(_) => bail!("a first start panicked"),
        })
    })
}

/// Kills a first start after `delay`; the next start completes it.
fn first_start(engine: &HttpClient, delay: u64) -> Result<()> {
    let container = Container::create(engine, format!("killed-after-{delay}"))?;
    container.post("start")?;
    std::thread::sleep(Duration::from_millis(delay));
    container.post("kill").ok();
    container.wait_for_end()?;
    container.post("start")?;
    let complete = || container.inside(COMPLETE).unwrap_or_default();
    let expected = format!("0\n.bash_logout\nuser 700\nuser 600\n{HASH}\n");
    let is_complete = wait_until(LIMIT, || complete() == expected);
    ensure!(is_complete, "killed after {delay} ms: {}", complete());
    match delay {
        0 => stops_by_itself(&container),
        _ => Ok(()),
    }
}

/// The engine would kill it after its grace, which changes the exit status.
fn stops_by_itself(container: &Container) -> Result<()> {
    let deaf = "nohup sh -c 'trap \"\" TERM HUP; echo deaf; while :; do sleep 1; done' >out 2>&1 & \
        until grep -qs deaf out; do :; done";
    for started in ["true", deaf] {
        container.inside(started)?;
        container.post("stop?t=20")?;
        let status = container.state()?["ExitCode"].clone();
        ensure!(status == 0, "{started}: exit status {status}");
        container.post("start")?;
        let lives = wait_until(LIMIT, || container.inside("true").is_ok());
        ensure!(lives, "it does not start again");
    }
    Ok(())
}

/// A container of the image without Wharf and without a network, removed when dropped.
struct Container<'a> {
    engine: &'a HttpClient,
    name: String,
}

impl<'a> Container<'a> {
    /// Creates it with the files of a first start.
    fn create(engine: &'a HttpClient, name: String) -> Result<Self> {
        let body = json!({
            "Image": "localhost/wharf/base:1", "HostConfig": { "NetworkMode": "none" },
        });
        let path = format!("/containers/create?name={name}");
        engine.send(Request::new("POST", &path).json(body))?.ok()?;
        let container = Self { engine, name };
        let directory = tempfile::tempdir()?;
        let below = directory.path().join("etc/wharf/first-boot");
        fs::create_dir_all(&below)?;
        for (file, content) in [
            ("user", "user"),
            ("password", HASH),
            ("authorized_keys", "x"),
        ] {
            fs::write(below.join(file), content)?;
        }
        let tar = Command::new("tar")
            .args([
                "--create",
                "--owner=0",
                "--group=0",
                "--mode=go-rwx,u+rwX",
                "--directory",
            ])
            .arg(directory.path())
            .arg("etc/wharf")
            .output()?;
        let path = format!("/containers/{}/archive?path=/", container.name);
        let put = Request::new("PUT", &path).body(Body::Tar(tar.stdout));
        engine.send(put)?.ok()?;
        Ok(container)
    }

    fn post(&self, action: &str) -> Result<()> {
        let path = format!("/containers/{}/{action}", self.name);
        let request = Request::new("POST", &path).timeout(LIMIT * 2);
        self.engine.send(request)?.ok().map(drop)
    }

    fn state(&self) -> Result<Value> {
        let found = self
            .engine
            .get(&format!("/containers/{}/json", self.name))?;
        found.get("State").cloned().context("no State")
    }

    fn wait_for_end(&self) -> Result<()> {
        let ended = || self.state().is_ok_and(|state| state["Status"] == "exited");
        ensure!(wait_until(LIMIT, ended), "it still runs");
        Ok(())
    }

    /// Runs a script as the login user.
    fn inside(&self, script: &str) -> Result<String> {
        let pid = self.state()?["Pid"].to_string();
        output(
            Command::new("nsenter")
                .args(["--all", "--target", &pid, "su", "-", "user", "-c", script]),
        )
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        let path = format!("/containers/{}?force=true&v=true", self.name);
        let _ = self.engine.send(Request::new("DELETE", &path));
    }
}
