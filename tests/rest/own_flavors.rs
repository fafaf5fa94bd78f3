//! `[[flavor]]`, `trust_ca` and `[package_mirrors]`: the operator's images and package sources.

use crate::{Expected, has, start_on, start_under, until_logged, uuid, wait_until, with};
use serde_json::{Value, json};
use wharf_tests::{Ports, Server, Shell, simulated_node, small};

const TOOLS: &str = "[[flavor]]\nname = \"tools\"\nimage = \"localhost/team/tools:1\"\nssh = true\n\
                     minimum = { n_vcpus = 2, mem_gib = 4 }\n";
const REPORTS: &str = "[[flavor]]\nname = \"reports\"\nimage = \"registry.example/reports@sha256:ab\"\n\
                       web_port = 8000\nweb_path = \"/health\"\ncommand = [\"serve\"]\n";

fn settings(more: &str) -> String {
    let node = simulated_node("one", "");
    format!("{}{more}{node}", Ports::take().settings())
}

#[test]
fn a_flavor_of_the_operators_is_created_and_listed_as_others_are() {
    let server = crate::serve(&settings(&format!("{TOOLS}{REPORTS}")));
    let api = server.user("ann@example.com").unwrap();
    let flavors = api.get("/api/flavor/").is(200);
    let named = |name: &str| {
        let mut all = flavors.as_array().unwrap().iter();
        all.find(|flavor| flavor["name"] == name).unwrap().clone()
    };
    let (tools, reports) = (named("tools"), named("reports"));
    assert_eq!(tools["resource_types"], json!(["container"]));
    assert_eq!(tools["ssh"], true);
    assert_eq!(tools["web"], false);
    assert_eq!(tools["minimum"]["n_vcpus"], 2);
    assert_eq!(reports["minimum"]["disk_size_gib"], 10);
    let with = |flavor: &str, n_vcpus: u32, mem_gib: u32| {
        let body = with(
            "container",
            json!({ "flavor": flavor, "n_vcpus": n_vcpus, "mem_gib": mem_gib }),
        );
        api.create(&body).unwrap()
    };
    let small = with("tools", 1, 1).is(400);
    assert!(small["n_vcpus"].is_array() && small["mem_gib"].is_array());
    let created = with("tools", 2, 4).is(201);
    let running = api.wait_for(uuid(&created), "running").unwrap();
    assert!(running["ssh_command"].is_string() && running["webapp_url"].is_null());
    let created = with("reports", 1, 1).is(201);
    let running = api.wait_for(uuid(&created), "running").unwrap();
    assert!(running["ssh_command"].is_null() && running["webapp_url"].is_string());
}

#[test]
fn an_error_names_its_field() {
    let changed = |from: &str, to: &str| {
        let changed = TOOLS.replace(from, to);
        assert_ne!(changed, TOOLS);
        changed
    };
    for (given, expected) in [
        (
            format!("{TOOLS}{TOOLS}"),
            "`flavor.name`: `tools` is used twice",
        ),
        (
            changed("\"tools\"", "\"base\""),
            "`flavor.name`: the plugin flavors-standard",
        ),
        (
            changed("\"tools\"", "\"Our Tools\""),
            "`flavor.name`: must be",
        ),
        (
            changed("ssh = true\n", ""),
            "`flavor.tools.ssh`: must be true",
        ),
        (
            changed("ssh = true", "ssh = true\nweb_port = 22"),
            "`flavor.tools.web_port`",
        ),
        (
            changed("ssh = true", "web_port = 0"),
            "`flavor.tools.web_port`: must be from 1",
        ),
        (
            changed("ssh = true", "web_port = 80\nweb_path = \"x\""),
            "`flavor.tools.web_path`",
        ),
        (
            changed("localhost/team/tools:1", "no image"),
            "`flavor.tools.image`",
        ),
        (changed("image =", "picture ="), "unknown field `picture`"),
        (
            changed("ssh = true", "ssh = true\ncommand = [\"\"]"),
            "`flavor.tools.command`",
        ),
        (
            changed("n_vcpus = 2", "n_vcpus = 0"),
            "`flavor.tools.minimum.n_vcpus`: must be at least 1",
        ),
        (
            "trust_ca = [\"/no/such.pem\"]\n".to_owned(),
            "`trust_ca`: cannot read /no/such.pem",
        ),
        (
            "trust_ca = [\"/etc/hostname\"]\n".to_owned(),
            "`trust_ca`: /etc/hostname must have",
        ),
        (
            "package_mirrors = { pip = \"mirror.example\" }\n".to_owned(),
            "`package_mirrors.pip`: must be a URL",
        ),
        (
            "package_mirrors = { http_proxy = \"http://me:secret@proxy.example:3128\" }\n"
                .to_owned(),
            "`package_mirrors.http_proxy`: must have no user name",
        ),
        (
            "package_mirrors = { no_proxy = \"a, b\" }\n".to_owned(),
            "`package_mirrors.no_proxy`",
        ),
    ] {
        // Keys of the file come before its tables.
        let message = Server::refused(&if given.starts_with('[') {
            settings(&given)
        } else {
            format!("{given}{}", settings(""))
        })
        .unwrap();
        has(&message, expected);
        assert!(!message.contains("secret"), "{message}");
    }
}

#[test]
fn an_image_that_no_node_has_is_known_before_a_create() {
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("made");
    let lacks = format!(
        "missing_images = [\"localhost/wharf/marimo:1\"], images_while = \"{}\"",
        made.display()
    );
    let limits = "[limits]\nobserve_every_ms = 100\n[quota]\nn_vcpus = 8\n";
    let (server, api) = start_under(limits, &lacks);
    until_logged(&server, "the images that the node lacks");
    let body = with("container", json!({ "flavor": "marimo" }));
    let short = &api.create(&body).is(422)["detail"];
    let message = short["message"].as_str().unwrap();
    let words =
        "The flavor marimo is not available: no node that can run this instance has its image.";
    has(message, words);
    assert!(!message.contains("not enough"), "{message}");
    assert_eq!(short["bottleneck"], json!(["flavor"]));
    assert_eq!(short["requested"], json!({ "flavor": 1 }));
    assert_eq!(short["nearest_available"], json!({ "flavor": 0 }));
    let estimate = api.send("POST", "/api/estimate/", &body).is(200);
    assert_eq!(estimate["shortage"], *short);
    // A smaller request would be refused too, so the quota is not the reason.
    let beyond = with("container", json!({ "flavor": "marimo", "n_vcpus": 10 }));
    assert_eq!(api.create(&beyond).is(422)["detail"], *short);
    let available = |name: &str| {
        let flavors = api.get("/api/flavor/").is(200);
        let mut flavors = flavors.as_array().unwrap().iter();
        let flavor = flavors.find(|flavor| flavor["name"] == name).unwrap();
        flavor["available"].as_bool()
    };
    assert_eq!(available("marimo"), Some(false));
    assert_eq!(available("base"), Some(true));
    let shell = Shell::signed_in(&server, "ann@example.com").unwrap();
    let created = shell.run(&["create", "--flavor", "marimo"]).unwrap();
    assert_eq!(created.code, Some(5), "{created:?}");
    has(&created.stderr, words);
    assert!(!created.stderr.contains("requested 1"), "{created:?}");
    has(shell.ok(&["flavors"]).unwrap(), "no image");
    // Flavors with an image go on.
    api.create(&small("container")).is(201);
    // The operator makes the image.
    std::fs::write(made, "").unwrap();
    let created: Value = wait_until("the image is found", || {
        let answer = api.create(&body)?;
        Ok((answer.status == 201).then_some(answer.body))
    });
    api.wait_for(uuid(&created), "running").unwrap();
    assert_eq!(available("marimo"), Some(true));
}

#[test]
fn a_node_with_the_image_is_chosen() {
    let without = simulated_node("a", "missing_images = [\"localhost/wharf/base:1\"]");
    let node = simulated_node("b", "").replace("203.0.113.0", "203.0.113.16");
    let node = node.replace("settings", "lan_cidr = \"10.81.0.0/16\"\nsettings");
    let (server, api) = start_on("", &format!("{without}{node}"));
    until_logged(&server, "the images that the node lacks");
    for _ in 0..4 {
        let created = api.small_container().unwrap();
        let running = api.wait_for(uuid(&created), "running").unwrap();
        let address = running["lan_ipv4"].as_str().unwrap();
        assert!(address.starts_with("10.81."), "{address}");
    }
}

#[test]
fn a_flavor_shows_the_contents_of_its_images() {
    let image = |content: &str| {
        format!("image_contents = {{ \"localhost/wharf/rserver:1\" = \"{content}\" }}")
    };
    let first = simulated_node("a", &image("RStudio Server 2026.01"));
    let second =
        simulated_node("b", &image("JupyterLab with R")).replace("203.0.113.0", "203.0.113.16");
    let second = second.replace("settings", "lan_cidr = \"10.81.0.0/16\"\nsettings");
    let (server, api) = start_on("", &format!("{first}{second}"));
    let content = |name: &str| {
        let flavors = api.get("/api/flavor/").is(200);
        let mut flavors = flavors.as_array().unwrap().iter();
        let flavor = flavors.find(|flavor| flavor["name"] == name).unwrap();
        flavor["content"].clone()
    };
    let both = json!(["JupyterLab with R", "RStudio Server 2026.01"]);
    wait_until("both nodes are surveyed", || {
        Ok((content("rserver") == both).then_some(()))
    });
    assert_eq!(content("base"), json!([]));
    // A check does not ask a simulated engine, and the server's start does.
    until_logged(
        &server,
        "the flavor rserver is JupyterLab with R here, and RStudio Server 2026.01 on the node a",
    );
    let shell = Shell::signed_in(&server, "ann@example.com").unwrap();
    let table = shell.ok(&["flavors"]).unwrap();
    let header: Vec<_> = table.lines().next().unwrap().split_whitespace().collect();
    assert!(header.ends_with(&["CONTENT", "DESCRIPTION"]), "{table}");
    has(&table, "JupyterLab with R or RStudio Server 2026.01");
    server.cli(&["node", "drain", "a"]).unwrap();
    assert_eq!(content("rserver"), json!(["JupyterLab with R"]));
    server.finish().unwrap();
}
