//! The private SSH port of a page.

use crate::context::EngineContext;
use crate::inside::{connects, gateway, reached};
use crate::lab::{password, text, uuid};
use crate::login::shown;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::io::Read as _;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;
use wharf_tests::{Api, Login, Ports, Server, small, until};

/// A flavor whose page is served only when its user starts it, by a login.
pub const FLAVOR: &str = "[[flavor]]\nname = \"pages\"\nimage = \"localhost/wharf/base:1\"\nssh = true\n\
                          web_port = 8000\n";

/// Public ports on all addresses, private ones on one of the loopback.
pub fn of_a_page(context: &EngineContext) -> Result<()> {
    let ports = Ports::take();
    let settings = context.settings_with(ports, FLAVOR)?;
    let settings = settings
        .replace(
            "\nsettings = {",
            "\nprivate_address = \"127.0.0.2\"\nsettings = {",
        )
        .replace(
            "publish_address = \"127.0.0.1\"",
            "publish_address = \"0.0.0.0\"",
        );
    let own = Command::new("hostname").arg("-I").output()?;
    let own = String::from_utf8(own.stdout)?;
    let own = own.split_whitespace().next().context("no address")?;
    is_for_wharf_alone(&settings, ports.from, "127.0.0.2", &["127.0.0.1", own])
}

/// Checks that the SSH server of a page has its port at the private address alone. `port` is the first one
/// of the server.
pub fn is_for_wharf_alone(settings: &str, port: u16, private: &str, public: &[&str]) -> Result<()> {
    let server = Server::start(settings)?;
    let api = server.user("ann@example.com")?;
    let mut body = small("container");
    body["flavor"] = json!("pages");
    let created = api.create(&body)?.expect(201)?;
    ensure!(created["ssh_command"].is_null(), "{created}");
    // They come up meanwhile. The first port is the page's.
    let bob = server.user("bob@example.com")?;
    let neighbours = [
        (&api, api.small_container()?),
        (&bob, bob.small_container()?),
    ];
    let reached = || until("SSH at the private address", || Ok(banner(private, port)));
    reached()?;
    for host in public {
        ensure!(banner(host, port).is_none(), "SSH is public at {host}");
    }
    let user = Login::Password(password(&created));
    let as_user = |command: &str| {
        let way = json!({ "wan_ssh_port": port });
        let output = user.run_as(&way, &format!("user@{private}"), command)?;
        ensure!(output.status.success(), "{command}: {output:?}");
        Ok::<_, anyhow::Error>(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let page = "setsid nohup python3 -m http.server 8000 >/dev/null 2>&1 </dev/null &";
    as_user(page)?;
    let running = api.wait_for(uuid(&created), "running")?;
    ensure!(running["ssh_command"].is_null(), "{running}");
    // The host learns the key at the private port.
    let keys = shown(&api, &running)?;
    let fingerprint = as_user("ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")?;
    ensure!(
        fingerprint.contains(text(&keys[0]["fingerprint"])),
        "{fingerprint} {keys}"
    );
    let web = text(&running["webapp_url"]);
    let web = web.trim_end_matches('/').rsplit(':').next();
    let web: u16 = web.context("no port")?.parse()?;
    for host in public {
        TcpStream::connect((*host, web)).context("the page is not public")?;
    }
    let addresses = [&[private], public].concat();
    for (owner, neighbour) in &neighbours {
        is_out_of_reach(owner, uuid(neighbour), &addresses, port)?;
    }
    api.act(uuid(&running), "stop")?.expect(200)?;
    ensure!(banner(private, port).is_none(), "SSH of a stopped instance");
    api.act(uuid(&running), "restart")?;
    reached()?;
    api.delete(uuid(&running))?.expect(204)?;
    server.finish()
}

/// Checks that another instance, as root, reaches the port at none of these addresses and its gateway.
fn is_out_of_reach(api: &Api, neighbour: &str, addresses: &[&str], port: u16) -> Result<()> {
    let neighbour = api.wait_for(neighbour, "running")?;
    let gateway = gateway(&neighbour)?;
    let reached = reached(&neighbour, &[addresses, &[&gateway]].concat(), port)?;
    ensure!(reached.is_empty(), "a neighbour reaches {reached:?}");
    // A counter-check: the neighbour does reach something.
    ensure!(connects(&neighbour, text(&neighbour["lan_ipv4"]), 22)?);
    api.delete(uuid(&neighbour))?.expect(204).map(drop)
}

/// The banner of an SSH server; none if there is no server.
fn banner(host: &str, port: u16) -> Option<Value> {
    let address = format!("{host}:{port}").parse().ok()?;
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(3)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(3))).ok()?;
    let mut banner = [0; 4];
    stream.read_exact(&mut banner).ok()?;
    (&banner == b"SSH-").then_some(Value::Null)
}
