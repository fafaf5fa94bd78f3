//! Answers of the fake engine.

use super::{Container, World};
use serde_json::{Value, json};
use wharf_guest::fake::{Body, Method, Sent};

type Answer = (u16, Value);

/// The answer of an engine that cannot change the flags of a mount.
const LOCKED: &str = "runc create failed: error mounting \"/var/lib/lxcfs/proc/cpuinfo\" to rootfs \
                      at \"/proc/cpuinfo\": mount /proc/self/fd/6:/proc/cpuinfo (via \
                      /proc/self/fd/14), flags: 0x5021: operation not permitted";
/// The answer of a Podman that was killed in the start of a container.
const HALF_STARTED: &str = "`/usr/bin/runc start 4d1e86aa` failed: exit status 1";

/// The answer of an engine on a node without lxcfs.
const NO_LXCFS: &str = "invalid mount config for type \"bind\": bind source path does not exist: \
                        /var/lib/lxcfs/proc/cpuinfo";

/// Answers one request.
pub fn handle(world: &mut World, request: &Sent) -> Answer {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let segments: Vec<_> = path.trim_start_matches('/').split('/').collect();
    let body: Value = match &request.body {
        Body::Json(text) => serde_json::from_str(text).unwrap(),
        _ => Value::Null,
    };
    match (request.method, segments.as_slice()) {
        (Method::Get, ["_ping"]) => (200, json!("OK")),
        (Method::Get, ["version"]) => version(world),
        (Method::Get, ["info"]) => (200, info(world)),
        (method, ["v4.0.0", "libpod", rest @ ..]) if world.podman => {
            libpod(world, method, rest, &body)
        }
        (Method::Get, ["images", "json"]) => (200, world.listed_snapshots()),
        (Method::Post, ["images", name @ .., "tag"]) => {
            let (repo, tag) = query.split_once("&tag=").unwrap();
            let repo = repo.strip_prefix("repo=").unwrap().replace("%2F", "/");
            world.tag(&name.join("/"), format!("{repo}:{tag}"));
            (201, Value::Null)
        }
        // It keeps no copy that has lost its name.
        (Method::Post, ["images", "prune"]) => (200, json!({})),
        (Method::Delete, ["images", name @ ..]) => world.drop_snapshot(&name.join("/"), query),
        (Method::Get, ["events"]) => (200, world.remembered(query)),
        (Method::Get, ["images", name @ .., what]) => image(world, &name.join("/"), what),
        (Method::Get, ["containers", "json"]) => list(world, query),
        (Method::Post, ["containers", "create"]) => {
            create(world, query.strip_prefix("name=").unwrap(), body)
        }
        (Method::Post, ["networks", "create"]) => create_network(world, body),
        (Method::Get, ["volumes", name]) => match world.volumes.get(*name) {
            Some(labels) => (200, json!({ "Name": name, "Labels": labels })),
            None => no(404, &format!("get {name}: no such volume")),
        },
        // An existing volume keeps its labels.
        (Method::Post, ["volumes", "create"]) => {
            let name = body["Name"].as_str().unwrap().to_owned();
            world.volumes.entry(name).or_insert(body["Labels"].clone());
            (201, json!({}))
        }
        (Method::Post, ["exec", _, "start"]) => (200, Value::Null),
        (Method::Get, ["exec", _, "json"]) => (200, json!({ "ExitCode": world.exit_code })),
        (Method::Get, ["networks"]) => (200, json!([])),
        (_, ["networks", name, rest @ ..]) => network(world, request.method, name, rest, &body),
        (_, ["containers", name, rest @ ..]) => {
            let name = world.name_of(name);
            if !world.containers.contains_key(&name) {
                return no(404, "No such container");
            }
            container(world, request, &name, rest, body)
        }
        other => panic!("the model does not know {other:?}"),
    }
}

fn no(status: u16, message: &str) -> Answer {
    (status, json!({ "message": message }))
}

fn info(world: &World) -> Value {
    json!({ "NCPU": 2, "Driver": world.storage, "DriverStatus": [world.storage_says] })
}

fn version(world: &World) -> Answer {
    let (name, version) = if world.podman {
        ("Podman Engine", "4.3.1")
    } else {
        ("Engine", "20.10.24")
    };
    let body = json!({
        "Components": [{ "Name": name }], "Version": version, "ApiVersion": "1.41",
    });
    (200, body)
}

/// Podman's own interface, with the behaviour of Podman 4.3.
fn libpod(world: &mut World, method: Method, rest: &[&str], body: &Value) -> Answer {
    match (method, rest) {
        (Method::Post, ["networks", "create"]) => {
            assert_eq!(body["dns_enabled"], false);
            let made = json!({
                "Name": body["name"], "Labels": body["labels"],
                "IPAM": { "Config": [{ "Subnet": body["subnets"][0]["subnet"] }] },
            });
            create_network(world, made)
        }
        (Method::Post, ["containers", name, "update"]) => {
            let used = world.memory_used - world.cached;
            let name = world.name_of(name);
            let container = world.containers.get_mut(&name).unwrap();
            let limit = body["memory"]["limit"].as_u64().unwrap();
            if !container.running || limit < used {
                return no(500, "container is not running, or the device is busy");
            }
            container.limit = limit;
            (201, Value::Null)
        }
        other => panic!("the model does not know libpod's {other:?}"),
    }
}

fn image(world: &World, name: &str, what: &str) -> Answer {
    if let Some(snapshot) = world.snapshot(name) {
        return (200, snapshot.told(what, world));
    }
    let name = if *name == *super::snapshot::ID {
        "localhost/wharf/base:1"
    } else {
        name
    };
    if name.ends_with("@sha256:ab") {
        return no(400, "invalid reference format");
    }
    if !world.images.contains(name) {
        return no(404, &format!("No such image: {name}"));
    }
    let size = world.image_bytes / 2;
    match what {
        "json" => {
            let content = format!("Tools of {name}");
            let labels = json!({
                "io.wharf.ssh": "1", "io.wharf.clonable": "1", "io.wharf.content": content,
            });
            let labels = if name.contains("earlier") {
                Value::Null
            } else {
                labels
            };
            let storage = json!({ "Name": world.storage });
            (
                200,
                json!({ "GraphDriver": storage, "Config": { "Labels": labels } }),
            )
        }
        "history" => (
            200,
            json!([{ "Size": size }, { "Size": 0 }, { "Size": size }]),
        ),
        other => panic!("the model does not know {other:?}"),
    }
}

fn create(world: &mut World, name: &str, mut body: Value) -> Answer {
    let image = body["Image"].as_str().unwrap();
    if !world.images.contains(image) && world.snapshot(image).is_none() {
        return no(404, &format!("No such image: {image}"));
    }
    if world.containers.contains_key(name) {
        return no(409, "Conflict. The container name is already in use");
    }
    if !world.disk_limits && !body["HostConfig"]["StorageOpt"].is_null() {
        world.refused_limits += 1;
        return no(
            500,
            "--storage-opt is supported only for overlay over xfs with 'pquota'",
        );
    }
    if !world.lxcfs && !body["HostConfig"]["Mounts"].is_null() {
        return no(400, NO_LXCFS);
    }
    world.next_container += 1;
    let snapshot = world.snapshot(image).cloned();
    if let Some(snapshot) = &snapshot {
        // A container has the labels of its image too.
        let mut labels = snapshot.labels.clone();
        let own = body["Labels"].as_object().unwrap().clone();
        labels.as_object_mut().unwrap().extend(own);
        body["Labels"] = labels;
    }
    world.containers.insert(
        world.renamed_to.unwrap_or(name).into(),
        Container {
            id: format!("{:064x}", world.next_container),
            files: snapshot.map(|snapshot| snapshot.files).unwrap_or_default(),
            body,
            ..Container::default()
        },
    );
    (201, json!({ "Id": "x" }))
}

fn list(world: &World, query: &str) -> Answer {
    let all = query.starts_with("all=true&");
    let filters = query.trim_start_matches("all=true&");
    let filters = filters.strip_prefix("filters=").unwrap();
    let decoded = filters
        .replace("%22", "\"")
        .replace("%7B", "{")
        .replace("%7D", "}")
        .replace("%5B", "[")
        .replace("%5D", "]")
        .replace("%3A", ":")
        .replace("%2C", ",")
        .replace("%3D", "=");
    let filters: Value = serde_json::from_str(&decoded).unwrap();
    let wanted = filters["label"].as_array().unwrap();
    let labelled = |(_, container): &(&String, &Container)| {
        (all || container.running)
            && wanted
                .iter()
                .all(|pair| match pair.as_str().unwrap().split_once('=') {
                    Some((key, value)) => container.body["Labels"][key] == value,
                    None => container.body["Labels"]
                        .get(pair.as_str().unwrap())
                        .is_some(),
                })
    };
    let lines = world
        .containers
        .iter()
        .filter(labelled)
        .map(|(name, container)| {
            json!({
                "Id": container.id, "Names": [format!("/{name}")], "Labels": container.body["Labels"], "State": state(container),
                "Status": "Up",
            })
        });
    (200, lines.collect())
}

fn state(container: &Container) -> &'static str {
    if container.paused {
        return "paused";
    }
    match (container.running, container.started) {
        (true, _) => "running",
        (_, true) => "exited",
        _ => "created",
    }
}

fn container(world: &mut World, request: &Sent, name: &str, rest: &[&str], body: Value) -> Answer {
    let used = world.memory_used;
    let wanted = world.containers[name].body["HostConfig"]["NetworkMode"]
        .as_str()
        .unwrap();
    let network = world.networks.get(wanted).map(|(id, _)| *id);
    let image_id = world.image_id(&world.containers[name].body["Image"]);
    let (kvm, lxcfs, no_bridge) = (world.kvm, world.lxcfs, world.no_bridge);
    let locked = world.locked;
    let snapshot = world.snapshot(world.containers[name].body["Image"].as_str().unwrap());
    let copied = snapshot.map_or(0, |_| super::snapshot::COPIED);
    let (written, image_bytes) = (world.written, world.image_bytes + copied);
    let (podman, storage) = (world.podman, world.storage);
    let made = |(_, made): &(u64, Value)| made["Options"]["com.docker.network.bridge.name"].clone();
    let bridge = world.networks.get(wanted).map(made);
    let is_half_started = world.half_started.as_deref() == Some(name);
    let bare = &mut world.started_bare;
    let container = world.containers.get_mut(name).unwrap();
    match (request.method, rest) {
        (Method::Get, ["json"]) => (
            200,
            json!({
                "State": { "Status": state(container), "ExitCode": 0, "Error": "", "StartedAt": container.started_at() },
                "Config": { "Labels": container.body["Labels"], "Image": container.body["Image"] },
                "Image": image_id,
                "Mounts": container.body["Mounts"],
                "HostConfig": container.body["HostConfig"], "Name": format!("/{name}"),
                "SizeRw": request.path.ends_with("?size=true").then_some(written),
                "SizeRootFs": if podman { image_bytes } else { written + image_bytes },
                "GraphDriver": { "Name": storage },
            }),
        ),
        (Method::Get, ["archive"]) => no(404, "Could not find the file"),
        (Method::Put, ["archive"]) => {
            let Body::Archive(files) = &request.body else {
                panic!("no archive")
            };
            for file in files {
                if !container.files.contains(&file.path) {
                    container.files.push(file.path.clone());
                }
            }
            (200, Value::Null)
        }
        (Method::Post, ["start"]) => {
            if container.running {
                return (304, Value::Null);
            }
            if is_half_started {
                return no(500, HALF_STARTED);
            }
            if !container.body["HostConfig"]["Devices"].is_null() && !kvm {
                return no(
                    500,
                    "error gathering device information: /dev/kvm: no such file",
                );
            }
            if !container.body["HostConfig"]["Mounts"].is_null() {
                if !lxcfs {
                    return no(400, NO_LXCFS);
                }
                if locked {
                    return no(500, LOCKED);
                }
            }
            if network.is_none() || container.network.is_some() && container.network != network {
                return no(404, "network wharf-x not found");
            }
            if no_bridge {
                return no(
                    500,
                    &format!(
                        "could not find bridge {}: no such network interface",
                        bridge.unwrap()
                    ),
                );
            }
            if container.files.is_empty() {
                bare.push(name.into());
            }
            (container.running, container.started, container.network) = (true, true, network);
            container.starts += 1;
            container.limit = container.body["HostConfig"]["Memory"].as_u64().unwrap();
            (204, Value::Null)
        }
        (Method::Post, ["unpause"]) if !container.paused => no(409, "Container is not paused"),
        (Method::Post, ["unpause"]) => {
            container.paused = false;
            world.happens(name, "unpause");
            (204, Value::Null)
        }
        (Method::Post, ["stop"]) => {
            assert!(!container.paused, "it could not end in order");
            let code = if container.running { 204 } else { 304 };
            container.running = false;
            (code, Value::Null)
        }
        (Method::Post, ["exec"]) => {
            let command = body["Cmd"].as_array().unwrap().iter();
            let command = command.map(|word| word.as_str().unwrap().to_owned());
            container.programs.push(command.collect());
            (201, json!({ "Id": "e".repeat(64) }))
        }
        (Method::Post, ["update"]) if world.podman => no(404, "Not Found"),
        (Method::Post, ["update"]) => {
            if body["Memory"].as_u64().unwrap() < used {
                return no(500, "device or resource busy");
            }
            for (key, value) in body.as_object().unwrap() {
                container.body["HostConfig"][key] = value.clone();
            }
            (200, json!({ "Warnings": null }))
        }
        (Method::Get, ["stats"]) => {
            let counters = (!world.podman).then(|| json!({ "cache": 0 }));
            let body = json!({
                "read": "2026-11-21T05:22:03.5Z",
                "cpu_stats": { "cpu_usage": { "total_usage": 77 } },
                "memory_stats": { "usage": used, "limit": container.limit, "stats": counters },
            });
            (200, body)
        }
        (Method::Get, ["top"]) if world.podman => {
            let rows: Vec<_> = world.resident_kib.iter().map(|n| [n.to_string()]).collect();
            (200, json!({ "Processes": rows, "Titles": ["RSS"] }))
        }
        (Method::Post, ["rename"]) => {
            let to = request.path.split_once("name=").unwrap().1.to_owned();
            if world.containers.contains_key(&to) {
                return no(409, "Conflict. The container name is already in use");
            }
            let renamed = world.containers.remove(name).unwrap();
            world.containers.insert(to, renamed);
            (204, Value::Null)
        }
        (Method::Delete, []) if world.removals_fail => no(500, "failed to remove root filesystem"),
        (Method::Delete, []) => {
            world.containers.remove(name);
            (204, Value::Null)
        }
        other => panic!("the model does not know {other:?}"),
    }
}

fn create_network(world: &mut World, body: Value) -> Answer {
    let name = body["Name"].as_str().unwrap().to_owned();
    if world.networks.contains_key(&name) {
        return no(409, "already exists");
    }
    let subnet = |body: &Value| body["IPAM"]["Config"][0]["Subnet"].clone();
    if world
        .networks
        .values()
        .any(|(_, other)| subnet(other) == subnet(&body))
    {
        return no(403, "Pool overlaps with other one on this address space");
    }
    world.no_bridge = false;
    world.next_network += 1;
    world.networks.insert(name, (world.next_network, body));
    (201, Value::Null)
}

fn network(world: &mut World, method: Method, name: &str, rest: &[&str], body: &Value) -> Answer {
    let Some((id, made)) = world.networks.get(name).cloned() else {
        return no(404, "network not found");
    };
    let member = body["Container"].as_str().map(|name| world.name_of(name));
    let member = member.and_then(|name| world.containers.get_mut(&name));
    match (method, rest) {
        (Method::Get, []) => (200, made),
        (Method::Delete, []) => {
            let busy = |container: &Container| container.running && container.network == Some(id);
            if world.containers.values().any(busy) {
                return no(403, "has active endpoints");
            }
            world.networks.remove(name);
            (204, Value::Null)
        }
        (Method::Post, ["disconnect"]) => {
            member.unwrap().network = None;
            (200, Value::Null)
        }
        (Method::Post, ["connect"]) => {
            let address = body["EndpointConfig"]["IPAMConfig"]["IPv4Address"].as_str();
            let (member, address) = (member.unwrap(), address.unwrap().to_owned());
            if member.body["HostConfig"]["NetworkMode"] == name {
                member.network = Some(id);
            } else if member.others.insert(name.to_owned(), address).is_some() {
                return no(403, "endpoint already exists in network");
            }
            (200, Value::Null)
        }
        other => panic!("the model does not know {other:?}"),
    }
}
