//! The images of all flavors on an Incus, which gets them from the engine that builds them.

use crate::context::FlavorContext;
use crate::page::status;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use wharf_testkit::images;
use wharf_testkit::incus::{Cluster, ClusterOptions, GATEWAY, NETWORK, Project};
use wharf_testkit::workspace::target;
use wharf_tests::{Api, Authority, Login, Ports, Server, small};

/// The flavors whose images are built on others. The tests on Incus have `base`.
pub const FLAVORS: &[&str] = &[
    "datascience",
    "marimo",
    "datasciencemarimo",
    "jupyterlab",
    "rserver",
    "rgeospatial",
    "genomics",
];
const PROJECT: &str = "wharf";

/// An instance of each flavor runs, is logged in to or has a page, and the interface shows the content of its image.
pub fn all(context: &FlavorContext) -> Result<()> {
    let cluster = Cluster::start(&ClusterOptions {
        dir: target().join("test-engine/flavors-incus"),
        members: 1,
        disk_gib: 60,
        offline_after_s: 11,
        disposable: true,
        outside: None,
    })?;
    let tested = on(&cluster, context);
    cluster.stop()?;
    tested
}

fn on(cluster: &Cluster, context: &FlavorContext) -> Result<()> {
    let certificates = Authority::new()?;
    let own = certificates.issue("wharf", &[])?;
    Project::make(cluster, PROJECT, &fs::read_to_string(&own.cert)?)?;
    let files = tempfile::tempdir()?;
    let of_cluster = files.path().join("cluster.crt");
    fs::write(&of_cluster, cluster.certificate()?)?;
    let member = cluster.first()?;
    images::ensure_on_incus(&member.admin(), PROJECT, FLAVORS, Some(&context.client()))?;
    let (name, address) = (member.name(), member.address());
    let server = Server::start(&format!(
        "{}[[node]]\nname = \"{name}\"\ndriver = \"incus\"\nendpoint = \"{}\"\nssh_host = \"{address}\"\n\
         probe_host = \"{address}\"\n\
         capacity = {{ n_vcpus = 16, mem_gib = 64, disk_size_gib = 500 }}\nlan_cidr = \"10.79.4.0/22\"\n\
         settings = {{ member = \"{name}\", project = \"{PROJECT}\", network = \"{NETWORK}\", \
         gateway = \"{GATEWAY}\", publish_address = \"{address}\" }}\n{}",
        Ports::take().settings(),
        member.endpoint(),
        own.node_tls(&of_cluster).replace(" ca =", " server_cert ="),
    ))?;
    let api = server.user("ann@example.com")?;
    for flavor in FLAVORS {
        runs(&api, flavor, &address.to_string()).with_context(|| format!("{flavor} on Incus"))?;
    }
    let flavors = api.send("GET", "/api/flavor/", &Value::Null)?.expect(200)?;
    let flavors = flavors.as_array().context("no flavors")?;
    let rserver = flavors.iter().find(|flavor| flavor["name"] == "rserver");
    let content = rserver.context("no rserver")?["content"].to_string();
    ensure!(content.contains("JupyterLab with R"), "{content}");
    server.finish()
}

fn runs(api: &Api, flavor: &str, host: &str) -> Result<()> {
    let mut body = small("container");
    body["flavor"] = json!(flavor);
    body["name"] = json!(flavor);
    body["n_vcpus"] = json!(2);
    body["mem_gib"] = json!(2);
    api.create(&body)?.expect(201)?;
    let running = api.wait_for(flavor, "running")?;
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    match running["webapp_url"].as_str() {
        // It asks for the password.
        Some(url) => {
            let status = status(&url.replace("127.0.0.1", host), None)?;
            ensure!([302, 303, 401].contains(&status), "{url}: {status}");
        }
        None => ensure!(Login::Password(password).output(&running, "echo in")? == "in"),
    }
    api.delete(flavor)?.expect(204).map(drop)
}
