//! Plugins that mean harm, as real components in a real server, beside a node that is well.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod answers;
mod burden;
mod engine;
mod fixtures;
mod flavors;
mod imports;
mod requests;

use fixtures::Plugins;
use serde_json::Value;
use std::path::Path;
use wharf_tests::{Api, Ports, Server, simulated_node};

/// Small, so that what exceeds them shows soon.
const LIMITS: &str = "[limits]\ncall_cpu_ms = 300\ncall_timeout_ms = 2000\nguest_memory_mib = 32\n\
    observe_every_ms = 500\nanswer_wait_ms = 2000\n";

/// A server with a simulated node that is well, and one hostile node for each mode, each with an
/// engine of its own socket and a GPU of its own model, by which a test chooses it.
fn server(plugins: &Plugins, modes: &[(&str, &Path)]) -> (Server, Api) {
    let mut settings = format!(
        "provisioning_deadline_s = 4\nplugins_dir = \"{}\"\n{LIMITS}{}[rates.gpu]\n",
        plugins.path().display(),
        Ports::take().settings()
    );
    for (mode, _) in modes {
        settings.push_str(&format!("\"{mode}\" = \"1\"\n"));
    }
    let well = simulated_node("well", "");
    settings.push_str(&format!("{well}cpu_tiers = [\"general-purpose\"]\n"));
    for (mode, socket) in modes {
        settings.push_str(&format!(
            "[[node]]\nname = \"{mode}\"\ndriver = \"hostile\"\nendpoint = \"unix://{}\"\n\
             capacity = {{ n_vcpus = 8, mem_gib = 8, disk_size_gib = 100 }}\n\
             cpu_tiers = [\"high-performance\"]\ngpus = [{{ model = \"{mode}\", count = 4 }}]\n\
             settings = {{ mode = \"{mode}\" }}\n",
            socket.display()
        ));
    }
    let server = Server::start(&settings).unwrap();
    let api = server.user("ann@example.com").unwrap();
    (server, api)
}

/// A container on the node of a mode.
fn on(mode: &str) -> Value {
    let mut body = wharf_tests::small("container");
    body["cpu_tier"] = "high-performance".into();
    body["gpu_model"] = mode.into();
    body
}

/// Creates one there as soon as the node was probed.
fn create_on(api: &Api, mode: &str) -> Value {
    wharf_tests::until(&format!("node {mode} takes an instance"), || {
        let answer = api.create(&on(mode))?;
        Ok((answer.status == 201).then_some(answer.body))
    })
    .unwrap()
}

fn uuid(instance: &Value) -> &str {
    instance["uuid"].as_str().unwrap()
}

/// Whether one line of the log holds all of these.
fn logged(server: &Server, words: &[&str]) -> bool {
    let log = server.log();
    log.lines()
        .any(|line| words.iter().all(|word| line.contains(word)))
}
