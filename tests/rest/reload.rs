//! SIGHUP: the configuration and the certificate are read again.

use crate::{Expected, edit, start_under, until_logged, uuid};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use wharf_tests::{Api, Ports, Server, simulated_node};

fn start() -> (Server, Api) {
    let rates = "[rates.general-purpose]\nvcpu = 0.5\n";
    start_under(rates, "")
}

#[test]
fn a_rate_changes_for_new_instances_only() {
    let (server, api) = start();
    let first = api.small_container().unwrap();
    edit(&server, "vcpu = 0.5", "vcpu = 0.75");
    server.hang_up().unwrap();
    until_logged(&server, "the configuration is reloaded");
    let second = api.small_container().unwrap();
    let rate = |created: &serde_json::Value| {
        let instance = api.instance(uuid(created)).is(200);
        instance["vcpu_cost_hourly_usd"].clone()
    };
    assert_eq!((rate(&first), rate(&second)), (json!(0.5), json!(0.75)));
}

#[test]
fn a_setting_that_needs_a_restart_is_named_and_nothing_changes() {
    let (server, api) = start();
    edit(&server, "vcpu = 0.5", "vcpu = 0.75");
    edit(&server, "127.0.0.1:0", "127.0.0.1:1");
    server.hang_up().unwrap();
    until_logged(&server, "only a restart can change `listen`");
    edit(&server, "listen = ", "listne = ");
    server.hang_up().unwrap();
    until_logged(&server, "unknown field `listne`");
    let created = api.small_container().unwrap();
    let instance = api.instance(uuid(&created)).is(200);
    assert_eq!(instance["vcpu_cost_hourly_usd"], json!(0.5));
    edit(
        &server,
        "listne = \"127.0.0.1:1\"",
        "listen = \"127.0.0.1:0\"",
    );
}

#[test]
fn a_new_certificate_is_served_and_a_broken_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    let authority = dir.path().join("trusted.pem");
    let write = || {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        std::fs::write(&authority, made.cert.pem()).unwrap();
    };
    write();
    let tls = format!("[tls]\ncert = {cert:?}\nkey = {key:?}\n");
    let settings = format!(
        "{tls}{}{}",
        Ports::take().settings(),
        simulated_node("one", "")
    );
    let server = crate::serve(&settings);
    let trusts = |authority: &Path| {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--cacert"]).arg(authority);
        curl.arg(format!("{}/healthz", server.base_url()));
        curl.output().unwrap().status.success()
    };
    assert!(trusts(&authority));
    write();
    assert!(!trusts(&authority));
    server.hang_up().unwrap();
    until_logged(&server, "the configuration is reloaded");
    assert!(trusts(&authority));
    std::fs::write(&cert, "nothing").unwrap();
    server.hang_up().unwrap();
    until_logged(
        &server,
        "the configuration stays as it was: setting `tls.cert`",
    );
    assert!(trusts(&authority));
}
