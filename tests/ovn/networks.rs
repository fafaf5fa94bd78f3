//! The reach of an instance: its owner's instances on all members, public hosts, and nothing else.

use super::context::{OvnContext, login};
use super::lab;
use crate::lab::{Lab, running, text, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use wharf_tests::{Api, until};

/// The router answers at all of these, and so does OVN's database at the last one.
const PRIVATE: [(&str, u16); 11] = [
    ("198.18.40.254", 80),
    ("10.87.0.254", 80),
    ("10.87.0.1", 80),
    ("10.87.0.2", 80),
    ("10.87.0.1", 8443),
    ("169.254.169.254", 80),
    ("10.99.0.1", 80),
    ("172.16.5.1", 80),
    ("192.168.9.1", 80),
    ("100.64.0.1", 80),
    ("10.87.0.254", 6641),
];

pub fn of_owners(context: &OvnContext) -> Result<()> {
    let server = context.server(&[1, 2])?;
    let (ann, bob) = (
        server.user("ann@example.com")?,
        server.user("bob@example.com")?,
    );
    let (here, there) = on_both_members(context, &ann)?;
    let foreign = running(&bob)?;
    let network = context.network(&here)?;
    ensure!(
        context.network(&there)? == network,
        "two networks of one owner"
    );
    ensure!(
        context.network(&foreign)? != network,
        "one network of two owners"
    );

    let lan = |instance: &Value| text(&instance["lan_ipv4"]).to_owned();
    for (from, to) in [(&here, &there), (&there, &here)] {
        let banner = reached(from, &lan(to), 22)?;
        ensure!(
            banner.starts_with("SSH-2.0-"),
            "{} -> {}: {banner:?}",
            from["name"],
            to["name"]
        );
    }
    for from in [&here, &there] {
        let greeting = reached(from, lab::PUBLIC_HOST, 80)?;
        // The address of the owner's network on the uplink.
        ensure!(greeting.contains(":198.18.40."), "{greeting:?}");
        let foreign = (lan(&foreign), 22);
        let private = PRIVATE.map(|(address, port)| (address.to_owned(), port));
        let public = (lab::PUBLIC_HOST.to_owned(), 80);
        let open = open(from, private.into_iter().chain([foreign, public]))?;
        ensure!(
            open == format!("{}:80", lab::PUBLIC_HOST),
            "reachable: {open}"
        );
    }
    // A counter-check: what was out of reach is there.
    ensure!(login(&foreign, "uname -n")? == foreign["name"]);

    for instance in [&here, &there] {
        ann.delete(uuid(instance))?.expect(204)?;
    }
    bob.delete(uuid(&foreign))?.expect(204)?;
    context.nothing_left(&network)?;
    server.finish()
}

/// Two instances of a user, on the members in their order.
fn on_both_members(context: &OvnContext, api: &Api) -> Result<(Value, Value)> {
    let (one, other) = (running(api)?, running(api)?);
    let place = |instance: &Value| Ok::<_, anyhow::Error>(context.object(instance)?.place);
    ensure!(
        place(&one)? != place(&other)?,
        "both are on {}",
        place(&one)?
    );
    Ok((one, other))
}

/// The first line of a server's answer to an instance.
fn reached(from: &Value, address: &str, port: u16) -> Result<String> {
    // A crash of the userspace conntrack may break a connection.
    until(
        &format!("{} reaches {address}:{port}", from["name"]),
        || {
            let script =
                format!("timeout 5 bash -c 'head -n 1 </dev/tcp/{address}/{port}' || true");
            let line = login(from, &script)?;
            Ok((!line.is_empty()).then_some(line))
        },
    )
}

/// The targets that accept connections of an instance.
fn open(from: &Value, targets: impl Iterator<Item = (String, u16)>) -> Result<String> {
    let each = targets.map(|(address, port)| {
        format!("(timeout 3 bash -c '</dev/tcp/{address}/{port}' 2>/dev/null && echo {address}:{port}) & ")
    });
    let script = format!("{} wait", each.collect::<String>());
    login(from, &script).context("a login")
}
