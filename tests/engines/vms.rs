//! Virtual machines on real engines, emulated on a node without hardware virtualisation.

use crate::context::{EngineContext, networks_of};
use crate::inside::{Listener, connects, reached};
use crate::lab::{self, Lab, OFTEN, password, state, user, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;
use wharf_tests::lanes::BoxedTest;
use wharf_tests::{Api, KeyPair, Login, OpenSsh, Server, Shell, Tunnel, eventually, small, until};

const GIB: u64 = 1 << 30;
/// The port of the web server in the machine.
const WEB: u16 = 8080;

fn vm(api: &Api, name: &str, pair: &KeyPair) -> Result<Value> {
    let mut body = small("vm");
    body["name"] = json!(name);
    body["public_key"] = json!(pair.public);
    body["n_vcpus"] = json!(1);
    body["mem_gib"] = json!(1);
    api.create(&body)?.expect(201)
}

fn text<'a>(instance: &'a Value, key: &str) -> &'a str {
    lab::text(&instance[key])
}

/// The deadline of a boot. A machine is emulated beside other tests.
const BOOT: Duration = Duration::from_secs(600);

/// Waits until a machine runs.
fn up(api: &Api, name: &str) -> Result<Value> {
    eventually("the machine runs", BOOT, || {
        let now = api.instance(name)?.expect(200)?;
        ensure!(now["state"] != "error", "{now}");
        Ok((now["state"] == "running").then_some(now))
    })
}

/// Two machines of two owners, on which all tests look.
pub struct Vms {
    server: Server,
    ann: Api,
    bob: Api,
    pair: KeyPair,
    anns: Value,
    bobs: Value,
    /// The networks of both.
    networks: Vec<String>,
}

/// A test of the machines.
pub fn look(look: fn(&EngineContext, &mut Vms) -> Result<()>) -> BoxedTest<EngineContext> {
    Box::new(move |context| {
        let start = || Vms::start(context);
        context.vms().with(start, |vms| look(context, vms))
    })
}

impl Vms {
    fn start(context: &EngineContext) -> Result<Self> {
        context.with_vm_image()?;
        let often = format!("{OFTEN}probe_every_ms = 1000\n");
        let (server, ann) = context.served(&often)?;
        let bob = server.user("bob@example.com")?;
        let pair = KeyPair::new()?;
        vm(&ann, "ann-vm", &pair)?;
        vm(&bob, "bob-vm", &pair)?;
        let anns = up(&ann, "ann-vm")?;
        let bobs = up(&bob, "bob-vm")?;
        let mut networks = Vec::new();
        for instance in [&anns, &bobs] {
            networks.extend(networks_of(&context.container_of(instance)?));
        }
        ensure!(networks.len() == 4, "{networks:?}");
        Ok(Self {
            server,
            ann,
            bob,
            pair,
            anns,
            bobs,
            networks,
        })
    }

    /// Ends the server, if no test did.
    pub fn end(self) -> Result<()> {
        self.server.finish()
    }
}

/// How long to wait for a connection. The kernel would try for two minutes at the address of a stopped
/// machine.
const LIMIT: Duration = Duration::from_secs(5);

fn connect(address: &str, port: u16) -> Option<TcpStream> {
    let address: SocketAddr = format!("{address}:{port}").parse().ok()?;
    TcpStream::connect_timeout(&address, LIMIT).ok()
}

/// Returns the start of a web server's answer at this address; none without a server.
fn page(address: &str, port: u16) -> Option<String> {
    let mut stream = connect(address, port)?;
    stream.set_read_timeout(Some(LIMIT)).ok()?;
    stream.write_all(b"GET /page HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn serve_a_page(login: &Login<'_>, instance: &Value) -> Result<()> {
    let start = format!(
        "mkdir -p ~/web && cd ~/web && hostname > page && \
         (setsid python3 -m http.server {WEB} >/dev/null 2>&1 </dev/null &)"
    );
    login.output(instance, &start)?;
    until("the web server inside", || {
        let asked = format!("curl -fsS http://127.0.0.1:{WEB}/page");
        Ok(login.run(instance, &asked)?.status.success().then_some(()))
    })
}

pub fn two_owners(context: &EngineContext, all: &mut Vms) -> Result<()> {
    let Vms { anns, bobs, .. } = all;
    let key = Login::Key(&all.pair);
    for (instance, name) in [(&*anns, "ann-vm"), (bobs, "bob-vm")] {
        for login in [&key, &user(instance)] {
            let who = login.output(instance, "hostname; id -un; sudo -n id -u")?;
            ensure!(who == format!("{name}\nuser\n0"), "{who}");
        }
        is_a_machine_of_its_own(&key, instance)?;
    }
    crate::terminal::exercise(&all.ann, anns, "virtual machine")?;
    let shell = Shell::signed_in(&all.server, "ann@example.com")?;
    // Each byte is encrypted by an emulated processor.
    OpenSsh::of(shell)?.copies_files("ann-vm", 200_000)?;
    no_secret_is_shown(context, anns)?;
    ports_open_and_close(&all.ann, &key, anns, bobs)?;
    networks_are_the_owners(&all.ann, anns, &all.bob, bobs)
}

/// Checks for a separate kernel and the requested sizes. It uses one login, which takes seconds
/// under emulation.
fn is_a_machine_of_its_own(login: &Login<'_>, instance: &Value) -> Result<()> {
    let told = login.output(
        instance,
        "cat /proc/sys/kernel/random/boot_id; nproc; \
         awk '/MemTotal/ {print $2 * 1024}' /proc/meminfo; \
         lsblk -bdno SIZE $(findmnt -no SOURCE / | sed 's/[0-9]*$//'); \
         df -B1 --output=size / | tail -1",
    )?;
    let mut lines = told.lines().map(str::trim);
    let boot_id = lines.next().unwrap_or_default();
    let of_node = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    ensure!(boot_id != of_node.trim(), "the node's kernel");
    let numbers: Vec<u64> = lines.map(str::parse).collect::<Result<_, _>>()?;
    let &[processors, memory, disk, usable] = numbers.as_slice() else {
        anyhow::bail!("{told}");
    };
    ensure!(processors == 1, "{processors} processors");
    ensure!(
        (GIB * 8 / 10..=GIB).contains(&memory),
        "{memory} bytes of RAM"
    );
    let wanted = instance["disk_size_gib"].as_u64().unwrap_or(0) * GIB;
    ensure!(disk == wanted, "a disk of {disk} bytes, not {wanted}");
    ensure!(usable > wanted * 9 / 10, "a file system of {usable} bytes");
    Ok(())
}

fn no_secret_is_shown(context: &EngineContext, instance: &Value) -> Result<()> {
    let container = context.container_of(instance)?;
    let id = text(&container, "Id");
    let client = context.client();
    let inspected = client.get(&format!("/containers/{id}/json"))?.to_string();
    ensure!(!inspected.contains(password(instance)), "inspect shows it");
    ensure!(!inspected.contains("$6$"), "inspect shows its hash");
    let processes = client.get(&format!("/containers/{id}/top"))?.to_string();
    ensure!(processes.contains("qemu"), "{processes}");
    ensure!(!processes.contains("$6$"), "the process list shows it");
    Ok(())
}

fn ports_open_and_close(
    api: &Api,
    login: &Login<'_>,
    instance: &Value,
    other: &Value,
) -> Result<()> {
    let name = text(instance, "name");
    let mut ssh = Tunnel::open(api, name, 22)?;
    ensure!(ssh.read()?.starts_with(b"SSH-2.0-"));
    let (public, others) = (text(instance, "public_ipv4"), text(other, "public_ipv4"));
    ensure!(public != others);
    for address in [public, others] {
        let mut banner = [0; 4];
        TcpStream::connect((address, 22))?.read_exact(&mut banner)?;
        ensure!(&banner == b"SSH-", "{address}");
    }
    serve_a_page(login, instance)?;
    ensure!(
        page(public, WEB).is_none(),
        "the port is open before add-port"
    );
    // A tunnel needs no open port.
    let mut tunnel = Tunnel::open(api, name, WEB)?;
    tunnel.send(b"GET /page HTTP/1.0\r\n\r\n")?;
    tunnel.finish()?;
    let answer = String::from_utf8(tunnel.read_to_end()?)?;
    ensure!(answer.ends_with(&format!("{name}\n")), "{answer}");
    let port = json!({ "port": WEB });
    let path = |action: &str| format!("/api/instance/{name}/{action}/");
    let opened = api.send("POST", &path("add-port"), &port)?.expect(200)?;
    ensure!(opened["wan_ports"] == json!([22, WEB]), "{opened}");
    let answer = page(public, WEB).context("not open after add-port")?;
    ensure!(answer.ends_with(&format!("{name}\n")), "{answer}");
    for (address, port) in [(public, WEB + 1), (others, WEB)] {
        let refused = TcpStream::connect((address, port)).err();
        let kind = refused.map(|error| error.kind());
        ensure!(
            kind == Some(std::io::ErrorKind::ConnectionRefused),
            "{address}:{port}: {kind:?}"
        );
    }
    let closed = api.send("POST", &path("remove-port"), &port)?.expect(200)?;
    ensure!(closed["wan_ports"] == json!([22]), "{closed}");
    ensure!(
        page(public, WEB).is_none(),
        "the port is open after remove-port"
    );
    Ok(())
}

fn networks_are_the_owners(ann: &Api, anns: &Value, bob: &Api, bobs: &Value) -> Result<()> {
    let (annbox, bobbox) = (lab::running(ann)?, lab::running(bob)?);
    let lan = |instance: &Value| text(instance, "lan_ipv4").to_owned();
    let (vms, boxes) = ([lan(anns), lan(bobs)], [lan(&annbox), lan(&bobbox)]);
    for (from, what, mine) in [
        (&annbox, "a container", 0),
        (anns, "a VM", 0),
        (&bobbox, "a container", 1),
        (bobs, "a VM", 1),
    ] {
        let tried = [&vms, &boxes]
            .map(|all| all.each_ref().map(String::as_str))
            .concat();
        let reached = reached(from, &tried, 22)?;
        let own = [&vms[mine], &boxes[mine]].map(String::as_str);
        ensure!(reached == own, "{what} reaches {reached:?}, not {own:?}");
    }
    // Public addresses are reachable for everyone.
    ensure!(connects(&bobbox, text(anns, "public_ipv4"), 22)?);
    for (api, instance) in [(ann, &annbox), (bob, &bobbox)] {
        api.delete(uuid(instance))?.expect(204)?;
    }
    Ok(())
}

pub fn isolation(context: &EngineContext, all: &mut Vms) -> Result<()> {
    let (server, mine) = (&all.server, &all.bobs);
    let container = context.container_of(mine)?;
    let networks = container["NetworkSettings"]["Networks"].as_object();
    let gateways: Vec<_> = networks
        .into_iter()
        .flat_map(|networks| networks.values())
        .filter_map(|network| network["Gateway"].as_str())
        .filter(|gateway| !gateway.is_empty())
        .collect();
    ensure!(!gateways.is_empty(), "{container}");
    let listener = Listener::everywhere()?;
    // User networking forwards to the container's own loopback.
    let mut addresses = listener.addresses(&gateways)?;
    addresses.push("10.0.2.2".to_owned());
    let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
    let reached_node = reached(mine, &addresses, listener.port())?;
    ensure!(reached_node.is_empty(), "the node's {reached_node:?}");
    let api_port = server.base_url().rsplit(':').next().unwrap_or_default();
    let reached_wharf = reached(mine, &addresses, api_port.parse()?)?;
    ensure!(reached_wharf.is_empty(), "Wharf at {reached_wharf:?}");
    // A counter-check: the machine does reach something.
    ensure!(connects(mine, text(mine, "lan_ipv4"), 22)?);

    let qemu = process_of(&container)?;
    let status = std::fs::read_to_string(format!("/proc/{qemu}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1))
            .unwrap_or_default()
    };
    ensure!(field("Uid:") != "0", "QEMU is root");
    ensure!(field("CapEff:").trim_matches('0').is_empty(), "{status}");
    ensure!(field("NoNewPrivs:") == "1", "{status}");
    ensure!(field("Seccomp:") == "2", "{status}");
    only_unix_sockets_control_it(qemu)
}

/// Returns the pid of QEMU on the node.
fn process_of(container: &Value) -> Result<u32> {
    let id = text(container, "Id");
    let listed = Command::new("pgrep")
        .args(["-f", "qemu-system-"])
        .output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let of = |pid: &&str| {
        std::fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|text| text.contains(id))
    };
    let pid = listed
        .lines()
        .find(of)
        .context("no QEMU in the container")?;
    Ok(pid.parse()?)
}

/// Checks that only the machine's own ports listen in the container's network.
fn only_unix_sockets_control_it(qemu: u32) -> Result<()> {
    const LISTENING: &str = "0A";
    let table = std::fs::read_to_string(format!("/proc/{qemu}/net/tcp"))?;
    let listening: Vec<_> = table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let (local, _, state) = (fields.next()?, fields.next()?, fields.next()?);
            (state == LISTENING).then(|| local.rsplit(':').next().unwrap_or_default().to_owned())
        })
        // The engine's name server for containers listens on a random port.
        .filter(|port| port == "0016" || !table_has_loopback(&table, port))
        .collect();
    ensure!(listening == ["0016"], "listening: {listening:?}");
    Ok(())
}

/// Docker's name server listens on 127.0.0.11.
fn table_has_loopback(table: &str, port: &str) -> bool {
    table.contains(&format!("0B00007F:{port}"))
}

/// One machine is stopped by its owner while QEMU of the other one is killed; then Wharf is killed, and a machine
/// powers itself off. Data and ports stay. At last, both are deleted.
pub fn ends_and_restarts(context: &EngineContext, all: &mut Vms) -> Result<()> {
    let (anns, bobs) = (&all.anns, &all.bobs);
    let key = Login::Key(&all.pair);
    let public = text(anns, "public_ipv4");
    let path = "/api/instance/ann-vm/add-port/";
    all.ann
        .send("POST", path, &json!({ "port": WEB }))?
        .expect(200)?;
    for instance in [anns, bobs] {
        key.output(instance, "echo precious > ~/file && sync")?;
    }
    let qemu = process_of(&context.container_of(bobs)?)?;
    let killed = Command::new("kill")
        .args(["-9", &qemu.to_string()])
        .status()?;
    ensure!(killed.success());
    let stopped = all.ann.act("ann-vm", "stop")?.expect(200)?;
    ensure!(stopped["state"] == "shut_off", "{stopped}");
    // The answer waits for the node for a bounded time only.
    until("the port of the stopped machine is closed", || {
        Ok(connect(public, 22).is_none().then_some(()))
    })?;
    all.bob.wait_for("bob-vm", "shut_off")?;
    all.ann.act("ann-vm", "restart")?.expect(200)?;
    all.bob.act("bob-vm", "restart")?.expect(200)?;
    let running = up(&all.ann, "ann-vm")?;
    ensure!(running["wan_ports"] == json!([22, WEB]), "{running}");
    up(&all.bob, "bob-vm")?;
    let kept = |instance: &Value| -> Result<()> {
        key.wait_for_login(instance)?;
        ensure!(key.output(instance, "cat ~/file")? == "precious");
        Ok(())
    };
    kept(anns)?;
    serve_a_page(&key, &running)?;
    page(public, WEB).context("the port is closed after a restart")?;
    kept(bobs)?;
    // Each probe reads the acceleration from the running machines.
    let read = |line: &&str| line.contains("%2Facceleration") && line.contains("status=200");
    ensure!(
        all.server.log().lines().any(|line| read(&line)),
        "never read"
    );
    // The machines keep running while Wharf restarts.
    let before = process_of(&context.container_of(bobs)?)?;
    all.server.kill()?;
    all.server.run()?;
    (all.ann, all.bob) = (all.server.again(&all.ann), all.server.again(&all.bob));
    for (api, instance) in [(&all.ann, anns), (&all.bob, bobs)] {
        api.wait_for(uuid(instance), "running")?;
        kept(instance)?;
    }
    ensure!(process_of(&context.container_of(bobs)?)? == before);
    ensure!(state(&all.bob, bobs)? == "running");
    key.run(bobs, "sudo poweroff")?;
    all.bob.wait_for("bob-vm", "shut_off")?;
    context.remove(&all.ann, anns)?;
    context.remove(&all.bob, bobs)?;
    context.networks_gone(&all.networks)
}
