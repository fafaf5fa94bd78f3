//! The `[tls]` section of the configuration.

use crate::has;
use std::path::Path;
use std::process::Command;
use wharf_tests::{Authority, Ports, Server, simulated_node};

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
    let server = crate::serve(&settings);
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
    let refused = Server::refused(&format!("{tls}{}", simulated_node("one", "")));
    has(refused.unwrap(), "cert.pem");
}

/// The address of an engine and the name in its certificate differ.
#[test]
fn images_are_those_of_the_address_whatever_the_name_of_its_certificate() {
    let authority = Authority::new().unwrap();
    let issued = authority.issue("engine", &["127.0.0.2"]).unwrap();
    let (cert, key) = (issued.cert.display(), issued.key.display());
    let tls = format!("[tls]\ncert = \"{cert}\"\nkey = \"{key}\"\n");
    let (ports, node) = (Ports::take().settings(), simulated_node("one", ""));
    // A server of Wharf speaks TLS as an engine does, and has none of its paths.
    let engine = crate::serve(&format!("{tls}{ports}{node}"));
    let own = authority.issue("wharf", &[]).unwrap();
    let own = own.node_tls(&authority.ca());
    for (name, words) in [("127.0.0.2", "missing"), ("127.0.0.3", "certificate")] {
        let named = own.replace(" }\n", &format!(", server_name = \"{name}\" }}\n"));
        let url = engine.base_url();
        let node = format!(
            "[[node]]\nname = \"far\"\ndriver = \"docker\"\nendpoint = \"{url}\"\n\
             capacity = {{ n_vcpus = 1, mem_gib = 1, disk_size_gib = 10 }}\n{named}"
        );
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("wharf.toml");
        let settings = "listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n";
        std::fs::write(&config, format!("{settings}{node}")).unwrap();
        let shown = Command::new(wharf_tests::wharf_binary())
            .args(["images", "--recipes"])
            .arg(wharf_testkit::images::recipes().directory)
            .arg("--config")
            .arg(&config)
            .output()
            .unwrap();
        let said = [shown.stdout, shown.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(words), "{name}: {said}");
    }
    engine.finish().unwrap();
}
