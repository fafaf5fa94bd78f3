//! Flavors, the offer and estimates.

use crate::{Expected, start_on, start_under, with};
use serde_json::{Value, json};
use wharf_tests::{Api, simulated_node, small};

fn offer(api: &Api) -> Value {
    api.get("/api/offer/").is(200)
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
fn the_offer_has_the_rates_of_new_instances_and_the_free_capacity() {
    let gpus = "gpus = [{ model = \"H100\", count = 1 }]\nsettings";
    let node = simulated_node("one", "").replace("settings", gpus);
    let retired = simulated_node("old", "").replace("driver =", "retired = true\ndriver =");
    let rates = "[rates.general-purpose]\nvcpu = 0.03\n";
    let (_server, api) = start_on(rates, &format!("{node}{retired}"));
    let offered = offer(&api);
    let tier = &offered["cpu_tiers"][0];
    assert_eq!(tier["name"], "general-purpose");
    assert_eq!(tier["vcpu_cost_hourly_usd"], 0.03);
    assert_eq!(
        offered["gpu_models"],
        json!([{ "name": "H100", "gpu_cost_hourly_usd": 2.49 }])
    );
    let estimated = estimate(&api, &small("container")).is(200);
    assert_eq!(estimated["hourly_usd"], json!(0.0354));
    assert_eq!(estimated["stopped_hourly_usd"], json!(0.0014));
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
}

#[test]
fn an_estimate_beyond_the_quota_says_so() {
    let quota = "[quota]\nn_vcpus = 2\n";
    let (_server, api) = start_under(quota, "");
    let body = with("container", json!({ "n_vcpus": 3 }));
    let estimated = estimate(&api, &body).is(200);
    let shortage = &estimated["shortage"];
    assert_eq!(shortage["bottleneck"], json!(["n_vcpus"]), "{shortage}");
    assert!(shortage["message"].as_str().unwrap().contains("quota"));
    let refused = api.create(&body).is(422);
    assert_eq!(*shortage, refused["detail"]);
}
