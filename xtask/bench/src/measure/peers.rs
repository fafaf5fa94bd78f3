//! List and get of 1,000 instances beside the engines of this machine, each with as many containers:
//! a private dockerd, a private Podman, and the machine's Incus with the instances that it has.

use crate::Options;
use crate::data::Data;
use crate::measure::engine::{IMAGE, concurrently, private};
use crate::server::Wharf;
use crate::table::{Table, Target};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use wharf_testkit::engine::installed;
use wharf_testkit::http::{Endpoint, HttpClient, Request};
use wharf_testkit::process::is_root;
use wharf_testkit::{images, progress};

const INSTANCES: usize = 1_000;
/// Concurrent requests while containers are created.
const CONCURRENCY: u16 = 16;
const REPETITIONS: usize = 9;
const CREATION_LIMIT: Duration = Duration::from_secs(120);

/// The interface of an engine.
struct Interface {
    list: &'static str,
    /// JSON pointers to the items of a list, and to the id of an item.
    items: &'static str,
    id: &'static str,
    /// The path of an item, around its id.
    get: (&'static str, &'static str),
}

/// The Docker Engine API, of dockerd and Podman.
const DOCKER: Interface = Interface {
    list: "/containers/json?all=true",
    items: "",
    id: "/Id",
    get: ("/containers/", "/json"),
};
const INCUS: Interface = Interface {
    list: "/1.0/instances?recursion=1",
    items: "/metadata",
    id: "/name",
    get: ("/1.0/instances/", ""),
};
const INCUS_SOCKET: &str = "/var/lib/incus/unix.socket";

/// Measures list and get.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    if options.quick {
        table.leave_out("list and get beside other engines", "--quick");
        return Ok(());
    }
    let kinds = installed();
    if kinds.is_empty() || !is_root() {
        table.leave_out(
            "list and get beside dockerd and Podman",
            "needs them and root",
        );
    } else {
        for kind in kinds {
            let dir = tempfile::Builder::new().prefix("wharf-bench-").tempdir()?;
            let engine = private(kind, dir.path())?;
            fill(&engine.client())?;
            let measured = beside(kind.name(), &engine.client(), &DOCKER, table);
            engine.stop()?;
            measured?;
        }
    }
    if Path::new(INCUS_SOCKET).exists() {
        let client = HttpClient::new(Endpoint::Unix(INCUS_SOCKET.into()));
        beside("Incus", &client, &INCUS, table)?;
    } else {
        table.leave_out("list and get beside Incus", "it is not installed");
    }
    Ok(())
}

/// Creates the containers, without starting them.
fn fill(client: &HttpClient) -> Result<()> {
    images::ensure(client, &["base"])?;
    let title = format!("Creating {INSTANCES} containers");
    progress::timed(&title, || {
        concurrently(CONCURRENCY, |thread| {
            for n in (usize::from(thread)..INSTANCES).step_by(usize::from(CONCURRENCY)) {
                let path = format!("/containers/create?name=bench-{n}");
                let body = json!({ "Image": IMAGE, "HostConfig": { "NetworkMode": "none" } });
                let create = Request::new("POST", &path).timeout(CREATION_LIMIT);
                client.send(create.json(body))?.ok()?;
            }
            Ok(())
        })
    })
}

fn beside(name: &str, client: &HttpClient, interface: &Interface, table: &mut Table) -> Result<()> {
    let fetch = |path: &str| -> Result<Value> {
        let request = Request::new("GET", path).timeout(CREATION_LIMIT);
        client.send(request)?.ok()?.json()
    };
    let list = fetch(interface.list)?;
    let items = list.pointer(interface.items).and_then(Value::as_array);
    let items = items.context("the list is not an array")?;
    let Some(first) = items.first() else {
        table.leave_out(
            &format!("list and get beside {name}"),
            "it has no instances",
        );
        return Ok(());
    };
    let id = first.pointer(interface.id).and_then(Value::as_str);
    let id = id.context("an item without an id")?;
    let get = format!("{}{id}{}", interface.get.0, interface.get.1);
    let data = Data::of_size(1, items.len())?;
    let wharf = Wharf::on(&data)?;
    let one = data.first.first().context("no instances")?;
    let one = format!("/api/instance/{one}/");
    for (what, our_path, their_path) in [
        ("list", "/api/instance/", interface.list),
        ("get", one.as_str(), get.as_str()),
    ] {
        let ours = median(|| wharf.body(our_path, data.key()).map(drop))?;
        let theirs = median(|| fetch(their_path).map(drop))?;
        let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
        table.row(
            format!("{what} of {}", items.len()),
            (ms(ours), format!("{}, {name}", ms(theirs))),
            ours.as_secs_f64() / theirs.as_secs_f64(),
            Target::AtMost(1.0),
        );
    }
    Ok(())
}

fn median(mut request: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..REPETITIONS {
        let begin = Instant::now();
        request()?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    let median = times.get(REPETITIONS / 2);
    median.copied().context("no repetitions")
}
