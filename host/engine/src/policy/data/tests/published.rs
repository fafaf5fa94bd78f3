//! Requests about one published port, and the addresses that a range has for ports.

use super::{ID, scope};
use crate::message::{Body, Request, Response};
use crate::policy::data::PolicyFile;
use crate::policy::{Policy, Refusal};
use http::Method;
use serde_json::{Value, json};
use wharf_domain::driver::Target;
use wharf_domain::ids::Generation;
use wharf_domain::instance::ResourceType;
use wharf_requests::CallScope;

/// Forwards of addresses, as an engine with networks for owners has them.
const FORWARDS: &str = r#"
kind = "sample"
about = "An engine of the tests."

[settings.publish_cidr]
about = "The addresses of published ports."
default = ""

[settings.publish_from]
about = "The port of the first address."
default = 20000

[names]
network = "wh-{installation.end}-{network.gateway}"

[request.create]
about = "Makes the forward of a port."
method = "POST"
path = "/networks/{name.network}/forwards"
calls = "create"
each = "published"

[request.create.body.properties]
listen_address = { const = "{published.address}" }
config.properties."user.wharf.instance" = { const = "{instance}-{incarnation}" }

[request.create.body.properties.ports]
type = "array"
minItems = 1
maxItems = 1

[request.create.body.properties.ports.items.properties]
listen_port = { const = "{published.node_port:text}" }
target_port = { const = "{published.instance_port:text}" }
target_address = { const = "{network.address}" }

[request.replace]
about = "Replaces the forward of a port."
method = "PUT"
path = "/networks/{name.network}/forwards/{published.address}"
query = { port = "{published.node_port}" }
each = "published"
body.properties.target_port = { const = "{published.instance_port:text}" }

[request.list]
about = "Lists the forwards of the network."
method = "GET"
path = "/networks/{name.network}/forwards"
query = { recursion = "1" }
calls = "change"

[request.list.learn.forward]
status = 200
items = "/metadata"
where = { "/config/user.wharf.instance" = "{instance}-{incarnation}" }
pointer = "/listen_address"
pattern = "[0-9.]+"

[request.delete]
about = "Deletes a forward of the instance."
method = "DELETE"
path = "/networks/{name.network}/forwards/{learnt.forward}"
calls = "change"
"#;

const NETWORK: &str = "/networks/wh-240a1045-10.80.1.1";

/// A policy whose range has four addresses: for the ports 20000 to 20003.
fn policy() -> Policy {
    bind(json!({ "publish_cidr": "198.18.64.0/30" })).unwrap()
}

fn bind(settings: Value) -> Result<Policy, String> {
    Policy::new(&PolicyFile::parse(FORWARDS).unwrap(), &settings)
}

fn ask(
    policy: &Policy,
    scope: &CallScope,
    method: Method,
    path: &str,
    body: Body,
) -> Result<String, Refusal> {
    let request = Request {
        method,
        path: format!("{NETWORK}{path}"),
        headers: Vec::new(),
        body,
        timeout: None,
    };
    policy
        .check(scope, &request, false)
        .map(|checked| checked.rule)
}

/// A call that creates an instance with these published ports: of the node, and of the instance.
fn publishing(ports: &[(u16, u16)]) -> CallScope {
    let mut scope = scope();
    let creation = scope.subject.as_mut().unwrap().creation.as_mut().unwrap();
    let pair =
        |(node_port, instance_port): &(u16, u16)| super::published(*node_port, *instance_port);
    creation.published = ports.iter().map(pair).collect();
    scope
}

fn forward(listen_address: &str, listen_port: &str, target_port: &str) -> Value {
    json!({
        "listen_address": listen_address,
        "config": { "user.wharf.instance": format!("{ID}-3") },
        "ports": [{
            "listen_port": listen_port,
            "target_port": target_port,
            "target_address": "10.80.1.7",
        }],
    })
}

fn create(policy: &Policy, scope: &CallScope, body: &Value) -> Result<String, Refusal> {
    let body = Body::Json(body.to_string());
    ask(policy, scope, Method::POST, "/forwards", body)
}

#[test]
fn a_request_is_about_one_of_the_published_ports() {
    let (policy, scope) = (policy(), scope());
    for (address, port, behind) in [
        ("198.18.64.1", "20001", "22"),
        ("198.18.64.2", "20002", "80"),
    ] {
        create(&policy, &scope, &forward(address, port, behind)).unwrap();
        let path = format!("/forwards/{address}?port={port}");
        let body = Body::Json(json!({ "target_port": behind }).to_string());
        ask(&policy, &scope, Method::PUT, &path, body).unwrap();
    }
}

#[test]
fn parts_of_different_ports_are_refused() {
    let (policy, scope) = (policy(), scope());
    for (address, port, behind) in [
        ("198.18.64.2", "20001", "22"),
        ("198.18.64.1", "20002", "22"),
        ("198.18.64.1", "20001", "80"),
        ("198.18.64.1", "20002", "80"),
    ] {
        let forward = forward(address, port, behind);
        assert!(create(&policy, &scope, &forward).is_err(), "{forward}");
        let path = format!("/forwards/{address}?port={port}");
        let body = Body::Json(json!({ "target_port": behind }).to_string());
        assert!(ask(&policy, &scope, Method::PUT, &path, body).is_err());
    }
    // Both ports in one forward.
    let mut both = forward("198.18.64.1", "20001", "22");
    let second = forward("198.18.64.2", "20002", "80")["ports"][0].clone();
    both["ports"].as_array_mut().unwrap().push(second.clone());
    assert!(create(&policy, &scope, &both).is_err());
    let mut list = forward("198.18.64.1", "20001", "22");
    list["ports"][0]["listen_port"] = json!(["20001", "20002"]);
    assert!(create(&policy, &scope, &list).is_err());
    list["listen_address"] = json!(["198.18.64.1", "198.18.64.2"]);
    assert!(create(&policy, &scope, &list).is_err());
}

#[test]
fn other_addresses_and_other_spellings_are_refused() {
    let (policy, scope) = (policy(), scope());
    for address in [
        "198.18.64.0",
        "198.18.64.3",
        "198.18.64.4",
        "198.18.63.255",
        "0.0.0.0",
        "198.18.64.01",
        "198.018.64.1",
        "0306.18.64.1",
        "0xc6.18.64.1",
        "3323084801",
        "198.18.16385",
        "198.18.64.1.",
        ".198.18.64.1",
        "198.18.64.10",
        "198.18.64.1:0",
        "::ffff:198.18.64.1",
        "198.18.64.1-198.18.64.2",
        "198.18.64.1/32",
        "198.18.64.1 ",
        "198.18.64.%31",
        "",
    ] {
        assert!(
            create(&policy, &scope, &forward(address, "20001", "22")).is_err(),
            "{address}"
        );
        let path = format!("/forwards/{address}?port=20001");
        let body = Body::Json(json!({ "target_port": "22" }).to_string());
        assert!(
            ask(&policy, &scope, Method::PUT, &path, body).is_err(),
            "{address}"
        );
    }
}

#[test]
fn every_address_of_the_range_counts_and_none_beyond() {
    let policy = policy();
    let why = |port: u16, address: &str| {
        let scope = publishing(&[(port, 22)]);
        create(&policy, &scope, &forward(address, &port.to_string(), "22"))
    };
    why(20_000, "198.18.64.0").unwrap();
    why(20_003, "198.18.64.3").unwrap();
    for (port, address, setting) in [
        (19_999, "198.18.63.255", "settings.publish_from"),
        (20_004, "198.18.64.4", "settings.publish_cidr"),
    ] {
        let why = why(port, address).unwrap_err().0;
        assert!(
            why.contains(setting) && why.contains(&port.to_string()),
            "{why}"
        );
    }
    // A port without an address leaves the other one its own.
    let both = publishing(&[(20_004, 80), (20_001, 22)]);
    create(&policy, &both, &forward("198.18.64.1", "20001", "22")).unwrap();
    // The last port, and the end of all addresses.
    let end =
        bind(json!({ "publish_cidr": "255.255.255.254/31", "publish_from": 65_534 })).unwrap();
    let last = publishing(&[(65_535, 22)]);
    create(&end, &last, &forward("255.255.255.255", "65535", "22")).unwrap();
    let beyond =
        bind(json!({ "publish_cidr": "255.255.255.255/32", "publish_from": 20_000 })).unwrap();
    assert!(create(&beyond, &last, &forward("0.0.177.255", "65535", "22")).is_err());
}

#[test]
fn without_a_range_no_port_has_an_address() {
    let policy = bind(json!({})).unwrap();
    let why = create(&policy, &scope(), &forward("", "20001", "22")).unwrap_err();
    assert!(
        why.0.contains("settings.publish_cidr is empty"),
        "{}",
        why.0
    );
    let body = Body::Json(json!({ "target_port": "22" }).to_string());
    let path = "/forwards/198.18.64.1?port=20001";
    let why = ask(&policy, &scope(), Method::PUT, path, body).unwrap_err();
    assert!(
        why.0.contains("settings.publish_cidr is empty"),
        "{}",
        why.0
    );
}

#[test]
fn a_range_that_is_none_is_refused_with_its_setting() {
    for range in [
        "198.18.64.0",
        "198.18.64.1/18",
        "198.018.64.0/18",
        "198.18.64.0/018",
        "198.18.64.0/33",
        "2001:db8::/64",
        " 198.18.64.0/18",
        "all",
    ] {
        let why = bind(json!({ "publish_cidr": range })).unwrap_err();
        assert!(
            why.starts_with("publish_cidr: ") && why.contains(range),
            "{why}"
        );
    }
    let why = bind(json!({ "publish_from": -1 })).unwrap_err();
    assert!(why.starts_with("publish_from: "), "{why}");
}

#[test]
fn only_an_instance_with_published_ports_has_such_requests() {
    let policy = policy();
    let forward = forward("198.18.64.1", "20001", "22");
    let why = create(&policy, &publishing(&[]), &forward).unwrap_err().0;
    assert!(why.contains("no published port"), "{why}");
    let body = || Body::Json(json!({ "target_port": "22" }).to_string());
    let path = "/forwards/198.18.64.1?port=20001";
    let why = ask(&policy, &deleting(), Method::PUT, path, body())
        .unwrap_err()
        .0;
    assert!(why.contains("only ensure"), "{why}");
    assert!(create(&policy, &deleting(), &forward).is_err());
    let mut moving = scope();
    moving.moves = true;
    ask(&policy, &moving, Method::PUT, path, body()).unwrap();
}

/// The call that deletes the instance.
fn deleting() -> CallScope {
    let subject = scope().subject.unwrap();
    let target = Target {
        tag: subject.tag,
        generation: Generation(1),
        resource_type: ResourceType::Container,
        size: subject.size.unwrap(),
        network: subject.network.unwrap(),
        public_network: None,
        wan_ports: Vec::new(),
    };
    CallScope::change(&scope().installation, &target)
}

#[test]
fn a_deletion_finds_the_forwards_of_its_instance_alone() {
    let (policy, mut scope) = (policy(), deleting());
    let delete = |scope: &CallScope, address: &str| {
        let path = format!("/forwards/{address}");
        ask(&policy, scope, Method::DELETE, &path, Body::Empty)
    };
    assert!(delete(&scope, "198.18.64.1").is_err());
    let rule = ask(
        &policy,
        &scope,
        Method::GET,
        "/forwards?recursion=1",
        Body::Empty,
    )
    .unwrap();
    let item = |whose: &str, address: &str| json!({ "listen_address": address, "config": { "user.wharf.instance": whose } });
    let own = format!("{ID}-3");
    let mut items = vec![
        item(&own, "198.18.64.1"),
        item(&own, "198.18.64.2"),
        item(&format!("{ID}-2"), "198.18.64.3"),
        item(&format!("{ID}-33"), "198.18.64.4"),
        item("other-3", "198.18.64.5"),
        item(&own, "198.18.64.6/../../instances"),
        item(&own, "fd00::1"),
    ];
    items.push(json!({ "listen_address": "198.18.64.7", "config": {} }));
    items.push(json!({ "listen_address": "198.18.64.8" }));
    items.push(json!({ "listen_address": "198.18.64.9", "config": { "user": { "wharf": { "instance": own } } } }));
    let answer = |status| Response {
        status,
        headers: Vec::new(),
        body: json!({ "type": "sync", "metadata": items })
            .to_string()
            .into(),
    };
    policy.learn(&mut scope, &rule, &answer(404));
    assert!(delete(&scope, "198.18.64.1").is_err());
    policy.learn(&mut scope, &rule, &answer(200));
    for address in ["198.18.64.1", "198.18.64.2"] {
        delete(&scope, address).unwrap();
    }
    for end in 3..10 {
        assert!(delete(&scope, &format!("198.18.64.{end}")).is_err());
    }
    assert!(delete(&deleting(), "198.18.64.1").is_err());
}

#[test]
fn a_wrong_file_is_refused_with_the_place() {
    let cases = [
        (
            "default = \"\"",
            "default = [\"198.18.64.0/30\"]",
            "{published.address} needs the settings `publish_cidr`, a text, and `publish_from`",
        ),
        (
            "[settings.publish_from]",
            "[settings.publish_first]",
            "request.create.body: ",
        ),
        ("default = 20000", "default = \"20000\"", "an integer"),
        (
            "each = \"published\"",
            "each = \"images\"",
            "unknown variant `images`",
        ),
        ("each = \"published\"", "", "request.create.body: "),
        (
            "network = \"wh-{installation.end}-{network.gateway}\"",
            "network = \"wh-{published.address}\"",
            "names.network: ",
        ),
        (
            "calls = \"create\"\neach",
            "calls = \"create\"\nheaders = { X-Port = \"{published.node_port}\" }\neach",
            "request.create.headers.X-Port: ",
        ),
        (
            "\"{instance}-{incarnation}\" }\npointer",
            "\"{published.address}\" }\npointer",
            "request.list.learn.forward.where",
        ),
    ];
    for (old, new, words) in cases {
        let text = FORWARDS.replacen(old, new, 1);
        assert_ne!(text, FORWARDS, "{old}");
        let error = PolicyFile::parse(&text).unwrap_err();
        assert!(error.contains(words), "{new}: {error}");
    }
}

#[test]
fn the_words_about_a_policy_name_the_ports_and_their_addresses() {
    let file = PolicyFile::parse(FORWARDS).unwrap();
    let words = file.explain();
    for part in [
        "for one of the instance's published ports",
        "listen_address: {published.address}",
        "{published.address} is the address in `publish_cidr`",
    ] {
        assert!(words.contains(part), "{part} is not in: {words}");
    }
    assert_eq!(file.lint(), [""; 0]);
    // Without the address, nothing uses its settings. A list in a body may be empty, and ties nothing.
    let unused = FORWARDS.replace("{published.address}", "{published.node_port}");
    let findings = PolicyFile::parse(&unused).unwrap().lint();
    let settings = ["publish_cidr", "publish_from"];
    let expected = settings.map(|name| format!("settings.{name}: no request uses it"));
    assert_eq!(findings, expected);
    let loose = r#"
        kind = "sample"
        about = "An engine of the tests."
        [request.ports]
        about = "Opens ports."
        method = "POST"
        path = "/ports"
        body.patternProperties."^port" = { each = "published", of = { const = "{published.node_port}" } }
    "#;
    let tied = loose.replace("path =", "each = \"published\"\npath =");
    let lint = |text: &str| PolicyFile::parse(text).unwrap().lint();
    assert_eq!(lint(loose).len(), 1);
    assert_eq!(lint(&tied), [""; 0]);
}
