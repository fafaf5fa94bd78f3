//! Flavors, the offer and estimates.

use crate::{start, start_with};
use serde_json::{Value, json};
use wharf_tests::{Api, Ports, Server, simulated_node, small};

fn offer(api: &Api) -> Value {
    api.get("/api/offer/").unwrap().expect(200).unwrap()
}

fn estimate(api: &Api, body: &Value) -> wharf_tests::Answer {
    api.send("POST", "/api/estimate/", body).unwrap()
}

/// The free capacity for containers of the usual tier.
fn free(api: &Api) -> Value {
    let offer = offer(api);
    let all = offer["largest_free"].as_array().unwrap().clone();
    let mut usual = all.into_iter().filter(|free| {
        free["cpu_tier"] == "general-purpose" && free["resource_type"] == "container"
    });
    usual.next().unwrap()
}

#[test]
fn flavors_are_those_that_create_takes() {
    let (server, api) = start();
    let flavors = api.get("/api/flavor/").unwrap().expect(200).unwrap();
    let flavors = flavors.as_array().unwrap();
    assert!(flavors.iter().any(|flavor| flavor["name"] == "base"));
    for flavor in flavors {
        let mut body = flavor["minimum"].clone();
        body["flavor"] = flavor["name"].clone();
        for kind in ["vm", "container"] {
            body["resource_type"] = json!(kind);
            let offered = flavor["resource_types"].as_array().unwrap();
            let answer = estimate(&api, &body);
            match offered.contains(&json!(kind)) {
                true => assert_eq!(answer.status, 200, "{flavor}: {answer:?}"),
                false => assert!(answer.body["flavor"].is_array(), "{flavor}: {answer:?}"),
            }
        }
        body["resource_type"] = flavor["resource_types"][0].clone();
        body["mem_gib"] = json!(body["mem_gib"].as_u64().unwrap() - 1);
        let answer = estimate(&api, &body);
        assert!(answer.body["mem_gib"].is_array(), "{flavor}: {answer:?}");
    }
    server.finish().unwrap();
}

#[test]
fn the_offer_has_the_rates_of_new_instances_and_the_free_capacity() {
    let gpus = "gpus = [{ model = \"H100\", count = 1 }]\nsettings";
    let node = simulated_node("one", "").replace("settings", gpus);
    let retired = simulated_node("old", "").replace("driver =", "retired = true\ndriver =");
    let rates = "[rates.general-purpose]\nvcpu = 0.03\n";
    let settings = format!("{}{rates}{node}{retired}", Ports::take().settings());
    let server = Server::start(&settings).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let offered = offer(&api);
    let tier = &offered["cpu_tiers"][0];
    assert_eq!(
        (&tier["name"], &tier["vcpu_cost_hourly_usd"]),
        (&json!("general-purpose"), &json!(0.03))
    );
    assert_eq!(
        offered["gpu_models"],
        json!([{ "name": "H100", "gpu_cost_hourly_usd": 2.49 }])
    );
    let before = free(&api);
    let created = api.small_container().unwrap();
    let mut expected = before.clone();
    for field in ["n_vcpus", "mem_gib", "disk_size_gib"] {
        let taken = created[field].as_f64().unwrap();
        expected[field] = json!(before[field].as_f64().unwrap() - taken);
        assert_eq!(
            free(&api)[field].as_f64(),
            expected[field].as_f64(),
            "{field}"
        );
    }
    server.finish().unwrap();
}

#[test]
fn an_estimate_has_all_field_errors_of_create() {
    let (server, api) = start();
    let taken = api.small_container().unwrap();
    for body in [
        json!({}),
        json!({ "resource_type": "pod", "n_vcpus": 0, "colour": "blue", "name": "-" }),
        json!({
            "resource_type": "vm", "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
            "flavor": "marimo", "gpu_model": "H100", "public_key": "x", "name": taken["name"],
            "s3_endpoint_url": "https://s3.example.org",
        }),
        json!([]),
    ] {
        let (estimated, created) = (estimate(&api, &body), api.create(&body).unwrap());
        assert_eq!(estimated.status, 400, "{body}: {estimated:?}");
        assert_eq!(estimated.body, created.body, "{body}");
    }
    server.finish().unwrap();
}

#[test]
fn an_estimate_decides_as_create_does_and_changes_nothing() {
    let (server, api) = start();
    let free_before = free(&api);
    let audit = || api.get("/api/audit/").unwrap().expect(200).unwrap();
    let audit_before = audit();
    let mut body = small("container");
    for field in ["n_vcpus", "mem_gib", "disk_size_gib"] {
        body[field] = free_before[field].clone();
    }
    body["name"] = json!("the-largest");
    let estimated = estimate(&api, &body).expect(200).unwrap();
    assert_eq!(
        (&estimated["fits"], &estimated["shortage"]),
        (&json!(true), &Value::Null)
    );
    // Nothing was created, claimed or reserved, and the name is free.
    assert!(api.list().unwrap().is_empty());
    assert_eq!(free(&api), free_before);
    assert_eq!(audit(), audit_before);
    let created = api.create(&body).unwrap().expect(201).unwrap();
    for (rate, field) in [
        ("vcpu_cost_hourly_usd", "n_vcpus"),
        ("ram_cost_hourly_usd", "mem_gib"),
        ("storage_cost_hourly_usd", "disk_size_gib"),
        ("gpu_cost_hourly_usd", "n_gpus"),
    ] {
        assert_eq!(estimated[rate], created[rate], "{field}");
    }
    // The node is full now: an estimate has the shortage that create is refused for.
    body["name"] = json!("the-second");
    let estimated = estimate(&api, &body).expect(200).unwrap();
    let refused = api.create(&body).unwrap().expect(422).unwrap();
    assert_eq!(estimated["fits"], json!(false));
    assert_eq!(estimated["shortage"], refused["detail"]);
    server.finish().unwrap();
}

#[test]
fn an_estimate_beyond_the_quota_says_so() {
    let node = simulated_node("one", "");
    let quota = "[quota]\nn_vcpus = 2\n";
    let server = Server::start(&format!("{quota}{}{node}", Ports::take().settings())).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let mut body = small("container");
    body["n_vcpus"] = json!(3);
    let estimated = estimate(&api, &body).expect(200).unwrap();
    let shortage = &estimated["shortage"];
    assert_eq!(shortage["bottleneck"], json!(["n_vcpus"]), "{shortage}");
    assert!(shortage["message"].as_str().unwrap().contains("quota"));
    let refused = api.create(&body).unwrap().expect(422).unwrap();
    assert_eq!(*shortage, refused["detail"]);
    server.finish().unwrap();
}

#[test]
fn the_price_is_exact_for_running_and_stopped() {
    let (server, api) = start_with("");
    let estimated = estimate(&api, &small("container")).expect(200).unwrap();
    assert_eq!(estimated["hourly_usd"], json!(0.0174));
    assert_eq!(estimated["stopped_hourly_usd"], json!(0.0014));
    let reader = server
        .cli(&["key", "new", "ann@example.com", "--scope", "read"])
        .unwrap();
    let reader = Api::new(server.base_url(), reader.trim());
    assert_eq!(reader.get("/api/flavor/").unwrap().status, 200);
    assert_eq!(estimate(&reader, &small("container")).status, 403);
    server.finish().unwrap();
}
