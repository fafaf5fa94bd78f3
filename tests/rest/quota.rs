//! Section 8: quotas.

use crate::{Expected, has, kill, running, until_true, until_used, used, uuid, with};
use serde_json::{Value, json};
use wharf_tests::{Api, Ports, Server, lasting_node, simulated_node, small};

const ANN: &str = "ann@example.com";

/// Starts a server with this `[quota]`.
fn start(quota: &str) -> (Server, Api) {
    start_on(quota, &simulated_node("one", ""))
}

fn start_on(quota: &str, node: &str) -> (Server, Api) {
    crate::start_on(&format!("[quota]\n{quota}\n"), node)
}

fn of(kind: &str, n_vcpus: u32, mem_gib: u32, disk_size_gib: u32) -> Value {
    json!({
        "resource_type": kind,
        "n_vcpus": n_vcpus,
        "mem_gib": mem_gib,
        "disk_size_gib": disk_size_gib,
    })
}

/// Checks a refusal by quota: field, requested and nearest available amount.
fn assert_over(answer: wharf_tests::Answer, fields: &[(&str, u64, u64)]) {
    let detail = answer.is(422)["detail"].clone();
    let names: Vec<&str> = fields.iter().map(|row| row.0).collect();
    assert_eq!(detail["bottleneck"], json!(names), "{detail}");
    has(&detail["message"], "quota");
    for (field, requested, available) in fields {
        assert_eq!(detail["requested"][field], *requested, "{detail}");
        assert_eq!(detail["nearest_available"][field], *available, "{detail}");
    }
}

#[test]
fn the_default_leaves_a_tenth_of_the_configured_ports_to_others() {
    let Ports { from, to } = Ports::take();
    let ports = format!(
        "[ssh_ports]\nfrom = {from}\nto = {}\n[web]\nfrom = {}\nto = {to}\n",
        from + 9,
        from + 10,
    );
    let server = crate::serve(&format!("{ports}{}", simulated_node("one", "")));
    let ann = server.user(ANN).unwrap();
    for _ in 0..9 {
        ann.small_container().unwrap();
    }
    let quota = ann.get("/api/quota/").is(200);
    assert_eq!(quota["n_ports"], json!({ "used": 9, "limit": 9 }));
    let over = ann.create(&small("container")).unwrap();
    assert_over(over, &[("n_ports", 1, 0)]);
    let bob = server.user("bob@example.com").unwrap();
    bob.small_container().unwrap();
}

#[test]
fn a_limit_on_ports_leaves_a_tenth_of_the_web_ports_to_others() {
    let Ports { from, to } = Ports::take();
    let ports = format!(
        "[ssh_ports]\nfrom = {from}\nto = {}\n[web]\nfrom = {}\nto = {to}\n",
        to - 10,
        to - 9,
    );
    let server = crate::serve(&format!("{ports}{}", simulated_node("one", "")));
    let (ann, bob) = (
        server.user(ANN).unwrap(),
        server.user("bob@example.com").unwrap(),
    );
    let page = with(
        "container",
        json!({ "flavor": "marimo", "mem_gib": 2, "disk_size_gib": 20 }),
    );
    for _ in 0..9 {
        ann.create(&page).is(201);
    }
    assert_over(ann.create(&page).unwrap(), &[("n_ports", 2, 1)]);
    ann.small_container().unwrap();
    bob.create(&page).is(201);
    server
        .cli(&["user", "limit", ANN, "--ports", "unlimited"])
        .unwrap();
    let full = ann.create(&page).is(422)["detail"].clone();
    assert_eq!(full["bottleneck"], json!(["webapp_url"]), "{full}");
}

#[test]
fn each_quantity_is_limited_on_create() {
    let gpus = "gpus = [{ model = \"H100\", count = 4 }]\nsettings";
    let node = simulated_node("one", "").replace("settings", gpus);
    let gpu = with("container", json!({ "gpu_model": "H100" }));
    let (server, other) = crate::start_on("", &node);
    for (option, limit, first, second, over) in [
        (
            "--instances",
            1,
            small("vm"),
            small("container"),
            ("n_instances", 1, 0),
        ),
        (
            "--vcpus",
            5,
            of("container", 3, 1, 10),
            of("vm", 3, 1, 10),
            ("n_vcpus", 3, 2),
        ),
        (
            "--mem-gib",
            5,
            of("vm", 1, 3, 10),
            of("container", 1, 3, 10),
            ("mem_gib", 3, 2),
        ),
        (
            "--disk-gib",
            50,
            of("container", 1, 1, 30),
            of("container", 1, 1, 30),
            ("disk_size_gib", 30, 20),
        ),
        ("--gpus", 1, gpu.clone(), gpu.clone(), ("n_gpus", 1, 0)),
        // The SSH port, and the open port 22 of a VM.
        (
            "--ports",
            2,
            small("vm"),
            small("container"),
            ("n_ports", 1, 0),
        ),
    ] {
        let email = format!("user{option}@example.com");
        let api = server.user(&email).unwrap();
        server
            .cli(&["user", "limit", &email, option, &limit.to_string()])
            .unwrap();
        api.create(&first).is(201);
        assert_over(api.create(&second).unwrap(), &[over]);
        // The values of `nearest_available` succeed.
        let mut nearest = second.clone();
        if over.2 > 0 {
            nearest[over.0] = json!(over.2);
            api.create(&nearest).is(201);
        }
        if over.0 == "n_gpus" {
            api.small_container().unwrap();
        }
        let theirs = other.create(&second).is(201);
        for (api, made) in [(&other, vec![theirs]), (&api, api.list().unwrap())] {
            made.iter()
                .for_each(|one| drop(api.delete(uuid(one)).is(204)));
        }
        until_true("the node is empty", || {
            server.cli(&["node", "list"]).unwrap().contains(" 0/16 ")
        });
    }
}

#[test]
fn nearest_available_is_within_quota_and_node() {
    let (_server, api) = start("n_vcpus = 20\nmem_gib = 20");
    let answer = api.create(&of("container", 30, 25, 600)).unwrap();
    // The node has 16 vCPUs and 500 GiB of disk.
    let over = [
        ("n_vcpus", 30, 16),
        ("mem_gib", 25, 20),
        ("disk_size_gib", 600, 500),
    ];
    assert_over(answer, &over);
    api.create(&of("container", 16, 20, 500)).is(201);
}

#[test]
fn concurrent_creates_stop_exactly_at_the_limit() {
    let (_server, api) = start("n_instances = 5\nn_ports = 100");
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let create = || api.create(&small("container")).unwrap().status;
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(create)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let made = statuses.iter().filter(|status| **status == 201).count();
    let refused = statuses.iter().filter(|status| **status == 422).count();
    assert_eq!((made, refused), (5, 11), "{statuses:?}");
    assert_eq!(used(&api, "n_instances"), 5);
}

#[test]
fn a_deleted_instance_counts_until_its_node_was_seen_without_it() {
    let (mut server, api) = start_on(
        "n_instances = 1",
        &simulated_node("one", "latency_ms = 1000"),
    );
    let made = running(&api);
    api.delete(uuid(&made)).is(204);
    let answer = api.create(&small("container")).unwrap();
    assert_over(answer, &[("n_instances", 1, 0)]);
    until_used(&api, "n_instances", 0);
    for field in ["n_vcpus", "mem_gib", "disk_size_gib", "n_ports"] {
        assert_eq!(used(&api, field), 0, "{field}");
    }
    api.small_container().unwrap();
    // Usage is derived again at a start.
    let api = kill(&mut server, &api);
    assert_eq!(used(&api, "n_instances"), 1);
}

#[test]
fn a_stopped_instance_holds_its_disk_and_its_restart_claims_compute_again() {
    let (_server, api) = start("n_vcpus = 4");
    let first = api.create(&of("container", 3, 2, 20)).is(201);
    api.wait_for(uuid(&first), "running").unwrap();
    api.act(uuid(&first), "stop").is(200);
    assert_eq!((used(&api, "n_vcpus"), used(&api, "mem_gib")), (0, 0));
    assert_eq!(used(&api, "disk_size_gib"), 20);
    let second = api.create(&of("container", 2, 1, 10)).is(201);
    assert_over(
        api.act(uuid(&first), "restart").unwrap(),
        &[("n_vcpus", 3, 2)],
    );
    let shown = api.instance(uuid(&first)).is(200);
    assert_eq!(shown["state"], "exited");
    api.delete(uuid(&second)).is(204);
    until_true("the quota allows the restart", || {
        api.act(uuid(&first), "restart").unwrap().status == 200
    });
}

#[test]
fn resizes_and_ports_are_limited_and_survive_a_restart_of_the_server() {
    let (node, _engine) = lasting_node("one", "").unwrap();
    let (mut server, api) = start_on("mem_gib = 8\nn_ports = 4", &node);
    let container = api.create(&of("container", 1, 4, 10)).is(201);
    let vm = api.create(&of("vm", 1, 1, 10)).is(201);
    for made in [&container, &vm] {
        api.wait_for(uuid(made), "running").unwrap();
    }
    let resize = |api: &Api, mem: u32| {
        api.patch(uuid(&container), &json!({ "mem_gib": mem }))
            .unwrap()
    };
    assert_over(resize(&api, 8), &[("mem_gib", 8, 7)]);
    resize(&api, 7).is(200);
    let add = |api: &Api, port: u32| {
        let path = format!("/api/instance/{}/add-port/", uuid(&vm));
        api.send("POST", &path, &json!({ "port": port })).unwrap()
    };
    add(&api, 80).is(200);
    assert_over(add(&api, 81), &[("n_ports", 1, 0)]);
    // Opening an open port changes nothing.
    add(&api, 80).is(200);
    let api = kill(&mut server, &api);
    assert_eq!((used(&api, "n_ports"), used(&api, "mem_gib")), (4, 8));
    assert_over(add(&api, 81), &[("n_ports", 1, 0)]);
    api.delete(uuid(&vm)).is(204);
    until_used(&api, "n_ports", 1);
}

#[test]
fn a_limit_below_the_usage_takes_nothing_away_and_prevents_growth() {
    let (mut server, api) = start("n_vcpus = 8");
    let made = api.create(&of("container", 4, 4, 10)).is(201);
    api.wait_for(uuid(&made), "running").unwrap();
    let limited = server
        .cli(&["user", "limit", ANN, "--vcpus", "2", "--instances", "1"])
        .unwrap();
    assert!(limited.contains("n_vcpus 4 of 2"), "{limited}");
    assert_over(
        api.create(&small("container")).unwrap(),
        &[("n_instances", 1, 0), ("n_vcpus", 1, 0)],
    );
    let resize = |n: u32| api.patch(uuid(&made), &json!({ "n_vcpus": n })).unwrap();
    assert_over(resize(5), &[("n_vcpus", 5, 4)]);
    api.patch(uuid(&made), &json!({ "mem_gib": 5 })).is(200);
    resize(3).is(200);
    let shown = api.instance(uuid(&made)).is(200);
    assert_eq!(shown["state"], "running");
    let quota = api.get("/api/quota/").is(200);
    assert_eq!(quota["n_vcpus"], json!({ "used": 3, "limit": 2 }));
    assert_eq!(quota["mem_gib"], json!({ "used": 5, "limit": null }));
    // Other options keep their limits, with and without a running server.
    server.terminate().unwrap();
    let changed = [
        "user",
        "limit",
        ANN,
        "--instances",
        "default",
        "--vcpus",
        "unlimited",
    ];
    server.cli(&changed).unwrap();
    let list = server.cli(&["user", "list"]).unwrap();
    assert!(list.starts_with(ANN), "{list}");
    has(&list, "n_instances 1 of unlimited\tn_vcpus 3 of unlimited");
    for (args, named) in [
        (
            ["user", "limit", "nobody@example.com", "--ports", "1"],
            "no user",
        ),
        (["user", "limit", ANN, "--ports", "-1"], "--ports"),
        (
            ["user", "limit", ANN, "--gpus", "some"],
            "`unlimited` or `default`",
        ),
    ] {
        let error = server.cli(&args).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn a_wrong_quota_is_refused_by_name() {
    for (line, named) in [
        ("n_vcpus = -1", "n_vcpus"),
        ("n_ports = \"many\"", "unlimited"),
        ("vcpus = 1", "vcpus"),
    ] {
        let settings = format!("[quota]\n{line}\n{}", simulated_node("one", ""));
        has(Server::refused(&settings).unwrap(), named);
    }
}
