//! The configuration of nodes in placement: CPU tiers, GPUs, overcommitted vCPUs, and several nodes.

use crate::{Expected, edit, start_on, until_true, uuid, with};
use serde_json::json;
use wharf_tests::{Server, lasting_node, simulated_node, small};

#[test]
fn the_422_is_about_the_node_with_the_least_shortfall() {
    let (small_node, large) = (
        simulated_node("a-small", "").replace("n_vcpus = 16", "n_vcpus = 4"),
        simulated_node("b-large", "").replace("mem_gib = 32", "mem_gib = 30"),
    );
    let (_server, api) = start_on("", &format!("{small_node}{large}"));
    let body = with("container", json!({ "n_vcpus": 8, "mem_gib": 31 }));
    let detail = api.create(&body).is(422)["detail"].clone();
    assert_eq!(detail["bottleneck"], json!(["mem_gib"]));
    assert_eq!(detail["nearest_available"], json!({ "mem_gib": 30 }));
}

#[test]
fn a_gpu_that_left_the_configuration_is_not_given_out_by_a_restart() {
    let (node, _dir) = lasting_node("one", "").unwrap();
    let gpus = "gpus = [{ model = \"H100\", count = 1 }]\n";
    let with_gpu = node.replace("settings", &format!("{gpus}settings"));
    let (mut server, mut api) = start_on("", &with_gpu);
    let body = with("container", json!({ "gpu_model": "H100" }));
    let created = api.create(&body).is(201);
    let id = uuid(&created);
    api.wait_for(id, "running").unwrap();
    api.act(id, "stop").is(200);
    let configure = |server: &mut Server, from: &str, to: &str| {
        server.terminate().unwrap();
        edit(server, from, to);
        server.run().unwrap();
    };
    configure(&mut server, gpus, "");
    api = server.again(&api);
    let refused = api.act(id, "restart").is(422);
    assert_eq!(refused["detail"]["bottleneck"], json!(["n_gpus"]));
    assert_eq!(refused["detail"]["requested"], json!({ "n_gpus": 1 }));
    assert_eq!(
        refused["detail"]["nearest_available"],
        json!({ "n_gpus": 0 })
    );
    assert_eq!(api.instance(id).unwrap().body["state"], "exited");
    configure(&mut server, "settings", &format!("{gpus}settings"));
    api = server.again(&api);
    until_true("the node is back", || {
        api.act(id, "restart").unwrap().status == 200
    });
}

#[test]
fn instances_run_on_nodes_of_their_cpu_tier() {
    let tier = "cpu_tiers = [\"high-performance\"]\nsettings";
    let (_server, api) = start_on("", &simulated_node("one", "").replace("settings", tier));
    assert_eq!(api.create(&small("container")).unwrap().status, 422);
    let body = with("container", json!({ "cpu_tier": "high-performance" }));
    let created = api.create(&body).is(201);
    assert_eq!(created["cpu_tier"], "high-performance");
}

#[test]
fn overcommitted_vcpus_are_shared_and_none_has_more_than_the_node() {
    let (server, api) = start_on(
        "",
        &simulated_node("one", "").replace(
            "capacity = { n_vcpus = 16",
            "cpu_overcommit = 2.5\ncapacity = { n_vcpus = 2",
        ),
    );
    let wanted = |n_vcpus: u32| with("container", json!({ "n_vcpus": n_vcpus }));
    let refused = |n_vcpus: u32| {
        let answer = api.create(&wanted(n_vcpus)).is(422);
        answer["detail"]["nearest_available"].clone()
    };
    let free = || api.get("/api/offer/").is(200)["largest_free"][0]["n_vcpus"].clone();
    assert_eq!((refused(3), free()), (json!({ "n_vcpus": 2 }), json!(2)));
    let first = api.create(&wanted(2)).is(201);
    api.create(&wanted(2)).is(201);
    assert_eq!((refused(2), free()), (json!({ "n_vcpus": 1 }), json!(1)));
    api.wait_for(uuid(&first), "running").unwrap();
    // A larger size of a running one is bounded by the node too.
    let larger = api.patch(uuid(&first), &json!({ "n_vcpus": 3 })).is(422);
    assert_eq!(
        larger["detail"]["nearest_available"],
        json!({ "n_vcpus": 2 })
    );
    api.create(&wanted(1)).is(201);
    assert_eq!(refused(1), json!({ "n_vcpus": 0 }));
    let list = server.cli(&["node", "list"]).unwrap();
    assert!(list.contains(" 5/5 "), "{list}");
}
