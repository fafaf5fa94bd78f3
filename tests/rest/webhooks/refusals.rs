//! URLs that are refused, and addresses that no request reaches.

use super::{LOOPBACK, Receiver, create, post, start, start_with, until_delivery};
use crate::{Expected, edit, has};
use serde_json::json;
use std::process::Command;
use wharf_testkit::packages::{self, Need};
use wharf_testkit::process::{is_root, run};
use wharf_testkit::workspace::target;
use wharf_tests::{
    Authority, Ports, Server, Shell, docker_node, end, simulated_node, wharf_binary,
};

#[test]
fn a_name_without_a_public_address_gets_no_request() {
    let (server, ann) = start_with("[webhook]\nhttp = true\n");
    let mut receiver = Receiver::start();
    let own = receiver.url.clone();
    // A name without an address fails as a private one does.
    let [_, webhook] = ["no-such-host.invalid", "localhost"].map(|host| {
        receiver.url = own.replace("127.0.0.1", host);
        let (webhook, _) = create(&ann, &receiver, &[]);
        post(&ann, &format!("{webhook}test/"), 202);
        let failed = until_delivery(&ann, &webhook, |last| last["attempt"] == 1);
        assert_eq!(failed["error"], "the host has no public address", "{host}");
        assert!(failed["status"].is_null(), "{host}");
        webhook
    });
    assert!(receiver.requests().is_empty());
    // The operator allows the network, without a restart.
    edit(&server, "[webhook]\nhttp = true\n", LOOPBACK);
    server.hang_up().unwrap();
    until_delivery(&ann, &webhook, |last| last["state"] == "delivered");
}

#[test]
fn a_user_has_twenty_webhooks_at_most_and_a_reader_sees_them() {
    let (server, ann) = start();
    let receiver = Receiver::start();
    let (webhook, _) = create(&ann, &receiver, &[]);
    for _ in 1..20 {
        create(&ann, &receiver, &[]);
    }
    let body = json!({ "url": receiver.url });
    let refused = ann.send("POST", "/api/webhook/", &body).is(400);
    let message = refused["non_field_errors"][0].as_str().unwrap();
    assert!(message.contains("20"), "{refused}");
    let reader = json!({ "name": "reader", "scopes": ["read"] });
    let reader = ann.send("POST", "/api/key/", &reader).is(201);
    let reader = wharf_tests::Api::new(server.base_url(), reader["key"].as_str().unwrap());
    reader.get(&webhook).is(200);
}

#[test]
fn the_services_own_public_address_gets_no_request_unless_the_operator_allows_it() {
    let node = simulated_node("one", "");
    let top = "base_url = \"https://1.1.1.1\"\n";
    let (mut server, ann) = crate::start_on(top, &format!("[webhook]\n{node}"));
    let new = |host: &str| {
        let body = json!({ "url": format!("https://{host}/hook") });
        ann.send("POST", "/api/webhook/", &body)
    };
    for own in ["1.1.1.1", "[::ffff:1.1.1.1]", "0x01010101"] {
        let refused = new(own).is(400);
        let message = refused["url"][0].as_str().unwrap();
        assert!(message.contains("outside this service"), "{message}");
    }
    let webhook = new("1.0.0.1").is(201);
    let webhook = format!("/api/webhook/{}/", webhook["id"].as_str().unwrap());
    // Each attempt looks again.
    edit(&server, "https://1.1.1.1", "https://1.0.0.1");
    server.terminate().unwrap();
    server.run().unwrap();
    let ann = server.again(&ann);
    post(&ann, &format!("{webhook}test/"), 202);
    let failed = until_delivery(&ann, &webhook, |last| last["attempt"] == 1);
    let error = "the operator does not permit this URL any more";
    assert_eq!(failed["error"], error);
    edit(
        &server,
        "[webhook]\n",
        "[webhook]\nallow = [\"1.0.0.1/32\"]\n",
    );
    server.hang_up().unwrap();
    crate::wait_until("the address is allowed", || {
        let body = json!({ "url": "https://1.0.0.1/hook" });
        Ok((ann.send("POST", "/api/webhook/", &body)?.status == 201).then_some(()))
    });
}

#[test]
fn an_engine_at_a_public_address_gets_no_request() {
    let authority = Authority::new().unwrap();
    let certificate = authority.issue("wharf", &[]).unwrap();
    // Nobody has these addresses: their range is not allocated.
    let (engine, other) = ("[2d00::1]", "[2d00::2]");
    let endpoint = format!("https://{engine}:2376");
    let networks = ["10.99.0.0/16", "198.18.9.0/28"];
    let far = docker_node("far", &endpoint, networks, "");
    let tls = certificate.node_tls(&authority.ca());
    let near = simulated_node("one", "");
    let (_server, ann) = crate::start_on("", &format!("{near}{far}{tls}"));
    let new = |host: &str| {
        let body = json!({ "url": format!("https://{host}/hook") });
        ann.send("POST", "/api/webhook/", &body)
    };
    let refused = new(engine).is(400);
    let message = refused["url"][0].as_str().unwrap();
    assert!(message.contains("outside this service"), "{message}");
    new(other).is(201);
}

#[test]
fn a_public_address_of_the_machine_gets_no_request() {
    if !is_root() {
        assert!(std::env::var_os("CI").is_none(), "this test needs root");
        eprintln!("SKIPPED: a network of its own needs root");
        return;
    }
    let ip = Need {
        program: "ip",
        package: "iproute2",
        why: "gives a machine an address",
    };
    packages::ensure(&[ip]).unwrap();
    let dir = tempfile::tempdir_in(target()).unwrap();
    let [script, program] = ["script", "wharf"].map(|name| dir.path().join(name));
    let wharf = wharf_binary();
    let inside = format!(
        "ip link set lo up && ip address add 1.0.0.3/32 dev lo && exec {} \"$@\"",
        wharf.display()
    );
    let outside = format!("#!/bin/sh\nexec unshare --net sh -c '{inside}' sh \"$@\"\n");
    std::fs::write(&script, outside).unwrap();
    // A file that this process writes could be open for writing in a process that another test starts.
    run(Command::new("install")
        .arg("--mode=755")
        .args([&script, &program]))
    .unwrap();
    let settings = format!("{}{}", Ports::take().settings(), simulated_node("one", ""));
    let server = Server::start_program(&program, &settings)
        .unwrap()
        .checked_at_end();
    let ann = server.user("ann@example.com").unwrap();
    let network = format!("--net=/proc/{}/ns/net", server.process_id().unwrap());
    let shell = Shell::new().unwrap();
    let new = |host: &str| {
        let body = json!({ "url": format!("https://{host}/hook") }).to_string();
        let post = ["api", "POST", "/api/webhook/", "--data", body.as_str()];
        let args = [&[network.as_str(), wharf.to_str().unwrap()][..], &post].concat();
        let mut command = shell.own("nsenter".as_ref(), &args);
        command
            .env("WHARF_URL", server.base_url())
            .env("WHARF_API_KEY", ann.key());
        end(&mut command, "").unwrap()
    };
    let refused = new("1.0.0.3");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    has(&refused.stdout, "outside this service");
    new("1.0.0.4").succeeded().unwrap();
}
