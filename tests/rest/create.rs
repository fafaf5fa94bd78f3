//! Section 4.3: create.

use crate::{start, start_with, uuid};
use serde_json::{Value, json};
use wharf_tests::{KeyPair, small};

fn with(mut body: Value, fields: Value) -> Value {
    for (field, value) in fields.as_object().unwrap() {
        body[field] = value.clone();
    }
    body
}

#[test]
fn the_answer_is_201_with_every_field_of_the_instance_object() {
    let (server, api) = start_with("ready_after_ms = 500");
    let created = api
        .create(&small("container"))
        .unwrap()
        .expect(201)
        .unwrap();
    let fields: Vec<&str> = created
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut expected = vec![
        "uuid",
        "name",
        "lan_ipv4",
        "state",
        "n_vcpus",
        "mem_gib",
        "disk_size_gib",
        "n_gpus",
        "gpu_model",
        "wan_ssh_port",
        "resource_type",
        "flavor",
        "owner_email",
        "public_ipv4",
        "original_service_password",
        "created_at",
        "vcpu_cost_hourly_usd",
        "ram_cost_hourly_usd",
        "storage_cost_hourly_usd",
        "gpu_cost_hourly_usd",
        "cpu_tier",
        "ssh_command",
        "webapp_url",
        "wan_ports",
    ];
    expected.sort_unstable();
    let mut sorted = fields.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    assert_eq!(created["state"], "provisioning");
    assert_eq!(created["owner_email"], "ann@example.com");
    assert_eq!(created["mem_gib"].to_string(), "1.0");
    assert_eq!(created["n_gpus"], 0);
    assert_eq!(created["gpu_model"], Value::Null);
    assert_eq!(created["public_ipv4"], Value::Null);
    assert_eq!(created["flavor"], "base");
    assert_eq!(created["cpu_tier"], "general-purpose");
    assert_eq!(created["wan_ports"], json!([]));
    assert_eq!(created["webapp_url"], Value::Null);
    let command = format!("ssh -p {} user@127.0.0.1", created["wan_ssh_port"]);
    assert_eq!(created["ssh_command"], command);
    let at = created["created_at"].as_str().unwrap();
    assert!(
        at.len() == 24 && at.ends_with('Z') && at.as_bytes()[19] == b'.',
        "{at}"
    );
    let words: Vec<_> = created["name"].as_str().unwrap().split('-').collect();
    assert_eq!(words.len(), 3, "{words:?}");
    assert!(words[2].parse::<u32>().is_ok());
    assert!(created["original_service_password"].as_str().unwrap().len() >= 16);
    api.wait_for(uuid(&created), "running").unwrap();
    server.finish().unwrap();
}

#[test]
fn a_vm_has_a_public_address_and_port_22_open() {
    let (server, api) = start();
    let vm = api.create(&small("vm")).unwrap().expect(201).unwrap();
    assert_eq!(vm["wan_ports"], json!([22]));
    assert!(
        vm["public_ipv4"]
            .as_str()
            .unwrap()
            .starts_with("203.0.113.")
    );
    assert!(vm["ssh_command"].is_string());
    api.wait_for(uuid(&vm), "running").unwrap();
    server.finish().unwrap();
}

#[test]
fn all_wrong_fields_are_reported_at_once() {
    let (server, api) = start();
    let body = json!({
        "resource_type": "pod", "n_vcpus": 0, "mem_gib": 513, "disk_size_gib": 9, "name": "-x",
        "cpu_tier": "fast", "flavor": "nope", "public_key": "ssh-rsa", "colour": "red", "vcpus": 1,
        "uuid": "mine",
    });
    let errors = api.create(&body).unwrap().expect(400).unwrap();
    let fields: Vec<&str> = errors
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    for field in body.as_object().unwrap().keys() {
        assert!(
            fields.contains(&field.as_str()),
            "{field} is missing in {errors}"
        );
        assert!(errors[field][0].is_string(), "{errors}");
    }
    assert_eq!(errors["colour"][0], "unknown field");
    assert_eq!(errors["vcpus"][0], "unknown field; did you mean `n_vcpus`?");
    assert!(api.list().unwrap().is_empty());
    server.finish().unwrap();
}

#[test]
fn the_bounds_are_those_of_section_8() {
    let (server, api) = start();
    for (field, wrong) in [
        ("n_vcpus", json!([0, 257, -1, 1.5, "2", true, null])),
        ("mem_gib", json!([0, 513, 0.5, "4", false, null])),
        ("disk_size_gib", json!([9, 2001, 10.5, "10", null])),
        ("resource_type", json!(["VM", "", 1, null])),
    ] {
        for value in wrong.as_array().unwrap() {
            let body = with(small("container"), json!({ field: value }));
            let errors = api.create(&body).unwrap().expect(400).unwrap();
            assert!(errors[field].is_array(), "{field} = {value}: {errors}");
        }
        let mut body = small("container");
        body.as_object_mut().unwrap().remove(field);
        let errors = api.create(&body).unwrap().expect(400).unwrap();
        assert!(errors[field].is_array(), "{field} missing: {errors}");
    }
    server.finish().unwrap();
}

#[test]
fn numbers_written_as_4_0_are_integers_and_null_means_absent() {
    let (server, api) = start();
    let body = br#"{"resource_type":"container","n_vcpus":2.0,"mem_gib":4.0,"disk_size_gib":1e1,
        "name":null,"flavor":null,"cpu_tier":null,"gpu_model":null,"public_key":null}"#;
    let path = "/api/instance/";
    let created = api
        .raw("POST", path, Some(("application/json", body)))
        .unwrap();
    let created = created.expect(201).unwrap();
    assert_eq!(created["n_vcpus"], 2);
    assert_eq!(created["disk_size_gib"], 10);
    let twice =
        br#"{"resource_type":"container","n_vcpus":2,"n_vcpus":3,"mem_gib":4,"disk_size_gib":10}"#;
    let errors = api
        .raw("POST", path, Some(("application/json", twice)))
        .unwrap();
    assert_eq!(errors.status, 400, "{errors:?}");
    server.finish().unwrap();
}

#[test]
fn names_follow_section_2_2_and_are_unique_among_all_existing_instances() {
    let (server, ann) = start();
    let bob = server.user("bob@example.com").unwrap();
    for wrong in [
        "a",
        "-ab",
        "ab-",
        "Ab",
        "a_b",
        "a b",
        "",
        "0f8fad5b-d9cb-469f-a165-70867728950e",
    ] {
        let body = with(small("container"), json!({ "name": wrong }));
        let errors = ann.create(&body).unwrap().expect(400).unwrap();
        assert!(errors["name"].is_array(), "{wrong:?}: {errors}");
    }
    let body = with(small("container"), json!({ "name": "shared-name" }));
    ann.create(&body).unwrap().expect(201).unwrap();
    for api in [&ann, &bob] {
        let errors = api.create(&body).unwrap().expect(400).unwrap();
        assert!(errors["name"].is_array(), "{errors}");
    }
    // Both errors are reported: the taken name and the invalid field.
    let errors = bob
        .create(&with(body.clone(), json!({ "n_vcpus": 0 })))
        .unwrap();
    let errors = errors.expect(400).unwrap();
    assert!(
        errors["name"].is_array() && errors["n_vcpus"].is_array(),
        "{errors}"
    );
    ann.delete("shared-name").unwrap().expect(204).unwrap();
    bob.create(&body).unwrap().expect(201).unwrap();
    server.finish().unwrap();
}

#[test]
fn public_keys_are_parsed_not_matched() {
    let (server, api) = start();
    let pair = KeyPair::new().unwrap();
    let body = with(small("container"), json!({ "public_key": pair.public }));
    api.create(&body).unwrap().expect(201).unwrap();
    let blob = pair.public.split(' ').nth(1).unwrap();
    for wrong in [
        String::new(),
        "hello".to_owned(),
        format!("ssh-rsa {blob} comment"),
        format!("ssh-ed25519 {}", &blob[..20]),
        format!("no-pty {}", pair.public),
        format!("command=\"id\" {}", pair.public),
        format!("{0}\n{0}", pair.public),
        "-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(),
    ] {
        let body = with(small("container"), json!({ "public_key": wrong }));
        let errors = api.create(&body).unwrap().expect(400).unwrap();
        assert!(errors["public_key"].is_array(), "{wrong}: {errors}");
    }
    server.finish().unwrap();
}

#[test]
fn flavors_have_their_resource_types_and_pages() {
    let (server, api) = start();
    for flavor in [
        "datascience",
        "marimo",
        "datasciencemarimo",
        "rserver",
        "rgeospatial",
        "genomics",
        "jupyterlab",
    ] {
        let vm = with(small("vm"), json!({ "flavor": flavor }));
        let errors = api.create(&vm).unwrap().expect(400).unwrap();
        assert!(errors["flavor"].is_array(), "{flavor}: {errors}");
        let body = json!({ "resource_type": "container", "flavor": flavor, "n_vcpus": 1,
            "mem_gib": 2, "disk_size_gib": 20 });
        let created = api.create(&body).unwrap().expect(201).unwrap();
        let ssh = matches!(flavor, "datascience" | "genomics");
        assert_eq!(created["ssh_command"].is_string(), ssh, "{flavor}");
        assert_eq!(created["webapp_url"].is_string(), !ssh, "{flavor}");
    }
    server.finish().unwrap();
}

#[test]
fn s3_prefill_is_for_three_flavors_and_all_four_fields() {
    let (server, api) = start();
    let s3 = json!({
        "s3_endpoint_url": "https://s3.example.com", "s3_access_key_id": "id-of-the-key",
        "s3_secret_access_key": "very-secret-value", "s3_prefill_bucket": "bucket/path",
    });
    for flavor in [
        "base",
        "datascience",
        "datasciencemarimo",
        "rgeospatial",
        "genomics",
    ] {
        let body = with(
            with(small("container"), s3.clone()),
            json!({ "flavor": flavor }),
        );
        let errors = api.create(&body).unwrap().expect(400).unwrap();
        assert_eq!(errors.as_object().unwrap().len(), 4, "{flavor}: {errors}");
    }
    for flavor in ["rserver", "marimo", "jupyterlab"] {
        let sized = json!({ "flavor": flavor, "mem_gib": 2, "disk_size_gib": 20 });
        let body = with(with(small("container"), s3.clone()), sized);
        let mut part = body.clone();
        part.as_object_mut().unwrap().remove("s3_access_key_id");
        let errors = api.create(&part).unwrap().expect(400).unwrap();
        assert_eq!(errors.as_object().unwrap().len(), 1, "{flavor}: {errors}");
        assert!(errors["s3_access_key_id"].is_array(), "{errors}");
        for url in ["ftp://x/", "https://user:pw@s3.example.com", "not a url"] {
            let wrong = with(body.clone(), json!({ "s3_endpoint_url": url }));
            let errors = api.create(&wrong).unwrap().expect(400).unwrap();
            assert!(errors["s3_endpoint_url"].is_array(), "{url}: {errors}");
        }
        let created = api.create(&body).unwrap().expect(201).unwrap();
        assert!(!created.to_string().contains("very-secret-value"));
    }
    let wrote = server.data_and_log().unwrap();
    for secret in ["very-secret-value", "id-of-the-key"] {
        assert!(
            !wrote.windows(secret.len()).any(|w| w == secret.as_bytes()),
            "{secret}"
        );
    }
    server.finish().unwrap();
}

#[test]
fn a_failed_creation_becomes_error_and_frees_its_compute() {
    let (server, api) = start_with("faults = [{ call = \"ensure\", nth = 1, error = \"failed\" }]");
    let mut body = small("container");
    body["n_vcpus"] = json!(16);
    let created = api.create(&body).unwrap().expect(201).unwrap();
    api.wait_for(uuid(&created), "error").unwrap();
    for action in ["stop", "restart"] {
        let answer = api.act(uuid(&created), action).unwrap();
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(
            answer.body["detail"].as_str().unwrap().contains("error"),
            "{answer:?}"
        );
    }
    let next = wharf_tests::until("the compute of the failed instance is free", || {
        let answer = api.create(&body)?;
        Ok((answer.status == 201).then_some(answer.body))
    });
    api.wait_for(uuid(&next.unwrap()), "running").unwrap();
    api.delete(uuid(&created)).unwrap().expect(204).unwrap();
    server.finish().unwrap();
}

#[test]
fn temporary_engine_errors_are_retried() {
    for error in ["unreachable", "lost", "error", "retry"] {
        let faults = format!("faults = [{{ call = \"ensure\", nth = 1, error = \"{error}\" }}]");
        let (server, api) = start_with(&faults);
        let created = api.small_container().unwrap();
        api.wait_for(uuid(&created), "running").unwrap();
        server.finish().unwrap();
    }
}

#[test]
fn provisioning_fails_at_its_deadline() {
    let node = wharf_tests::simulated_node("one", "ready_after_ms = 600000");
    let ports = wharf_tests::Ports::take().settings();
    let settings = format!("provisioning_deadline_s = 1\n{ports}{node}");
    let server = wharf_tests::Server::start(&settings).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let created = api.small_container().unwrap();
    assert_eq!(created["state"], "provisioning");
    api.wait_for(uuid(&created), "error").unwrap();
    server.finish().unwrap();
}
