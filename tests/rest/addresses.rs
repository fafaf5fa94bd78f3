//! Addresses, ports and login hosts of instances, and their exhaustion.

use crate::{Expected, start, start_on, stores_none};
use serde_json::json;
use wharf_tests::{Api, Ports, simulated_node, small};

#[test]
fn a_node_can_have_its_own_login_host() {
    let own = "ssh_host = \"login.example.org\"\nprobe_host = \"127.0.0.1\"\nsettings";
    let (_server, api) = start_on("", &simulated_node("one", "").replace("settings", own));
    let created = api.small_container().unwrap();
    let expected = format!("ssh -p {} user@login.example.org", created["wan_ssh_port"]);
    assert_eq!(created["ssh_command"], expected);
}

#[test]
fn ipv6_hosts_are_written_as_urls_and_openssh_have_them() {
    let own = "ssh_host = \"[2001:DB8::2]\"\nprobe_host = \"::1\"\nsettings";
    for (spelling, ssh) in [("::1", "[2001:db8::1]"), ("[::1]", "2001:db8::1")] {
        let Ports { from, to } = Ports::take();
        let (middle, next) = (from + 10, from + 11);
        let top = format!(
            "ssh_host = \"{ssh}\"\n[ssh_ports]\nfrom = {from}\nto = {middle}\n\
             [web]\nhost = \"{spelling}\"\nfrom = {next}\nto = {to}\n"
        );
        let second = simulated_node("two", "")
            .replace("settings", own)
            .replace("203.0.113.0", "203.0.113.16")
            .replace("n_vcpus = 16", "n_vcpus = 20");
        let server = crate::serve(&format!("{top}{}{second}", simulated_node("one", "")));
        let api = server.user("ann@example.com").unwrap();
        let body = json!({
            "resource_type": "container", "n_vcpus": 2, "mem_gib": 4, "disk_size_gib": 20,
            "flavor": "jupyterlab",
        });
        let page = api.create(&body).is(201);
        let url = page["webapp_url"].as_str().unwrap();
        assert!(url.starts_with("http://[::1]:"), "{url}");
        let hosts: std::collections::BTreeSet<_> = (0..8)
            .map(|_| {
                let created = api.small_container().unwrap();
                let command = created["ssh_command"].as_str().unwrap();
                command.split_once('@').unwrap().1.to_owned()
            })
            .collect();
        assert!(hosts.contains("2001:db8::2"), "{hosts:?}");
        assert!(
            hosts.contains("2001:db8::1") && hosts.len() == 2,
            "{hosts:?}"
        );
    }
}

#[test]
fn exhausted_login_ports_are_a_422() {
    let Ports { from, to } = Ports::take();
    let ports = format!(
        "[ssh_ports]\nfrom = {from}\nto = {from}\n[web]\nfrom = {}\nto = {to}\n",
        from + 1
    );
    let node = simulated_node("one", "");
    let server = crate::serve(&format!("{ports}{node}"));
    let only = server.user("ann@example.com").unwrap().small_container();
    assert_eq!(only.unwrap()["wan_ssh_port"], from);
    // Ann has her whole quota.
    let bob = server.user("bob@example.com").unwrap();
    let detail = bob.create(&small("container")).is(422);
    assert_eq!(detail["detail"]["bottleneck"], json!(["wan_ssh_port"]));
    assert_eq!(
        detail["detail"]["nearest_available"],
        json!({ "wan_ssh_port": 0 })
    );
}

#[test]
fn exhausted_private_addresses_are_a_422() {
    let lan = "lan_cidr = \"10.90.0.0/29\"\nlan_subnet_prefix = 29\nsettings";
    let (server, api) = start_on("", &simulated_node("one", "").replace("settings", lan));
    // Eight addresses without network, broadcast and router.
    for _ in 0..5 {
        api.small_container().unwrap();
    }
    let detail = api.create(&small("container")).is(422);
    assert_eq!(detail["detail"]["bottleneck"], json!(["lan_ipv4"]));
    // The only subnet is ann's, so another owner gets no address.
    let bob = server.user("bob@example.com").unwrap();
    let detail = bob.create(&small("container")).is(422);
    assert_eq!(detail["detail"]["bottleneck"], json!(["lan_ipv4"]));
}

#[test]
fn each_owner_has_a_subnet() {
    let (server, ann) = start();
    let bob = server.user("bob@example.com").unwrap();
    let subnet = |api: &Api| {
        let address = api.small_container().unwrap()["lan_ipv4"].clone();
        let (subnet, _) = address.as_str().unwrap().rsplit_once('.').unwrap();
        subnet.to_owned()
    };
    let (first, second) = (subnet(&ann), subnet(&bob));
    assert_eq!(first, subnet(&ann));
    assert_ne!(first, second);
}

#[test]
fn no_log_and_no_file_contains_a_secret() {
    let (server, api) = start();
    let mut body = small("container");
    let secret = "sk-ai-0123456789-not-to-be-seen";
    body["ai_provider_api_key"] = json!(secret);
    let s3 = ["id-of-the-s3-key", "very-secret-value"];
    for (field, value) in [
        ("flavor", "marimo"),
        ("s3_endpoint_url", "https://s3.example.com"),
        ("s3_access_key_id", s3[0]),
        ("s3_secret_access_key", s3[1]),
        ("s3_prefill_bucket", "bucket/path"),
    ] {
        body[field] = json!(value);
    }
    (body["mem_gib"], body["disk_size_gib"]) = (json!(2), json!(20));
    let created = api.create(&body).is(201);
    assert!(!created.to_string().contains(secret));
    api.wait_for(crate::uuid(&created), "running").unwrap();
    let password = created["original_service_password"].as_str().unwrap();
    let once = "a-key-that-is-easy-to-find";
    let headers = [("Idempotency-Key", once)];
    let again = api.send_with("POST", "/api/instance/", &headers, &small("container"));
    let again = again.is(201);
    let other = again["original_service_password"].as_str().unwrap();
    let made = api
        .send("POST", "/api/key/", &json!({ "name": "ci" }))
        .is(201);
    let key = made["key"].as_str().unwrap();
    assert_eq!(Api::new(server.base_url(), key).list().unwrap().len(), 2);
    let hidden = [secret, password, other, once, api.key(), key, s3[0], s3[1]];
    stores_none(&server, &hidden);
}
