//! Every request of the file, compared with the driver's own builders.

use crate::fake::given::{self, node, spec, vm};
use crate::scopes;
use driver_docker::api::Api;
use driver_docker::context::Context;
use driver_docker::create_body::{Creation, Image, Options, Update};
use driver_docker::settings::Settings;
use driver_docker::{digest, identity, lxcfs, names, network, vm as machine};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use wharf_guest::{
    Body, Engine, EngineError, Header, JobState, Method, Node, PublishedPort, Request,
    ResourceType, Response, Size, Spec, Transfer,
};
use wharf_requests::{CallScope, Purpose, RequestFile, Requests};

/// An engine that records requests.
#[derive(Default)]
struct Recorder {
    podman: bool,
    sent: RefCell<Vec<Written>>,
}

/// Method, path and query, and body.
type Written = (String, String, Value);

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

impl Recorder {
    fn note(&self, request: &Request) {
        let method = match request.method {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        };
        let body = match &request.body {
            Body::Json(text) => serde_json::from_str(text).unwrap(),
            Body::Archive(files) => json!(files.len()),
            _ => Value::Null,
        };
        self.sent
            .borrow_mut()
            .push((method.into(), sorted(&request.path), body));
    }

    fn take(&self) -> Vec<Written> {
        self.sent.take()
    }
}

fn sorted(target: &str) -> String {
    match target.split_once('?') {
        Some((path, query)) => {
            let mut pairs: Vec<_> = query.split('&').collect();
            pairs.sort_unstable();
            format!("{path}?{}", pairs.join("&"))
        }
        None => target.to_owned(),
    }
}

impl Engine for Recorder {
    fn send(&self, request: &Request) -> Result<Response, EngineError> {
        self.note(request);
        let path = request.path.split('?').next().unwrap();
        let (status, body) = match (request.method, path) {
            (Method::Get, path) if path.contains("/networks/") => (404, json!({})),
            (Method::Get, path) if path.ends_with("/containers/json") => {
                (200, json!([{ "Id": ID }]))
            }
            (Method::Get, path) if path.ends_with("/networks") => (200, json!([])),
            (Method::Get, path) if path.ends_with("/history") => (200, json!([])),
            (Method::Get, path) if path.ends_with("/json") && path.contains("/images/") => {
                (200, json!({ "GraphDriver": { "Name": "btrfs" } }))
            }
            _ => (200, json!({ "Id": ID })),
        };
        let server = match self.podman {
            true => "Libpod/4.3.1 (linux)",
            false => "Docker/20.10.24 (linux)",
        };
        let header = |name: &str, value: &str| Header {
            name: name.into(),
            value: value.into(),
        };
        Ok(Response {
            status,
            headers: vec![header("server", server), header("api-version", "1.41")],
            body: body.to_string().into_bytes(),
        })
    }

    fn job(&self, _: &str, request: &Request) -> Result<JobState, EngineError> {
        self.note(request);
        Ok(JobState::Running(None))
    }

    fn begin_transfer(&self, transfer: &Transfer) -> Result<(), EngineError> {
        let (read, changes, write) = (&transfer.read, &transfer.changes, &transfer.write);
        let targets = json!([read, changes, write]);
        self.sent
            .borrow_mut()
            .push(("TRANSFER".into(), String::new(), targets));
        Ok(())
    }
}

fn requests(settings: &str) -> Requests {
    let file = RequestFile::parse(include_str!("../../requests.toml")).unwrap();
    Requests::new(&file, &serde_json::from_str(settings).unwrap()).unwrap()
}

fn rendered(
    requests: &Requests,
    scope: &CallScope,
    name: &str,
    arguments: &[(&str, &str)],
) -> Written {
    let arguments: Vec<_> = arguments
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let purpose = match name {
        "content" => Purpose::Transfer,
        "pull-image" => Purpose::Job,
        _ => Purpose::Send,
    };
    let written = requests.render(scope, name, &arguments, purpose);
    let written = written.unwrap_or_else(|why| panic!("{name}: {why:?}"));
    if let Some(transfer) = &written.transfer {
        let targets = json!([transfer.read, transfer.changes, transfer.write]);
        return ("TRANSFER".into(), String::new(), targets);
    }
    let body = match &written.body {
        wharf_requests::Body::Json(text) => {
            let body: Value = serde_json::from_str(text).unwrap();
            assert_eq!(*text, body.to_string(), "{name}: sorted keys, no spaces");
            body
        }
        wharf_requests::Body::Archive(files) => json!(files.len()),
        _ => Value::Null,
    };
    (written.method.to_string(), sorted(&written.target), body)
}

/// The settings of the matrix.
const SETTINGS: [&str; 14] = [
    "{}",
    r#"{"disk_limit":"off"}"#,
    r#"{"disk_limit":"on"}"#,
    r#"{"btrfs_quotas":"simple"}"#,
    r#"{"kvm":"off"}"#,
    r#"{"lxcfs":"off"}"#,
    r#"{"userns":"auto"}"#,
    r#"{"userns":"auto:size=65536"}"#,
    r#"{"userns":"keep-id:uid=1,gid=2"}"#,
    r#"{"dns":["10.0.0.53","2001:db8:0:0::1"],"publish_address":"::0:1"}"#,
    r#"{"ulimits":{"nproc":9,"nofile":1024,"core":0},"pids_limit":1}"#,
    r#"{"image_prefix":"registry.example/w/","api_version":"1.44"}"#,
    r#"{"public_network":"uplink"}"#,
    r#"{"image_prefix":"r/","publish_address":"127.0.0.1","pids_limit":99,"userns":"auto","dns":["10.0.0.53"],"ulimits":{"nofile":1024},"disk_limit":"on","btrfs_quotas":"simple","api_version":"1.41","kvm":"off","lxcfs":"off"}"#,
];

fn sizes() -> [Size; 5] {
    [
        (1, 1, 1),
        (2, 3, 9),
        (3, 7, 33),
        (64, 512, 4096),
        (1000, 4_000_000, 4_000_000_000),
    ]
    .map(|(n_vcpus, mem_gib, disk_size_gib)| Size {
        n_vcpus,
        mem_gib,
        disk_size_gib,
    })
}

/// Ports of the node, and those of the instance behind them.
fn published() -> [Vec<PublishedPort>; 3] {
    let ports = |all: &[(u16, u16)]| {
        let port = |(node_port, instance_port): &(u16, u16)| PublishedPort {
            node_port: *node_port,
            instance_port: *instance_port,
        };
        all.iter().map(port).collect()
    };
    [
        Vec::new(),
        ports(&[(20_001, 22)]),
        ports(&[(20_003, 22), (20_001, 10_000), (20_002, 22)]),
    ]
}

#[test]
fn creations_are_equal() {
    let mut equal = 0;
    let mut other_order = 0;
    for text in SETTINGS {
        let requests = requests(text);
        let node = node(text);
        for made in specs() {
            for options in 0..8_u8 {
                let has = |bit: u8| options & bit != 0;
                for (earlier, grown) in [(false, false), (true, true), (true, false)] {
                    for counted in [None, Some(0), Some(536_870_913)] {
                        match compared(
                            &requests,
                            &node,
                            &made,
                            (has(1), has(2), has(4)),
                            earlier,
                            grown,
                            counted,
                        ) {
                            Some(true) => equal += 1,
                            Some(false) => other_order += 1,
                            None => {}
                        }
                    }
                }
            }
        }
    }
    println!("{equal} equal, {other_order} with another order of portmappings");
    assert!(equal + other_order > 50_000, "{equal}");
}

fn specs() -> Vec<Spec> {
    let mut all = Vec::new();
    for plain in [spec(1), vm(2)] {
        for size in sizes() {
            for published in published() {
                for gpus in 0..3_usize {
                    for rich in 0..4_u8 {
                        let mut one = plain.clone();
                        one.size = size;
                        one.published.clone_from(&published);
                        one.gpu_devices = ["a.example/gpu=1", "nvidia.com/gpu=GPU-4c:1"][..gpus]
                            .iter()
                            .map(ToString::to_string)
                            .collect();
                        one.blueprint.environment = Vec::new();
                        if rich & 1 != 0 {
                            one.blueprint.environment = vec![
                                ("Z".into(), "a=b \"c\" {d} é".into()),
                                ("LANG".into(), String::new()),
                            ];
                        }
                        if rich & 2 != 0 {
                            one.blueprint.command =
                                vec!["/bin/sh".into(), "-c".into(), "{x}".into()];
                        }
                        all.push(one);
                    }
                }
            }
        }
    }
    all
}

/// Whether both creations are equal; none if the driver never sends it.
fn compared(
    requests: &Requests,
    node: &Node,
    spec: &Spec,
    (disk_limit, kvm, own_view): (bool, bool, bool),
    earlier: bool,
    grown: bool,
    counted: Option<u64>,
) -> Option<bool> {
    let settings = Settings::read(node).unwrap();
    let is_vm = spec.resource_type == ResourceType::Vm;
    let off = settings.disk_limit == driver_docker::settings::DiskLimit::Off;
    let auto = settings.disk_limit == driver_docker::settings::DiskLimit::Auto;
    let simple = settings.btrfs_quotas == driver_docker::settings::BtrfsQuotas::Simple;
    let sent = match (grown, disk_limit) {
        (true, true) => !is_vm && !kvm,
        (true, false) => false,
        (false, true) => !off,
        (false, false) => off || auto,
    };
    let kept = (is_vm || !kvm) && (!is_vm || !own_view);
    let kvm_given = !kvm || settings.kvm != driver_docker::settings::Kvm::Off;
    let view_given = !own_view || settings.lxcfs != driver_docker::settings::Lxcfs::Off;
    if !sent || !kept || !kvm_given || !view_given {
        return None;
    }
    let counts = disk_limit && !is_vm;
    if counted.is_some() && (!counts || simple) {
        return None;
    }
    let mut scope = scopes::create(node, spec);
    if let Some(bytes) = counted {
        scope.numbers.insert("image_bytes".into(), bytes);
    }
    let own = match earlier {
        true => names::earlier_name(&spec.network),
        false => names::own_name(&node.installation, &spec.network),
    };
    let digest = digest::of(spec);
    let mut labels = names::container_labels(&node.installation, spec, &own, &digest);
    let mut arguments = vec![("digest", digest.as_str())];
    let name = match grown {
        true => names::part(&spec.tag),
        false => names::container(&spec.tag),
    };
    arguments.push(("name", &name));
    if earlier {
        arguments.push(("network", "earlier"));
    }
    if grown {
        labels.insert(names::GROWN_FROM, "10G".to_owned());
        arguments.push(("grown-from", "10G"));
    }
    if own_view {
        arguments.push(("own-view", "true"));
    }
    if kvm {
        arguments.push(("kvm", "true"));
    }
    if !disk_limit && !off {
        scope.facts.insert("no-disk-limit".into());
        arguments.push(("no-disk-limit", "true"));
    }
    let image = settings.image(&spec.blueprint.images[0].reference);
    let body = Creation::new(
        spec,
        &settings,
        Image {
            reference: &image,
            counted: match counts && simple {
                true => Some(0),
                false => counted,
            },
        },
        names::network(&own),
        labels,
        Options {
            disk_limit,
            kvm,
            own_view,
        },
    );
    let recorder = Recorder::default();
    let api = Api::new(&recorder, settings.api_version.as_deref());
    api.create(&name, &body).unwrap().unwrap();
    let wanted = recorder.take();
    let written = rendered(requests, &scope, "create", &arguments);
    assert_eq!(wanted, [written], "{spec:?} {arguments:?}");
    if is_vm {
        return Some(true);
    }
    api.create_libpod(&body.libpod(&name, &spec.gpu_devices))
        .unwrap()
        .unwrap();
    let mut wanted = recorder.take().remove(0);
    let mut written = rendered(requests, &scope, "create-podman", &arguments);
    if wanted == written {
        return Some(true);
    }
    for (_, _, body) in [&mut wanted, &mut written] {
        let ports = body["portmappings"].as_array_mut().unwrap();
        ports.sort_by_key(ToString::to_string);
    }
    assert_eq!(wanted, written, "{spec:?} {arguments:?}");
    Some(false)
}

#[test]
fn other_requests_are_equal() {
    for text in SETTINGS {
        for spec in [spec(1), vm(2)] {
            others(text, &spec);
        }
    }
}

fn others(text: &str, spec: &Spec) {
    let requests = requests(text);
    let node = node(text);
    let settings = Settings::read(&node).unwrap();
    let version = settings.api_version.as_deref();
    let recorder = Recorder::default();
    let api = Api::new(&recorder, version);
    let own = names::container(&spec.tag);
    let target = given::target(spec);
    let mut learnt = BTreeMap::new();
    learnt.insert("container".to_owned(), vec![ID.to_owned()]);
    learnt.insert("listed".to_owned(), vec![ID.to_owned()]);
    learnt.insert("program".to_owned(), vec![ID.to_owned()]);
    let with = |mut scope: CallScope| {
        scope.learnt.clone_from(&learnt);
        scope.numbers = [("memory", 7), ("cpu_period", 8), ("cpu_quota", 9)]
            .map(|(name, n)| (name.to_owned(), n))
            .into();
        scope
    };
    let create = with(scopes::create(&node, spec));
    let change = with(scopes::change(&node, &target));
    let read = with(scopes::read(&node, &spec.tag));
    let about_node = with(CallScope::node(&node.installation));
    let image = &spec.blueprint.images[0].reference;
    let survey = CallScope::survey(&node.installation, std::slice::from_ref(image));
    let image = settings.image(image);
    let same = |scope: &CallScope, name: &str, arguments: &[(&str, &str)]| {
        let wanted = recorder.take();
        assert_eq!(
            wanted,
            [rendered(&requests, scope, name, arguments)],
            "{name}"
        );
    };

    api.ping().unwrap().unwrap();
    same(&about_node, "ping", &[]);
    api.version().unwrap().unwrap();
    same(&read, "version", &[]);
    api.info().unwrap().unwrap();
    same(&survey, "info", &[]);
    let volume = names::mark_volume(&node.installation);
    api.volume(&volume).unwrap().unwrap();
    same(&about_node, "read-store", &[]);
    let context = Context {
        api: Api::new(&recorder, version),
        settings: settings.clone(),
        installation: &node.installation,
        has_earlier_name: Default::default(),
    };
    identity::mark(&context, "the mark").unwrap();
    let mark = CallScope::mark(&node.installation, "the mark");
    same(&mark, "mark-store", &[]);
    api.has_image(&image).unwrap().unwrap();
    same(&survey, "find-image", &[("image", &image)]);
    api.counted_of(&image).unwrap().unwrap();
    let wanted = recorder.take();
    let written = ["read-image", "read-image-history"];
    let written = written.map(|name| rendered(&requests, &create, name, &[]));
    assert_eq!(wanted, written);
    api.pull(&image).unwrap();
    same(&create, "pull-image", &[]);
    api.networks().unwrap().unwrap();
    same(&survey, "survey-networks", &[]);

    let label = (names::INSTALLATION, node.installation.as_str());
    api.containers(&[label]).unwrap().unwrap();
    same(&about_node, "list", &[]);
    api.containers(&[label, (names::INSTANCE, &spec.tag.instance)])
        .unwrap()
        .unwrap();
    same(&read, "list-instance", &[]);
    let _ = machine::have_kvm(&context).unwrap();
    if settings.kvm != driver_docker::settings::Kvm::Off {
        let wanted = recorder.take();
        let list = rendered(&requests, &about_node, "list-machines", &[]);
        let arguments = [("container", ID)];
        let file = rendered(&requests, &about_node, "read-acceleration", &arguments);
        assert_eq!(wanted, [list, file]);
    }
    let _ = lxcfs::is_shown(&context).unwrap();
    same(&survey, "list-views", &[]);

    for name in [own.as_str(), ID] {
        let it = ("container", name);
        let _ = api.details(name, false);
        same(&read, "read", &[it]);
        let _ = api.details(name, true);
        same(&change, "read", &[it, ("size", "true")]);
        let _ = api.stats(name);
        same(&read, "stats", &[it]);
        let _ = api.resident(name);
        same(&read, "memory", &[it]);
        let files = &spec.blueprint.files;
        api.unpack(name, files).unwrap().unwrap();
        same(&create, "write-files", &[it]);
        api.start(name).unwrap().unwrap();
        same(&change, "start", &[it]);
        api.stop(name, 1500).unwrap().unwrap();
        same(&change, "stop", &[it, ("grace", "2")]);
        api.remove(name).unwrap().unwrap();
        same(&change, "delete", &[it]);
        for size in sizes() {
            let (mut spec, mut target) = (spec.clone(), target.clone());
            spec.size = size;
            target.size = size;
            let limits = Update::of(&size, spec.resource_type);
            for scope in [scopes::create(&node, &spec), scopes::change(&node, &target)] {
                let scope = with(scope);
                api.update(name, &limits).unwrap().unwrap();
                same(&scope, "resize", &[it]);
                api.update_libpod(name, &limits.libpod()).unwrap().unwrap();
                same(&scope, "resize-podman", &[it]);
            }
        }
        let before = driver_docker::api::model::Limits {
            memory: 7,
            cpu_period: 8,
            cpu_quota: 9,
            shm_size: 0,
        };
        let before = Update::before(&before).unwrap();
        api.update(name, &before).unwrap().unwrap();
        same(&change, "resize-back", &[it]);
        for ports in [vec![], vec![22, 8080]] {
            let mut target = target.clone();
            target.resource_type = ResourceType::Vm;
            target.wan_ports.clone_from(&ports);
            let scope = with(scopes::change(&node, &target));
            let mut command = vec![machine::PROGRAM.to_owned(), "set-ports".to_owned()];
            command.extend(ports.iter().map(ToString::to_string));
            api.run(name, &command).unwrap().unwrap();
            let wanted = recorder.take();
            let program = [("program", ID)];
            let written = [
                rendered(&requests, &scope, "prepare-ports", &[it]),
                rendered(&requests, &scope, "set-ports", &program),
                rendered(&requests, &scope, "read-program", &program),
            ];
            assert_eq!(wanted, written);
        }
        api.begin_transfer(name, &names::part(&spec.tag)).unwrap();
        let wanted = recorder.take();
        let mut written = rendered(&requests, &create, "content", &[it]);
        let decoded = written.2[2].as_str().unwrap().replace("path=/", "path=%2F");
        written.2[2] = json!(decoded);
        assert_eq!(wanted, [written]);
    }
    api.rename(&names::part(&spec.tag), &names::whole(&spec.tag))
        .unwrap()
        .unwrap();
    same(&create, "name-whole", &[]);
    api.rename(&names::whole(&spec.tag), &own).unwrap().unwrap();
    same(&create, "name-own", &[]);
    api.remove(&names::part(&spec.tag)).unwrap().unwrap();
    same(&change, "delete-part", &[]);
    drop(context);

    for podman in [false, true] {
        let recorder = Recorder {
            podman,
            ..Recorder::default()
        };
        let networks = [Some(&spec.network), spec.public_network.as_ref()];
        for (network, earlier) in networks.into_iter().flatten().zip([false, true]) {
            let is_public = network.id.starts_with('0');
            for earlier in [earlier && !is_public, !is_public] {
                let context = Context {
                    api: Api::new(&recorder, version),
                    settings: settings.clone(),
                    installation: &node.installation,
                    has_earlier_name: Some(earlier).into(),
                };
                let word = match (is_public, earlier) {
                    (true, _) => "public",
                    (false, true) => "earlier",
                    (false, false) => "own",
                };
                let it = ("network", word);
                let operators = is_public && settings.public_network.is_some();
                for name in [own.as_str(), ID] {
                    network::reattach(&context, network, name).unwrap();
                    let mut wanted = recorder.take();
                    let arguments = [it, ("container", name)];
                    let mut written = vec![
                        rendered(&requests, &change, "disconnect", &arguments),
                        rendered(&requests, &change, "connect", &arguments),
                    ];
                    if !is_public {
                        let arguments = [("network", "earlier"), ("container", name)];
                        let other = rendered(&requests, &change, "disconnect", &arguments);
                        written.insert(1, other);
                    }
                    assert_eq!(std::mem::take(&mut wanted), written);
                }
                network::remove_if_unused(&context, network).unwrap();
                let sent = recorder.take();
                let list = rendered(&requests, &change, "list-members", &[it]);
                match operators {
                    true => assert!(sent.is_empty()),
                    // The engine lists a member.
                    false => assert_eq!(sent, [list]),
                }
                let name = names::network(&network::own_name(&context, network).unwrap());
                context.api.remove_network(&name).unwrap().unwrap();
                let delete = rendered(&requests, &change, "delete-network", &[it]);
                assert_eq!(recorder.take(), [delete]);
                if earlier || operators {
                    continue;
                }
                network::create(&context, network).unwrap();
                let ping = rendered(&requests, &change, "ping", &[]);
                let read = rendered(&requests, &change, "read-network", &[it]);
                let create = match podman {
                    true => "create-network-podman",
                    false => "create-network",
                };
                let create = rendered(&requests, &change, create, &[it]);
                assert_eq!(recorder.take(), [read, ping, create]);
            }
        }
    }
}
