//! Hostile plugins, as real components in a real server, beside a healthy node.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod answers;
mod burden;
mod docker;
mod engine;
mod fixtures;
mod flavors;
mod imports;
mod incus;
mod registries;
mod requests;

use fixtures::Plugins;
use serde_json::Value;
use std::path::Path;
use wharf_tests::{Api, Ports, Server, simulated_node};

/// Small limits, so that plugins exceed them soon.
const LIMITS: &str = "[limits]\ncall_cpu_ms = 300\ncall_timeout_ms = 2000\nguest_memory_mib = 32\n\
    observe_every_ms = 500\nanswer_wait_ms = 2000\n";

/// Starts a server with a healthy simulated node and one hostile node per mode. Each hostile node
/// has its own engine socket and GPU model; a test selects it by the model.
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

/// A request for a container on the node of a mode.
fn on(mode: &str) -> Value {
    let mut body = wharf_tests::small("container");
    body["cpu_tier"] = "high-performance".into();
    body["gpu_model"] = mode.into();
    body
}

/// Creates one as soon as the node's probe has succeeded.
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

/// Returns whether a line of the log contains all of the words.
fn logged(server: &Server, words: &[&str]) -> bool {
    let log = server.log();
    log.lines()
        .any(|line| words.iter().all(|word| line.contains(word)))
}
