//! Others' list and get of 1,000 containers, beside ours of as many instances: Docker, Podman and
//! Incus, where they run on this machine and have at least one container. Nothing of theirs is changed.

use crate::Options;
use crate::data::Data;
use crate::server::Wharf;
use crate::table::{Reach, Table};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use xtask::http::{Client, Endpoint, Request};

/// How others are asked.
struct Peer {
    name: &'static str,
    socket: &'static str,
    list: &'static str,
    /// Where a list has its items, and what of an item names it in `get`.
    items: &'static str,
    id: &'static str,
    /// Before and after the name.
    get: (&'static str, &'static str),
}

const PEERS: [Peer; 3] = [
    Peer {
        name: "Docker",
        socket: "/var/run/docker.sock",
        list: "/containers/json?all=true",
        items: "",
        id: "/Id",
        get: ("/containers/", "/json"),
    },
    Peer {
        name: "Podman",
        socket: "/run/podman/podman.sock",
        list: "/containers/json?all=true",
        items: "",
        id: "/Id",
        get: ("/containers/", "/json"),
    },
    Peer {
        name: "Incus",
        socket: "/var/lib/incus/unix.socket",
        list: "/1.0/instances?recursion=1",
        items: "/metadata",
        id: "/name",
        get: ("/1.0/instances/", ""),
    },
];
const TURNS: usize = 9;

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    if !options.peers {
        table.leave_out("Docker, Podman, Incus", "--peers asks for them");
        return Ok(());
    }
    for peer in &PEERS {
        if !Path::new(peer.socket).exists() {
            table.leave_out(peer.name, &format!("nothing at {}", peer.socket));
        } else if let Err(error) = beside(peer, table) {
            table.leave_out(peer.name, &format!("{error:#}"));
        }
    }
    Ok(())
}

fn beside(peer: &Peer, table: &mut Table) -> Result<()> {
    let client = Client::new(Endpoint::Unix(PathBuf::from(peer.socket)));
    let ask =
        |path: &str| -> Result<Value> { client.send(Request::new("GET", path))?.ok()?.json() };
    let list = ask(peer.list)?;
    let items = list.pointer(peer.items).and_then(Value::as_array);
    let items = items.context("its list is no array")?;
    let Some(first) = items.first() else {
        bail!("it has no containers to ask for");
    };
    let id = first.pointer(peer.id).and_then(Value::as_str);
    let get = format!("{}{}{}", peer.get.0, id.context("no id")?, peer.get.1);
    // As many of ours as it has.
    let data = Data::of_size(1, items.len())?;
    let wharf = Wharf::on(&data)?;
    let one = data.first.first().context("no instances")?;
    let one = format!("/api/instance/{one}/");
    for (what, ours, theirs) in [
        ("list", "/api/instance/", peer.list),
        ("get", one.as_str(), get.as_str()),
    ] {
        let ours = median(|| wharf.body(ours, data.key()).map(drop))?;
        let theirs = median(|| ask(theirs).map(drop))?;
        let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
        table.row(
            format!("{what} of {}, beside {}", items.len(), peer.name),
            (ms(ours), format!("{}, {}", ms(theirs), peer.name)),
            ours.as_secs_f64() / theirs.as_secs_f64(),
            Reach::AtMost(1.0),
        );
    }
    Ok(())
}

fn median(mut ask: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..TURNS {
        let begin = Instant::now();
        ask()?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    times.get(TURNS / 2).copied().context("no turns")
}
