//! Sections 4.8 and 4.9: ports.

use crate::{start, start_with, uuid};
use serde_json::{Value, json};
use wharf_tests::{Answer, Api, small};

fn port(api: &Api, selector: &str, action: &str, port: &Value) -> Answer {
    let path = format!("/api/instance/{selector}/{action}-port/");
    api.send("POST", &path, &json!({ "port": port })).unwrap()
}

#[test]
fn ports_are_added_and_removed_idempotently_and_sorted() {
    let (server, api) = start();
    let vm = api.create(&small("vm")).unwrap().expect(201).unwrap();
    api.wait_for(uuid(&vm), "running").unwrap();
    for (action, number, open) in [
        ("add", 8080, json!([22, 8080])),
        ("add", 80, json!([22, 80, 8080])),
        ("add", 80, json!([22, 80, 8080])),
        ("remove", 8080, json!([22, 80])),
        ("remove", 8080, json!([22, 80])),
        ("add", 65535, json!([22, 80, 65535])),
    ] {
        let result = port(&api, uuid(&vm), action, &json!(number))
            .expect(200)
            .unwrap();
        assert_eq!(result["wan_ports"], open);
        assert_eq!(result["uuid"], vm["uuid"]);
        assert!(result["message"].is_string());
    }
    let got = api.instance(uuid(&vm)).unwrap().expect(200).unwrap();
    assert_eq!(got["wan_ports"], json!([22, 80, 65535]));
    for wrong in [
        json!(0),
        json!(65536),
        json!(-1),
        json!("80"),
        json!(1.5),
        Value::Null,
    ] {
        for action in ["add", "remove"] {
            let errors = port(&api, uuid(&vm), action, &wrong).expect(400).unwrap();
            assert!(errors["port"].is_array(), "{wrong}: {errors}");
        }
    }
    let errors = port(&api, uuid(&vm), "remove", &json!(22))
        .expect(400)
        .unwrap();
    assert!(errors["port"].is_array(), "{errors}");
    server.finish().unwrap();
}

#[test]
fn at_most_64_ports_are_open_and_the_list_survives_a_restart() {
    let (server, api) = start();
    let vm = api.create(&small("vm")).unwrap().expect(201).unwrap();
    api.wait_for(uuid(&vm), "running").unwrap();
    api.act(uuid(&vm), "stop").unwrap().expect(200).unwrap();
    for number in 1000..1063 {
        port(&api, uuid(&vm), "add", &json!(number))
            .expect(200)
            .unwrap();
    }
    let errors = port(&api, uuid(&vm), "add", &json!(2000))
        .expect(400)
        .unwrap();
    assert!(errors["port"].is_array(), "{errors}");
    api.act(uuid(&vm), "restart").unwrap().expect(200).unwrap();
    let got = api.instance(uuid(&vm)).unwrap().expect(200).unwrap();
    assert_eq!(got["wan_ports"].as_array().unwrap().len(), 64);
    server.finish().unwrap();
}

#[test]
fn containers_have_no_ports() {
    let (server, api) = start();
    let created = api.small_container().unwrap();
    for action in ["add", "remove"] {
        let answer = port(&api, uuid(&created), action, &json!(80));
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    server.finish().unwrap();
}

#[test]
fn a_failed_port_change_is_retried() {
    let faults = "faults = [{ call = \"ports\", nth = 1, error = \"unreachable\" }, \
                  { call = \"ports\", nth = 3, error = \"lost\" }]";
    let (server, api) = start_with(faults);
    let vm = api.create(&small("vm")).unwrap().expect(201).unwrap();
    api.wait_for(uuid(&vm), "running").unwrap();
    let open = port(&api, uuid(&vm), "add", &json!(8080))
        .expect(200)
        .unwrap();
    assert_eq!(open["wan_ports"], json!([22, 8080]));
    let log = server.log();
    let calls = log.matches("/ports").count();
    assert!(calls >= 4, "{calls} calls:\n{log}");
    server.finish().unwrap();
}
