//! Files that other accounts of the machine could change, pinned plugins, and plain HTTP.

use crate::compiled::set_mode;
use crate::{edit, has};
use std::fs;
use std::process::Command;
use wharf_testkit::workspace::root;
use wharf_tests::{Ports, Server, simulated_node};

const PLUGIN: &str = "target/plugins/wasm32-wasip2/plugin/driver_simulated.wasm";

fn settings(more: &str) -> String {
    format!(
        "{more}{}{}",
        Ports::take().settings(),
        simulated_node("one", "")
    )
}

/// The reason why the server does not start.
fn refused(server: &mut Server) -> String {
    let error = server.run().expect_err("the server started");
    format!("{error:#}")
}

#[test]
fn open_modes_are_refused_with_their_remedy() {
    let mut server = crate::serve(&settings(""));
    server.terminate().unwrap();
    let data = server.data_dir();
    for (path, bad, good, remedy) in [
        (data.clone(), 0o777, 0o700, "chmod go-w"),
        (data.clone(), 0o770, 0o700, "chmod go-w"),
        (data.join("secret.key"), 0o640, 0o600, "chmod 0600"),
    ] {
        set_mode(&path, bad);
        let message = refused(&mut server);
        let shown = format!("{} has mode {bad:04o}", path.display());
        for part in [shown.as_str(), remedy, "data_dir"] {
            has(&message, part);
        }
        set_mode(&path, good);
    }
    server.run().unwrap();
}

#[test]
fn a_data_directory_of_another_account_is_refused() {
    if !wharf_testkit::process::is_root() {
        println!("SKIPPED: needs root");
        return;
    }
    let mut server = crate::serve(&settings(""));
    server.terminate().unwrap();
    let data = server.data_dir();
    std::os::unix::fs::chown(&data, Some(4321), None).unwrap();
    let message = refused(&mut server);
    assert!(message.contains("belongs to user 4321"), "{message}");
    std::os::unix::fs::chown(&data, Some(0), None).unwrap();
    server.run().unwrap();
}

#[test]
fn plugins_that_others_can_change_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let plugin = dir.path().join("driver-mine.wasm");
    fs::copy(root().join(PLUGIN), &plugin).unwrap();
    let at = format!("plugins_dir = \"{}\"\n", dir.path().display());
    for path in [dir.path(), &plugin] {
        set_mode(path, 0o777);
        let message = Server::refused(&settings(&at)).unwrap();
        let path_text = path.display().to_string();
        for part in ["plugins_dir", "mode 0777", "chmod go-w", &path_text] {
            has(&message, part);
        }
        set_mode(path, 0o700);
    }
    Server::start(&settings(&at)).unwrap().finish().unwrap();
}

#[test]
fn a_pinned_plugin_has_its_hash_or_does_not_load() {
    let dir = tempfile::tempdir().unwrap();
    let plugin = dir.path().join("driver-mine.wasm");
    fs::copy(root().join(PLUGIN), &plugin).unwrap();
    let sum = Command::new("sha256sum")
        .arg(&plugin)
        .output()
        .unwrap()
        .stdout;
    let sum = String::from_utf8(sum).unwrap();
    let sum = sum.split_whitespace().next().unwrap();
    let pinned = |pins: &str| {
        let at = format!("plugins_dir = \"{}\"\n", dir.path().display());
        settings(&format!("{at}[plugins]\n{pins}\n"))
    };
    let right = format!("\"driver-mine.wasm\" = \"sha256:{sum}\"");
    Server::start(&pinned(&right)).unwrap().finish().unwrap();
    let other = "0".repeat(64);
    for (pins, part) in [
        (
            format!("\"driver-mine.wasm\" = \"sha256:{other}\""),
            "not the pinned one",
        ),
        (
            format!("{right}\n\"driver-gone.wasm\" = \"sha256:{other}\""),
            "driver-gone.wasm",
        ),
        (
            format!("{right}\n\"driver-docker.wasm\" = \"sha256:{other}\""),
            "driver-docker.wasm",
        ),
        (
            "\"driver-mine.wasm\" = \"md5:1\"".to_owned(),
            "plugins.driver-mine.wasm",
        ),
    ] {
        has(Server::refused(&pinned(&pins)).unwrap(), part);
    }
    fs::copy(&plugin, dir.path().join("driver-more.wasm")).unwrap();
    let message = Server::refused(&pinned(&right)).unwrap();
    has(&message, "driver-more.wasm has no hash");
}

#[test]
fn plain_http_on_an_address_for_other_machines_is_warned_about() {
    const WARNING: &str = "plain HTTP on an address that other machines reach";
    let mut server = crate::serve(&settings(""));
    assert!(!server.log().contains(WARNING), "on loopback");
    server.terminate().unwrap();
    edit(&server, "127.0.0.1:0", "0.0.0.0:0");
    server.run().unwrap();
    has(server.log(), WARNING);
    server.terminate().unwrap();
}
