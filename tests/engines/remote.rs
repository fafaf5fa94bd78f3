//! Engines on other machines: dockerds behind mutual TLS, a cut link, and wrong certificates.

use crate::context::EngineContext;
use crate::lab::{restarted, text, uuid};
use crate::machine::{Machine, Switch};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use wharf_tests::{
    Authority, Certificate, KeyPair, Login, Ports, Server, docker_node, free_network, node_check,
    small, until,
};

/// A node with room for one instance.
fn node(name: &str, machine: &Machine, tls: &str) -> Result<String> {
    let n = free_network()?;
    let (lan, public) = (format!("10.{n}.0.0/16"), format!("198.18.{n}.0/28"));
    let node = docker_node(name, &machine.endpoint(), [&lan, &public], "")
        .replace("127.0.0.1", "0.0.0.0")
        .replace("n_vcpus = 64", "n_vcpus = 1");
    Ok(format!("{node}ssh_host = \"{}\"\n{tls}", machine.address()))
}

/// The login host of an instance.
fn host(instance: &Value) -> &str {
    let command = text(&instance["ssh_command"]);
    command.split(['@', ' ']).next_back().unwrap_or_default()
}

/// The state of a node in `wharf node list`.
fn state(server: &Server, node: &str) -> Result<String> {
    let list = server.cli(&["node", "list"])?;
    let line = list.lines().find(|line| line.starts_with(node));
    Ok(line.context("the node is not listed")?.to_owned())
}

pub fn three_machines(_: &EngineContext) -> Result<()> {
    let authority = Authority::new()?;
    let switch = Switch::new()?;
    let tls = authority.issue("wharf", &[])?.node_tls(&authority.ca());
    let (mut machines, mut certificates) = (Vec::<Machine>::new(), Vec::new());
    let mut nodes = String::new();
    for (number, name) in (2..).zip(["ann", "bea", "cleo"]) {
        let mut machine = Machine::on(&switch, number)?;
        let names = [machine.address(), &format!("{name}.example")];
        let certificate = authority.issue(name, &names)?;
        match machines.first() {
            Some(first) => machine.take_images_of(first)?,
            None => {
                machine.start(&authority, &certificate)?;
                wharf_testkit::images::ensure(&machine.client(), &["base"])?;
                machine.stop()?;
            }
        }
        // One node names its engine's certificate otherwise than by the address.
        let named = tls.replace(" }\n", ", server_name = \"cleo.example\" }\n");
        let tls = if name == "cleo" { &named } else { &tls };
        nodes.push_str(&node(name, &machine, tls)?);
        certificates.push(certificate);
        machines.push(machine);
    }
    for (machine, certificate) in machines.iter_mut().zip(&certificates) {
        machine.start(&authority, certificate)?;
    }
    let server = Server::start(&format!("{}{nodes}", Ports::take().settings()))?;
    let recipes = wharf_testkit::images::recipes().directory;
    let images = server.cli(&["images", "--recipes", &recipes.display().to_string()])?;
    ensure!(
        images.matches("current").count() == machines.len(),
        "{images}"
    );
    let api = server.user("ann@example.com")?;
    let key = KeyPair::new()?;
    let mut body = small("container");
    body["public_key"] = json!(key.public);
    let mut instances = Vec::new();
    for _ in &machines {
        let made = api.create(&body)?.expect(201)?;
        instances.push(api.wait_for(uuid(&made), "running")?);
    }
    api.create(&body)?.expect(422)?;
    let mut hosts: Vec<_> = instances.iter().map(host).collect();
    hosts.sort_unstable();
    let addresses: Vec<_> = machines.iter().map(Machine::address).collect();
    ensure!(hosts == addresses, "{hosts:?}");
    for instance in &instances {
        reaches_itself(&key, instance)?;
        let path = format!("/api/instance/{}/stats/", uuid(instance));
        api.get(&path)?.expect(200)?;
    }

    let cut = machines.first().context("a machine")?;
    let on = |address: &str| instances.iter().find(|made| host(made) == address);
    let (lost, other) = (
        on(cut.address()).context("its instance")?,
        on(addresses.last().context("a machine")?).context("another instance")?,
    );
    cut.plug(false)?;
    until("the node is out of reach", || {
        Ok(state(&server, "ann")?.contains("unreachable").then_some(()))
    })?;
    reaches_itself(&key, other)?;
    restarted(&api, other)?;
    let seen = api.instance(uuid(lost))?.expect(200)?;
    ensure!(seen["state"] == "running", "{seen}");
    api.create(&body)?.expect(422)?;
    cut.plug(true)?;
    until("the node is back", || {
        Ok((!state(&server, "ann")?.contains("unreachable")).then_some(()))
    })?;
    reaches_itself(&key, lost)?;
    restarted(&api, lost)?;
    for instance in &instances {
        api.delete(uuid(instance))?.expect(204)?;
    }
    until("the machines are empty", || {
        let all = machines.iter().map(|machine| {
            let list = machine.client().get("/containers/json?all=true")?;
            Ok(list.as_array().is_none_or(Vec::is_empty))
        });
        Ok(all
            .collect::<Result<Vec<_>>>()?
            .iter()
            .all(|empty| *empty)
            .then_some(()))
    })?;
    server.finish()
}

fn reaches_itself(key: &KeyPair, instance: &Value) -> Result<()> {
    let name = Login::Key(key).output(instance, "uname -n")?;
    ensure!(name == text(&instance["name"]), "{name}");
    Ok(())
}

/// Runs `wharf node check` on a node with this endpoint and table, and returns its success and output.
fn check(endpoint: &str, tls: &str) -> Result<(bool, String)> {
    let node = docker_node("far", endpoint, ["10.99.0.0/16", "198.18.99.0/28"], "");
    node_check("far", &format!("{node}{tls}"))
}

/// Answers every connection as an HTTP server without TLS does.
fn plain_http() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        }
    });
    Ok(format!("https://{address}"))
}

pub fn wrong_certificates(_: &EngineContext) -> Result<()> {
    let (authority, stranger) = (Authority::new()?, Authority::new()?);
    let switch = Switch::new()?;
    let mut machine = Machine::on(&switch, 2)?;
    let engine = authority.issue("engine", &[machine.address()])?;
    machine.start(&authority, &engine)?;
    let far = machine.endpoint();
    let ca = authority.ca();
    let wharf = authority.issue("wharf", &[])?;
    let good = wharf.node_tls(&ca);
    let pin = |to: &Certificate| {
        let (of, to) = (ca.display().to_string(), to.cert.display().to_string());
        good.replace(" ca =", " server_cert =").replace(&of, &to)
    };

    let more = |setting: &str| good.replace(" }", &format!(", {setting} }}"));

    for tls in [&good, &pin(&engine)] {
        let (accepted, said) = check(&far, tls)?;
        ensure!(accepted && said.contains("resources: "), "{said}");
    }
    let open = authority.issue("open", &[])?;
    fs::set_permissions(&open.key, Permissions::from_mode(0o644))?;
    let plain = plain_http()?;
    let expired = authority.issue_expired("old", &[])?;
    for (endpoint, tls, parts) in [
        (
            &far,
            stranger.issue("wharf", &[])?.node_tls(&ca),
            ["refuses the certificate in tls.cert", "far"],
        ),
        (
            &far,
            expired.node_tls(&ca),
            ["refuses the certificate in tls.cert", "expired"],
        ),
        (
            &far,
            wharf.node_tls(&stranger.ca()),
            ["not from the issuer in tls.ca", "far"],
        ),
        (
            &far,
            more("server_name = \"rack.example\""),
            ["not for rack.example", machine.address()],
        ),
        (&far, pin(&wharf), ["not the one in tls.server_cert", "far"]),
        (&plain, good.clone(), ["does not speak TLS", "plain HTTP"]),
        (&far, open.node_tls(&ca), ["node.far.tls.key", "chmod 0600"]),
        (&far, String::new(), ["node.far.tls", "cert"]),
        (
            &far,
            more("server_cert = \"x\""),
            ["node.far.tls", "either `ca` or `server_cert`"],
        ),
        (
            &"unix:///run/none.sock".to_owned(),
            good.clone(),
            ["node.far.tls", "https://HOST:PORT"],
        ),
        (
            &"tcp://127.0.0.1:2375".to_owned(),
            String::new(),
            ["node.far.endpoint", "TLS"],
        ),
    ] {
        let (accepted, said) = check(endpoint, &tls)?;
        ensure!(!accepted, "accepted: {said}");
        for part in parts {
            ensure!(said.contains(part), "no {part:?} in {said}");
        }
        ensure!(!said.contains("PRIVATE KEY"), "{said}");
    }

    is_read_again(&authority, &machine)?;
    machine.stop()?;
    machine.start(
        &authority,
        &authority.issue_expired("engine-old", &[machine.address()])?,
    )?;
    let (accepted, said) = check(&far, &good)?;
    ensure!(
        !accepted && said.contains("the engine's certificate has expired"),
        "{said}"
    );
    Ok(())
}

/// A server reads the certificate of a node again on SIGHUP.
fn is_read_again(authority: &Authority, machine: &Machine) -> Result<()> {
    const NAME: &str = "renewed";
    let tls = authority
        .issue_expired(NAME, &[])?
        .node_tls(&authority.ca());
    let node = node("far", machine, &tls)?;
    let server = Server::start(&format!("{}{node}", Ports::take().settings()))?;
    let until_reached = |wanted: bool| {
        until("the node is reached or not", || {
            let reached = state(&server, "far")?.contains(" reachable");
            Ok((reached == wanted).then_some(()))
        })
    };
    until_reached(false)?;
    authority.issue(NAME, &[])?;
    server.hang_up()?;
    until_reached(true)?;
    server.finish()
}
