//! Create, stop, restart, and an instance that ends by itself.

use crate::lab::{Lab, OFTEN, after_observations, inside, running, state, text, user, uuid};
use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};
use wharf_tests::{KeyPair, Login, small};

pub fn create_answers_at_once(lab: &impl Lab) -> Result<()> {
    let (server, api) = lab.served("")?;
    let begin = Instant::now();
    let created = api.small_container()?;
    println!("POST answered 201 after {:?}", begin.elapsed());
    // The engine cannot have finished in that time, so the answer did not wait for it.
    ensure!(created["state"] == "provisioning", "{created}");
    ensure!(created["owner_email"] == "ann@example.com", "{created}");
    ensure!(api.instance(uuid(&created))?.expect(200)?["name"] == created["name"]);
    api.wait_for(uuid(&created), "running")?;
    lab.remove(&api, &created)?;
    server.finish()
}

pub fn running_means_ssh_accepts(lab: &impl Lab) -> Result<()> {
    let (server, api) = lab.served("")?;
    let host = lab.facts().host;
    let accepts = |created: &Value| -> Result<()> {
        let running = api.wait_for(uuid(created), "running")?;
        // A single attempt, without retries: the interface says that the instance is reachable.
        let port = u16::try_from(running["wan_ssh_port"].as_u64().unwrap_or(0))?;
        let mut stream = TcpStream::connect((host.as_str(), port))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut banner = [0; 8];
        stream.read_exact(&mut banner)?;
        ensure!(&banner == b"SSH-2.0-", "{banner:?}");
        api.delete(uuid(&running))?.expect(204).map(drop)
    };
    // Each is looked at as soon as it runs.
    thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(|| accepts(&api.small_container()?)));
        let ended = threads.map(|one| one.join().expect("no panic"));
        ended.into_iter().collect::<Result<()>>()
    })?;
    server.finish()
}

/// The identity that a restart keeps. A changed hardware address would leave stale ARP entries on neighbours.
/// Podman 4 writes no line end into `/etc/hostname`.
const IDENTITY: &str = "uname -n; echo $(cat /etc/hostname); cat ~/file /etc/ssh/ssh_host_ed25519_key.pub \
    /sys/class/net/eth0/address; getent hosts keeps-data; sudo ls -A /etc/wharf";

pub fn data_survives(lab: &impl Lab) -> Result<()> {
    let (server, api) = lab.served("")?;
    let pair = KeyPair::new()?;
    let mut body = small("container");
    body["public_key"] = json!(pair.public);
    body["name"] = json!("keeps-data");
    api.create(&body)?.expect(201)?;
    let first = api.wait_for("keeps-data", "running")?;
    let login = Login::Key(&pair);
    login.output(&first, "echo precious > ~/file && sync")?;
    let identity = login.output(&first, IDENTITY)?;
    let [host, file, data] = ["keeps-data", "keeps-data", "precious"];
    ensure!(
        identity.starts_with(&format!("{host}\n{file}\n{data}\n")),
        "{identity}"
    );
    // The first start has removed the secrets.
    ensure!(!identity.contains("first-boot"), "{identity}");

    let stopped = api.act("keeps-data", "stop")?.expect(200)?;
    ensure!(stopped["state"] == "shut_off", "{stopped}");
    api.wait_for("keeps-data", "exited")?;
    ensure!(!lab.object(&first)?.runs, "the stopped container runs");
    ensure!(
        !login.run(&first, "true")?.status.success(),
        "a stopped instance accepts logins"
    );
    let again = api.act("keeps-data", "stop")?;
    ensure!(again.status == 400, "{again:?}");

    let restarted = api.act("keeps-data", "restart")?.expect(200)?;
    ensure!(restarted["state"] == "running", "{restarted}");
    let running = api.wait_for("keeps-data", "running")?;
    login.wait_for_login(&running)?;
    let now = login.output(&running, IDENTITY)?;
    ensure!(now == identity, "{now} is not {identity}");
    is_same(&first, &running)?;
    lab.is_whole(&running)?;
    let again = api.act("keeps-data", "restart")?;
    ensure!(again.status == 400, "{again:?}");
    lab.remove(&api, &running)?;
    ensure!(api.instance(uuid(&running))?.status == 404);
    server.finish()
}

/// The node has the hardware address of a removed instance in its ARP cache for up to a minute.
pub fn next_at_an_address(lab: &impl Lab) -> Result<()> {
    let (server, api) = lab.served("")?;
    let mut known = BTreeMap::new();
    // An address is free once the server has seen that its instance is gone.
    for _ in 0..10 {
        let created = running(&api)?;
        let hardware = inside(&created, "cat /sys/class/net/eth0/address")?;
        lab.remove(&api, &created)?;
        let address = text(&created["lan_ipv4"]).to_owned();
        if let Some(earlier) = known.insert(address, hardware.clone()) {
            ensure!(earlier == hardware, "{earlier} {hardware}");
            return server.finish();
        }
    }
    bail!("no address comes twice: {known:?}")
}

fn is_same(before: &Value, now: &Value) -> Result<()> {
    for field in [
        "lan_ipv4",
        "wan_ssh_port",
        "ssh_command",
        "original_service_password",
    ] {
        ensure!(before[field] == now[field], "{field}: {before} {now}");
    }
    Ok(())
}

pub fn poweroff_inside(lab: &impl Lab) -> Result<()> {
    let (server, api) = lab.served(OFTEN)?;
    let instance = running(&api)?;
    inside(&instance, "touch ~/kept")?;
    // The connection may break before the command answers.
    user(&instance).run(&instance, "sudo poweroff")?;
    api.wait_for(uuid(&instance), "exited")?;
    // Neither the engine nor Wharf restarts the instance.
    after_observations(&server, 3)?;
    ensure!(state(&api, &instance)? == "exited");
    ensure!(!lab.object(&instance)?.runs, "it was started again");
    api.act(uuid(&instance), "restart")?.expect(200)?;
    let again = api.wait_for(uuid(&instance), "running")?;
    user(&again).wait_for_login(&again)?;
    inside(&again, "test -e ~/kept")?;
    ensure!(text(&again["lan_ipv4"]) == text(&instance["lan_ipv4"]));
    lab.remove(&api, &again)?;
    server.finish()
}
