//! The `[tls]` section of the configuration.

use std::path::Path;
use std::process::Command;
use wharf_tests::{Ports, Server, simulated_node};

/// The settings of a new certificate of its own authority, for 127.0.0.1.
pub fn self_signed(dir: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    format!(
        "[tls]\ncert = \"{}\"\nkey = \"{}\"\n",
        cert.display(),
        key.display()
    )
}

#[test]
fn with_a_certificate_the_interface_is_https() {
    let dir = tempfile::tempdir().unwrap();
    let tls = self_signed(dir.path());
    let settings = format!(
        "{tls}{}{}",
        Ports::take().settings(),
        simulated_node("one", "")
    );
    let server = Server::start(&settings).unwrap();
    assert!(server.base_url().starts_with("https://127.0.0.1:"));
    let wharf_key = server.cli(&["key", "new", "ann@example.com"]).unwrap();
    let get = |protocol: &str| {
        let output = Command::new("curl")
            .args([
                "-sS",
                protocol,
                "-w",
                " %{http_code} %{http_version}",
                "--cacert",
            ])
            .arg(dir.path().join("cert.pem"))
            .args(["-H", &format!("Authorization: Bearer {}", wharf_key.trim())])
            .arg(format!("{}/api/instance/", server.base_url()))
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(get("--http1.1"), "[] 200 1.1");
    assert_eq!(get("--http2"), "[] 200 2");
    server.finish().unwrap();
}

#[test]
fn an_unusable_certificate_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, "nothing").unwrap();
    std::fs::write(&key, "nothing").unwrap();
    let tls = format!(
        "[tls]\ncert = \"{}\"\nkey = \"{}\"\n",
        cert.display(),
        key.display()
    );
    let Err(error) = Server::start(&format!("{tls}{}", simulated_node("one", ""))) else {
        panic!("started without a certificate");
    };
    assert!(format!("{error:#}").contains("cert.pem"), "{error:#}");
}
