//! Section 2.7: capacity.

use crate::{start, uuid};
use serde_json::{Value, json};
use wharf_tests::{Ports, Server, lasting_node, simulated_node, small, until};

#[test]
fn the_422_names_the_bottleneck_and_its_values_succeed() {
    let (server, api) = start();
    let body =
        json!({ "resource_type": "container", "n_vcpus": 17, "mem_gib": 40, "disk_size_gib": 10 });
    let detail = api.create(&body).unwrap().expect(422).unwrap()["detail"].clone();
    assert!(detail["message"].is_string());
    assert_eq!(detail["bottleneck"], json!(["n_vcpus", "mem_gib"]));
    assert_eq!(detail["requested"], json!({ "n_vcpus": 17, "mem_gib": 40 }));
    assert_eq!(
        detail["nearest_available"],
        json!({ "n_vcpus": 16, "mem_gib": 32 })
    );
    let mut again = body;
    for (field, value) in detail["nearest_available"].as_object().unwrap() {
        again[field] = value.clone();
    }
    api.create(&again).unwrap().expect(201).unwrap();
    server.finish().unwrap();
}

#[test]
fn the_422_is_about_the_node_with_the_least_shortfall() {
    let (small_node, large) = (
        simulated_node("a-small", "").replace("n_vcpus = 16", "n_vcpus = 4"),
        simulated_node("b-large", "").replace("mem_gib = 32", "mem_gib = 30"),
    );
    let ports = Ports::take().settings();
    let server = Server::start(&format!("{ports}{small_node}{large}")).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let mut body = small("container");
    body["n_vcpus"] = json!(8);
    body["mem_gib"] = json!(31);
    let detail = api.create(&body).unwrap().expect(422).unwrap()["detail"].clone();
    assert_eq!(detail["bottleneck"], json!(["mem_gib"]));
    assert_eq!(detail["nearest_available"], json!({ "mem_gib": 30 }));
    server.finish().unwrap();
}

#[test]
fn gpus_are_placed_on_nodes_that_have_them() {
    let gpus = "gpus = [{ model = \"H100\", count = 1 }]\nsettings";
    let node = simulated_node("one", "").replace("settings", gpus);
    let server = Server::start(&format!("{}{node}", Ports::take().settings())).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let gpu = |kind: &str, model: &str| {
        let mut body = small(kind);
        body["gpu_model"] = json!(model);
        body
    };
    let errors = api.create(&gpu("vm", "H100")).unwrap().expect(400).unwrap();
    assert!(errors["gpu_model"].is_array(), "{errors}");
    let errors = api
        .create(&gpu("container", "H999"))
        .unwrap()
        .expect(400)
        .unwrap();
    assert!(
        errors["gpu_model"][0].as_str().unwrap().contains("H100"),
        "{errors}"
    );
    let created = api
        .create(&gpu("container", "H100"))
        .unwrap()
        .expect(201)
        .unwrap();
    assert_eq!(
        (&created["n_gpus"], &created["gpu_model"]),
        (&json!(1), &json!("H100"))
    );
    assert_eq!(created["gpu_cost_hourly_usd"], 2.49);
    let detail = api
        .create(&gpu("container", "H100"))
        .unwrap()
        .expect(422)
        .unwrap();
    assert_eq!(detail["detail"]["bottleneck"], json!(["n_gpus"]));
    assert_eq!(
        detail["detail"]["nearest_available"],
        json!({ "n_gpus": 0 })
    );
    api.wait_for(uuid(&created), "running").unwrap();
    // The GPU of a stopped instance can go to another instance; then the first cannot start.
    api.act(uuid(&created), "stop")
        .unwrap()
        .expect(200)
        .unwrap();
    let second = api
        .create(&gpu("container", "H100"))
        .unwrap()
        .expect(201)
        .unwrap();
    assert_eq!(api.act(uuid(&created), "restart").unwrap().status, 422);
    api.delete(uuid(&second)).unwrap().expect(204).unwrap();
    server.finish().unwrap();
}

#[test]
fn a_gpu_that_left_the_configuration_is_not_given_out_by_a_restart() {
    let (node, _dir) = lasting_node("one", "").unwrap();
    let gpus = "gpus = [{ model = \"H100\", count = 1 }]\n";
    let with_gpu = node.replace("settings", &format!("{gpus}settings"));
    let mut server = Server::start(&format!("{}{with_gpu}", Ports::take().settings())).unwrap();
    let mut api = server.user("ann@example.com").unwrap();
    let mut body = small("container");
    body["gpu_model"] = json!("H100");
    let created = api.create(&body).unwrap().expect(201).unwrap();
    let id = uuid(&created);
    api.wait_for(id, "running").unwrap();
    api.act(id, "stop").unwrap().expect(200).unwrap();
    let configure = |server: &mut Server, from: &str, to: &str| {
        server.terminate().unwrap();
        let text = std::fs::read_to_string(server.config_path()).unwrap();
        assert!(text.contains(from));
        std::fs::write(server.config_path(), text.replace(from, to)).unwrap();
        server.run().unwrap();
    };
    configure(&mut server, gpus, "");
    api = server.again(&api);
    let refused = api.act(id, "restart").unwrap().expect(422).unwrap();
    assert_eq!(refused["detail"]["bottleneck"], json!(["n_gpus"]));
    assert_eq!(refused["detail"]["requested"], json!({ "n_gpus": 1 }));
    assert_eq!(
        refused["detail"]["nearest_available"],
        json!({ "n_gpus": 0 })
    );
    assert_eq!(api.instance(id).unwrap().body["state"], "exited");
    configure(&mut server, "settings", &format!("{gpus}settings"));
    api = server.again(&api);
    until("the node is back", || {
        Ok((api.act(id, "restart")?.status == 200).then_some(()))
    })
    .unwrap();
    server.finish().unwrap();
}

#[test]
fn instances_run_on_nodes_of_their_cpu_tier() {
    let tier = "cpu_tiers = [\"high-performance\"]\nsettings";
    let node = simulated_node("one", "").replace("settings", tier);
    let server = Server::start(&format!("{}{node}", Ports::take().settings())).unwrap();
    let api = server.user("ann@example.com").unwrap();
    assert_eq!(api.create(&small("container")).unwrap().status, 422);
    let mut body = small("container");
    body["cpu_tier"] = json!("high-performance");
    let created = api.create(&body).unwrap().expect(201).unwrap();
    assert_eq!(created["cpu_tier"], "high-performance");
    server.finish().unwrap();
}

#[test]
fn exhausted_public_addresses_are_a_422() {
    let node = simulated_node("one", "").replace("203.0.113.0/28", "203.0.113.0/30");
    let server = Server::start(&format!("{}{node}", Ports::take().settings())).unwrap();
    let api = server.user("ann@example.com").unwrap();
    // Four addresses without network, broadcast and router.
    api.create(&small("vm")).unwrap().expect(201).unwrap();
    let detail = api.create(&small("vm")).unwrap().expect(422).unwrap();
    assert_eq!(detail["detail"]["bottleneck"], json!(["public_ipv4"]));
    server.finish().unwrap();
}

#[test]
fn concurrent_creates_share_no_port_and_no_address() {
    let (server, api) = start();
    let made: Vec<Value> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..12)
            .map(|_| scope.spawn(|| api.small_container()))
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap().unwrap())
            .collect()
    });
    for field in [
        "uuid",
        "name",
        "wan_ssh_port",
        "lan_ipv4",
        "original_service_password",
    ] {
        let distinct: std::collections::BTreeSet<_> =
            made.iter().map(|i| i[field].to_string()).collect();
        assert_eq!(distinct.len(), made.len(), "{field}");
    }
    for instance in &made {
        api.wait_for(uuid(instance), "running").unwrap();
    }
    server.finish().unwrap();
}

#[test]
fn overcommitted_vcpus_are_shared_and_none_has_more_than_the_node() {
    let node = simulated_node("one", "").replace(
        "capacity = { n_vcpus = 16",
        "cpu_overcommit = 2.5\ncapacity = { n_vcpus = 2",
    );
    let server = Server::start(&format!("{}{node}", Ports::take().settings())).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let wanted = |n_vcpus: u32| {
        let mut body = small("container");
        body["n_vcpus"] = json!(n_vcpus);
        body
    };
    let refused = |n_vcpus: u32| {
        let answer = api.create(&wanted(n_vcpus)).unwrap().expect(422).unwrap();
        answer["detail"]["nearest_available"].clone()
    };
    let free = || {
        api.get("/api/offer/").unwrap().expect(200).unwrap()["largest_free"][0]["n_vcpus"].clone()
    };
    assert_eq!((refused(3), free()), (json!({ "n_vcpus": 2 }), json!(2)));
    let first = api.create(&wanted(2)).unwrap().expect(201).unwrap();
    api.create(&wanted(2)).unwrap().expect(201).unwrap();
    assert_eq!((refused(2), free()), (json!({ "n_vcpus": 1 }), json!(1)));
    api.wait_for(uuid(&first), "running").unwrap();
    // A larger size of a running one is bounded by the node too.
    let path = format!("/api/instance/{}/", uuid(&first));
    let larger = api.send("PATCH", &path, &json!({ "n_vcpus": 3 })).unwrap();
    let larger = larger.expect(422).unwrap();
    assert_eq!(
        larger["detail"]["nearest_available"],
        json!({ "n_vcpus": 2 })
    );
    api.create(&wanted(1)).unwrap().expect(201).unwrap();
    assert_eq!(refused(1), json!({ "n_vcpus": 0 }));
    let list = server.cli(&["node", "list"]).unwrap();
    assert!(list.contains(" 5/5 "), "{list}");
    server.finish().unwrap();
}
