//! The certificate of the pages.

use crate::{Expected, until_logged};
use std::path::Path;
use std::process::Command;
use wharf_tests::{Authority, Certificate, Ports, simulated_node};

/// The subject of the certificate that the pages show.
fn shown(port: u16, ca: &Path) -> String {
    let host = format!("demo.pages.example:{port}:127.0.0.1");
    let output = Command::new("curl")
        .args(["-sv", "--resolve", &host, "--cacert"])
        .arg(ca)
        .arg(format!("https://demo.pages.example:{port}/"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("HTTP/2 401"), "{said}");
    said
}

fn copy(certificate: &Certificate, dir: &Path) {
    std::fs::copy(&certificate.cert, dir.join("pages.crt")).unwrap();
    std::fs::copy(&certificate.key, dir.join("pages.key")).unwrap();
}

#[test]
fn pages_have_a_certificate_of_their_own_which_follows_its_files() {
    let authority = Authority::new().unwrap();
    let issue = |name: &str| authority.issue(name, &["*.pages.example"]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    copy(&issue("first"), dir.path());
    let ports = Ports::take().settings();
    let files = dir.path().display();
    let settings = format!(
        "[pages]\ndomain = \"pages.example\"\nlisten = \"127.0.0.1:0\"\ncert = \"{files}/pages.crt\"\n\
         key = \"{files}/pages.key\"\n{ports}{}",
        simulated_node("one", "")
    );
    let server = crate::serve(&settings);
    let ann = server.user("ann@example.com").unwrap();
    let body = crate::with(
        "container",
        serde_json::json!({ "flavor": "marimo", "name": "demo" }),
    );
    let made = ann.create(&body).is(201);
    let url = made["webapp_url"].as_str().unwrap();
    assert!(url.starts_with("https://demo.pages.example:"), "{url}");
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap();
    let port = port.parse().unwrap();
    let ca = authority.ca();
    assert!(shown(port, &ca).contains("CN=first"));
    // A broken file changes nothing, and a signal is not needed.
    std::fs::write(dir.path().join("pages.crt"), "nothing").unwrap();
    until_logged(&server, "the earlier one stays");
    assert!(shown(port, &ca).contains("CN=first"));
    copy(&issue("second"), dir.path());
    until_logged(&server, "is read again");
    assert!(shown(port, &ca).contains("CN=second"));
    copy(&issue("third"), dir.path());
    server.hang_up().unwrap();
    until_logged(&server, "the configuration is reloaded");
    assert!(shown(port, &ca).contains("CN=third"));
}
