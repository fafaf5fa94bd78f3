//! Reports of proofs, and servers that require them.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;
use wharf_testkit::workspace::{plugin_of_tests, target};
use wharf_tests::proof::prove;
use wharf_tests::{Ports, Server, simulated_node, succeed, until};

/// A directory of plugins with a driver for the simulated engine that is not part of Wharf.
struct Installed {
    dir: TempDir,
    ports: Ports,
}

/// A component with another hash: a custom section follows, which means nothing.
fn changed(component: &[u8], name: u8) -> Vec<u8> {
    [component, &[0, 3, 1, name, 0]].concat()
}

impl Installed {
    fn new() -> Self {
        let installed = Self {
            dir: tempfile::tempdir().unwrap(),
            ports: Ports::take(),
        };
        let built = target().join("plugins/wasm32-wasip2/plugin/driver_simulated.wasm");
        let built = fs::read(built).unwrap();
        fs::write(installed.driver(), changed(&built, b'a')).unwrap();
        installed
    }

    fn driver(&self) -> PathBuf {
        self.dir.path().join("driver-own.wasm")
    }

    fn report(&self) -> PathBuf {
        self.dir.path().join("driver-own.proof.json")
    }

    fn node(&self) -> String {
        let node = simulated_node("one", "").replace("\"simulated\"", "\"own\"");
        self.ports.settings() + &node
    }

    /// The settings of a server that requires proofs, or not.
    fn settings(&self, required: bool) -> String {
        let dir = self.dir.path();
        let setting = format!("[plugins]\nrequire_proof = {required}\n");
        format!("plugins_dir = {dir:?}\n{setting}{}", self.node())
    }

    fn prove(&self, more: &[&str]) -> (bool, String) {
        let (driver, report) = (self.driver(), self.report());
        let report = ["--report", report.to_str().unwrap()];
        let arguments = [&["--image", "base", "--ssh"], &report[..], more].concat();
        prove(driver.to_str().unwrap(), "one", &self.node(), &arguments).unwrap()
    }

    /// The error of a server that requires proofs.
    fn refused(&self) -> String {
        Server::refused(&self.settings(true)).unwrap()
    }

    /// Changes the report, and returns the error of a server.
    fn refused_with(&self, member: &str, value: Value) -> String {
        let original = fs::read(self.report()).unwrap();
        let mut report: Value = serde_json::from_slice(&original).unwrap();
        report[member] = value;
        fs::write(self.report(), report.to_string()).unwrap();
        let error = self.refused();
        fs::write(self.report(), original).unwrap();
        error
    }
}

#[test]
fn a_server_that_requires_proofs_refuses_a_driver_without_one() {
    let installed = Installed::new();
    let error = installed.refused();
    let command = format!(
        "wharf plugin prove {} --report {}",
        installed.driver().display(),
        installed.report().display()
    );
    for part in [
        "`plugins.require_proof`",
        "driver-own",
        "there is no report",
        &command,
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // A report of some promises is no proof.
    let (ok, said) = installed.prove(&["--filter", "absent"]);
    assert!(ok, "{said}");
    let error = installed.refused();
    assert!(error.contains("partial"), "{error}");
    let (ok, said) = installed.prove(&[]);
    assert!(ok && said.contains(" 0 failed"), "{said}");
    Server::start(&installed.settings(true))
        .unwrap()
        .finish()
        .unwrap();
    // It holds for these files and this suite.
    let other = format!("sha256:{}", "0".repeat(64));
    for (member, value, part) in [
        ("component", json!(other), "a component with"),
        ("requests", json!(other), "a request file with"),
        ("engine", json!("docker"), "engines of the kind"),
        ("suite", json!(0), "the suite of version 0"),
        ("promises", json!("all"), "cannot be read"),
    ] {
        let error = installed.refused_with(member, value);
        assert!(error.contains(part), "{part}: {error}");
    }
    let component = fs::read(installed.driver()).unwrap();
    fs::write(installed.driver(), changed(&component, b'b')).unwrap();
    let error = installed.refused();
    assert!(error.contains("a component with"), "{error}");
    // The drivers of the program need none.
    fs::remove_file(installed.driver()).unwrap();
    let settings = installed.settings(true).replace("\"own\"", "\"simulated\"");
    Server::start(&settings).unwrap().finish().unwrap();
}

#[test]
fn a_reload_refuses_a_driver_without_a_proof_too() {
    let installed = Installed::new();
    let server = Server::start(&installed.settings(false)).unwrap();
    let set = |required: bool| {
        let text = fs::read_to_string(server.config_path()).unwrap();
        let (old, new) = (format!("= {}", !required), format!("= {required}"));
        let (old, new) = (
            format!("require_proof {old}"),
            format!("require_proof {new}"),
        );
        fs::write(server.config_path(), text.replace(&old, &new)).unwrap();
    };
    let reloads = |text: &str| {
        let before = server.log().matches(text).count();
        server.hang_up().unwrap();
        until(text, || {
            Ok((server.log().matches(text).count() > before).then_some(()))
        })
        .unwrap();
    };
    set(true);
    reloads("the configuration stays as it was: setting `plugins.require_proof`");
    let (ok, said) = installed.prove(&[]);
    assert!(ok, "{said}");
    reloads("the configuration is reloaded");
    let report = fs::read_to_string(installed.report()).unwrap();
    fs::remove_file(installed.report()).unwrap();
    reloads("there is no report");
    set(false);
    reloads("the configuration is reloaded");
    server.finish().unwrap();
    // Another version of the engine is a warning.
    let line = report.lines().find(|line| line.contains("engine_version"));
    let other = report.replace(line.unwrap(), "\"engine_version\": \"an earlier one\",");
    fs::write(installed.report(), other).unwrap();
    let server = Server::start(&installed.settings(true)).unwrap();
    until("a warning", || {
        let text = "driver-own is proven on an earlier one";
        Ok(server.log().contains(text).then_some(()))
    })
    .unwrap();
    server.finish().unwrap();
}

/// The reports of a driver that breaks promises, for programs and for people.
#[test]
fn a_report_has_every_promise_with_its_result_and_reason() {
    let mut installed = Installed::new();
    fs::copy(plugin_of_tests("faulty_driver.wasm"), installed.driver()).unwrap();
    installed.ports = Ports::take();
    let junit = installed.dir.path().join("junit.xml");
    let node = simulated_node("one", "mode = \"well\"")
        .replace("\"simulated\"", "\"own\"")
        .replace("simulated:", "unix:///nonexistent/engine.sock");
    let settings = installed.ports.settings() + &node;
    let (driver, report) = (installed.driver(), installed.report());
    let arguments = [
        ["--image", "base"],
        ["--ssh", "--deadline=1"],
        ["--report", report.to_str().unwrap()],
        ["--junit", junit.to_str().unwrap()],
    ]
    .concat();
    let (ok, said) = prove(driver.to_str().unwrap(), "one", &settings, &arguments).unwrap();
    assert!(!ok, "{said}");
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    let promises = report["promises"].as_array().unwrap();
    for checked in promises {
        let (name, result) = (&checked["promise"], checked["result"].as_str().unwrap());
        let word = match result {
            "kept" => "pass",
            "not-applicable" => "skip",
            _ => "FAIL",
        };
        assert!(said.contains(&format!("{word}  {}", name.as_str().unwrap())));
        assert_eq!(checked["reason"].is_string(), result != "kept", "{checked}");
        assert!(checked["duration_ms"].is_u64(), "{checked}");
        let reason = checked["reason"].as_str().unwrap_or_default();
        assert!(said.contains(reason), "{reason}");
    }
    // Python reads the same names, results and reasons.
    let read = "import json, sys, xml.etree.ElementTree as tree\n\
        suite = tree.parse(sys.argv[1]).getroot()[0]\n\
        print(json.dumps({'counts': dict(suite.attrib), 'cases': [\n\
        [case.get('name'), [[e.tag, e.get('message')] for e in case]] for case in suite]}))";
    let read = succeed(Command::new("python3").args(["-c", read]).arg(&junit)).unwrap();
    let read: Value = serde_json::from_str(&read).unwrap();
    let cases: Vec<Value> = promises
        .iter()
        .map(|checked| {
            let reason = &checked["reason"];
            match checked["result"].as_str().unwrap() {
                "kept" => json!([checked["promise"], []]),
                "broken" => json!([checked["promise"], [["failure", reason]]]),
                _ => json!([checked["promise"], [["skipped", reason]]]),
            }
        })
        .collect();
    assert_eq!(read["cases"], json!(cases));
    assert_eq!(read["counts"]["tests"], json!(promises.len().to_string()));
    let broken = promises
        .iter()
        .filter(|one| one["result"] == "broken")
        .count();
    assert_eq!(read["counts"]["failures"], json!(broken.to_string()));
    assert!(broken > 0, "{said}");
    let error = installed.refused();
    assert!(error.contains("broke a promise"), "{error}");
}
