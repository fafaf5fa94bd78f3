//! Create, stop, restart, and an instance that ends by itself.

use crate::context::Context;
use anyhow::{Result, ensure};
use serde_json::json;
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use wharf_tests::{KeyPair, Login, small};

pub fn create_answers_at_once(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let begin = Instant::now();
    let created = api.small_container()?;
    println!("POST answered 201 after {:?}", begin.elapsed());
    ensure!(created["state"] == "provisioning", "{created}");
    ensure!(created["owner_email"] == "ann@example.com", "{created}");
    let uuid = created["uuid"].as_str().unwrap_or_default();
    // The engine cannot have finished in that time, so the answer did not wait for it.
    ensure!(api.instance(uuid)?.expect(200)?["name"] == created["name"]);
    api.wait_for(uuid, "running")?;
    api.delete(uuid)?.expect(204)?;
    server.finish()
}

pub fn running_means_ssh_accepts(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    for _ in 0..3 {
        let created = api.small_container()?;
        let uuid = created["uuid"].as_str().unwrap_or_default();
        let running = api.wait_for(uuid, "running")?;
        // A single attempt, without retries: the interface says that the instance is reachable.
        let port = u16::try_from(running["wan_ssh_port"].as_u64().unwrap_or(0))?;
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut banner = [0; 8];
        stream.read_exact(&mut banner)?;
        ensure!(&banner == b"SSH-2.0-", "{banner:?}");
        api.delete(uuid)?.expect(204)?;
    }
    server.finish()
}

pub fn data_survives(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let pair = KeyPair::new()?;
    let mut body = small("container");
    body["public_key"] = json!(pair.public);
    body["name"] = json!("keeps-data");
    api.create(&body)?.expect(201)?;
    let running = api.wait_for("keeps-data", "running")?;
    let login = Login::Key(&pair);
    login.output(&running, "echo precious > ~/file && sync")?;
    let identity = login.output(&running, "cat /etc/ssh/ssh_host_ed25519_key.pub")?;
    // A changed address would leave stale ARP entries on neighbours after a restart.
    let hardware_address = "cat /sys/class/net/eth0/address";
    let known = login.output(&running, hardware_address)?;

    let stopped = api.act("keeps-data", "stop")?.expect(200)?;
    ensure!(stopped["state"] == "shut_off", "{stopped}");
    ensure!(api.instance("keeps-data")?.expect(200)?["state"] == "exited");
    let containers = context.containers_of(&running)?;
    ensure!(
        containers.len() == 1 && containers[0]["State"] == "exited",
        "{containers:?}"
    );
    ensure!(
        !login.run(&running, "true")?.status.success(),
        "a stopped instance accepts logins"
    );
    let again = api.act("keeps-data", "stop")?;
    ensure!(again.status == 400, "{again:?}");

    let restarted = api.act("keeps-data", "restart")?.expect(200)?;
    ensure!(restarted["state"] == "running", "{restarted}");
    let running = api.wait_for("keeps-data", "running")?;
    login.wait_for_login(&running)?;
    ensure!(login.output(&running, "cat ~/file")? == "precious");
    ensure!(login.output(&running, "cat /etc/ssh/ssh_host_ed25519_key.pub")? == identity);
    ensure!(login.output(&running, hardware_address)? == known);
    let again = api.act("keeps-data", "restart")?;
    ensure!(again.status == 400, "{again:?}");
    api.delete("keeps-data")?.expect(204)?;
    server.finish()
}

pub fn poweroff_inside(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let created = api.small_container()?;
    let uuid = created["uuid"].as_str().unwrap_or_default();
    let running = api.wait_for(uuid, "running")?;
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    let login = Login::Password(password);
    login.output(&running, "touch ~/kept")?;
    // The connection may break before the command answers.
    login.run(&running, "sudo poweroff")?;
    api.wait_for(uuid, "exited")?;
    // The engine does not restart the instance.
    std::thread::sleep(Duration::from_secs(3));
    ensure!(api.instance(uuid)?.expect(200)?["state"] == "exited");
    api.act(uuid, "restart")?.expect(200)?;
    let running = api.wait_for(uuid, "running")?;
    login.wait_for_login(&running)?;
    login.output(&running, "test -e ~/kept")?;
    api.delete(uuid)?.expect(204)?;
    server.finish()
}
