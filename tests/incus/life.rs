//! The life of one instance.

use crate::context::{Context, inside, remove, user, uuid};
use anyhow::{Result, ensure};
use serde_json::json;
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;
use wharf_tests::{KeyPair, Login, small};

pub fn whole(context: &Context) -> Result<()> {
    let server = context.server(&[0])?;
    let api = server.user("ann@example.com")?;
    let pair = KeyPair::new()?;
    let mut body = small("container");
    body["name"] = json!("keeps-data");
    body["public_key"] = json!(pair.public);
    let created = api.create(&body)?.expect(201)?;
    ensure!(created["state"] == "provisioning", "{created}");
    let running = api.wait_for("keeps-data", "running")?;
    // A single attempt, without retries: the interface says that the instance is reachable.
    let port = u16::try_from(running["wan_ssh_port"].as_u64().unwrap_or(0))?;
    let mut stream = TcpStream::connect((context.member(0).address.as_str(), port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut banner = [0; 8];
    stream.read_exact(&mut banner)?;
    ensure!(&banner == b"SSH-2.0-", "{banner:?}");

    let login = Login::Key(&pair);
    ensure!(login.output(&running, "uname -n; cat /etc/hostname")? == "keeps-data\nkeeps-data");
    ensure!(inside(&running, "id -un")? == "user");
    let wrong = Login::Password("wrong").run(&running, "true")?;
    ensure!(!wrong.status.success(), "a wrong password is accepted");
    // The first start has removed the secrets.
    let left = login.output(&running, "sudo ls -A /etc/wharf")?;
    ensure!(left == "environment\nnet", "{left}");
    let names = login.output(&running, "getent hosts keeps-data; cat /etc/resolv.conf")?;
    ensure!(
        names.contains("127.0.1.1") && names.contains("nameserver"),
        "{names}"
    );
    login.output(&running, "echo precious > ~/file && sync")?;
    let identity = login.output(&running, "cat /etc/ssh/ssh_host_ed25519_key.pub")?;

    let stopped = api.act("keeps-data", "stop")?.expect(200)?;
    ensure!(stopped["state"] == "shut_off", "{stopped}");
    ensure!(context.object(&running)?["status"] == "Stopped");
    let restarted = api.act("keeps-data", "restart")?.expect(200)?;
    ensure!(restarted["state"] == "running", "{restarted}");
    let again = api.wait_for("keeps-data", "running")?;
    user(&again).wait_for_login(&again)?;
    ensure!(login.output(&again, "cat ~/file")? == "precious");
    ensure!(login.output(&again, "cat /etc/ssh/ssh_host_ed25519_key.pub")? == identity);
    for field in ["lan_ipv4", "wan_ssh_port", "original_service_password"] {
        ensure!(running[field] == again[field], "{field}: {running} {again}");
    }

    // The connection may break before the command answers.
    login.run(&again, "sudo poweroff")?;
    api.wait_for("keeps-data", "exited")?;
    ensure!(context.object(&again)?["status"] == "Stopped");
    api.act("keeps-data", "restart")?.expect(200)?;
    let again = api.wait_for("keeps-data", "running")?;
    user(&again).wait_for_login(&again)?;
    ensure!(login.output(&again, "cat ~/file")? == "precious");

    remove(context, &api, &running)?;
    ensure!(api.instance(uuid(&running))?.status == 404);
    server.finish()
}
