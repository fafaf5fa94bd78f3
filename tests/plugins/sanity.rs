//! The sanity suite for drivers, on a driver that keeps the promises and on one that breaks them.

use crate::celld::{Celld, is_possible};
use wharf_testkit::workspace::plugin_of_tests;
use wharf_tests::proof::prove;
use wharf_tests::{Ports, Server, simulated_node};

#[test]
fn the_example_driver_keeps_its_promises() {
    if !is_possible() {
        return;
    }
    let celld = Celld::start();
    let driver = celld.plugins().join("driver-cells.wasm");
    let driver = driver.to_str().unwrap();
    let report = celld.plugins().join("driver-cells.proof.json");
    let arguments = [
        ["--image", "notes"],
        ["--web-port", "8000"],
        ["--web-path", "/health"],
        ["--report", report.to_str().unwrap()],
    ]
    .concat();
    let (ok, said) = prove(driver, "cells", &celld.settings(), &arguments).unwrap();
    assert!(ok, "{said}");
    // It has neither volumes nor snapshots, and keeps every other promise.
    let without = ["probe: no volumes", "probe: no snapshots"];
    let skipped: usize = without.map(|why| said.matches(why).count()).iter().sum();
    let skipped = format!(" 0 failed, {skipped} skipped");
    assert!(said.contains(&skipped), "{said}");
    assert!(celld.cells().is_empty(), "{said}");
    // Its report is enough for a server that asks for one.
    let required = "[plugins]\nrequire_proof = true\n";
    let settings = celld.settings().replace("[plugins]\n", required);
    let directory = format!("plugins_dir = {:?}\n", celld.plugins());
    let server = Server::start(&(directory + &settings)).unwrap();
    server.finish().unwrap();
}

/// A store in a file has a mark of its own; one in memory has none to check.
#[test]
fn the_driver_of_the_simulated_engine_keeps_its_promises() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("one.engine");
    let settings = "late_attach = true, content = true, volume_content = \"at_rest\"";
    let node = simulated_node("one", settings).replace(
        "\"simulated:\"",
        &format!("\"simulated://{}\"", file.display()),
    );
    let settings = format!("{}{node}", Ports::take().settings());
    let arguments = ["--image", "base", "--ssh"];
    let (ok, said) = prove("simulated", "one", &settings, &arguments).unwrap();
    assert!(ok, "{said}");
    // It is never out of reach.
    assert!(said.contains(" 0 failed, 1 skipped"), "{said}");
}

/// Any function of a driver may ask for a retry.
#[test]
fn a_driver_that_asks_for_retries_keeps_its_promises() {
    let fault =
        |call| format!("{{ call = \"{call}\", every = 3, error = \"retry\", after_ms = 5 }}");
    let faults = ["ensure", "start", "stop", "resize", "delete"].map(fault);
    let node = simulated_node("one", &format!("faults = [{}]", faults.join(", ")));
    let settings = format!("{}{node}", Ports::take().settings());
    let arguments = ["--image", "base", "--ssh"];
    let (ok, said) = prove("simulated", "one", &settings, &arguments).unwrap();
    assert!(ok && said.contains(" 0 failed"), "{said}");
}

#[test]
fn a_driver_of_clusters_keeps_its_promises_on_moves() {
    let node = |name| {
        format!(
            "{}cluster = \"east\"\n",
            simulated_node(name, "move_ms = 20")
        )
    };
    let settings = format!("{}{}{}", Ports::take().settings(), node("one"), node("two"));
    let arguments = ["--image", "base", "--ssh", "--filter", "move"];
    let (ok, said) = prove("simulated", "one", &settings, &arguments).unwrap();
    assert!(ok && said.contains("moves keep the disk"), "{said}");
    assert!(said.contains(" 0 failed, 0 skipped"), "{said}");
}

/// A plugin of the tests as a driver, and the settings of its node, whose engine is not there.
fn faulty(mode: &str) -> (tempfile::TempDir, String, String) {
    let plugins = tempfile::tempdir().unwrap();
    let driver = plugins.path().join("driver-faulty.wasm");
    std::fs::copy(plugin_of_tests("faulty_driver.wasm"), &driver).unwrap();
    let node = simulated_node("one", &format!("mode = \"{mode}\""))
        .replace("\"simulated\"", "\"faulty\"")
        .replace("simulated:", "unix:///nonexistent/engine.sock");
    let driver = driver.to_str().unwrap().to_owned();
    (plugins, driver, Ports::take().settings() + &node)
}

#[test]
fn a_driver_that_fails_at_once_breaks_its_first_promise() {
    let (_plugins, driver, settings) = faulty("panic");
    let arguments = ["--image", "base", "--ssh"];
    let (ok, said) = prove(&driver, "one", &settings, &arguments).unwrap();
    assert!(!ok, "{said}");
    assert!(said.contains("FAIL  probe reports a usable node"), "{said}");
    assert!(said.contains("on purpose"), "{said}");
    assert!(said.contains("0 passed, 1 failed, 0 skipped"), "{said}");
}

#[test]
fn broken_promises_are_found() {
    let (_plugins, driver, settings) = faulty("well");
    let arguments = ["--image", "base", "--ssh", "--deadline", "1"];
    let (ok, said) = prove(&driver, "one", &settings, &arguments).unwrap();
    assert!(!ok, "{said}");
    for promise in [
        "an engine that does not answer is unreachable, not empty",
        "an absent instance is reported as absent",
        "start, resize and stats of an absent instance are errors",
        "ensure brings an instance up, and its port answers",
        "another specification under a tag is a conflict",
        "another incarnation is another object",
        "a stopped instance is stopped, and stop again succeeds",
        "delete removes an instance that runs or is stopped",
    ] {
        assert!(said.contains(&format!("FAIL  {promise}")), "{said}");
    }
}
