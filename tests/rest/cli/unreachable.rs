//! Proxies of the environment, and servers that are not reached: messages name the server and the reason.

use super::signed_in;
use crate::{free_port, has, start, start_under};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use wharf_tests::{Authority, Ports, Server, Shell, metric, simulated_node, until, wharf_binary};

/// A proxy that answers all requests with a status. Returns its URL and the bytes that it gets.
fn proxy(status: &'static str) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).unwrap_or_default();
            kept.lock().unwrap().extend_from_slice(&bytes[..length]);
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (url, seen)
}

#[test]
fn a_server_on_this_machine_is_reached_without_a_proxy() {
    let (_server, _, shell) = signed_in("");
    let (url, seen) = proxy("502 Bad Gateway");
    for variable in ["http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
        let listed = shell.run_with(&["ls"], &[(variable, &url)], "").unwrap();
        assert_eq!(listed.code, Some(0), "{variable}: {listed:?}");
    }
    let seen = String::from_utf8_lossy(&seen.lock().unwrap()).into_owned();
    assert_eq!(seen, "", "the proxy saw a request");
}

#[test]
fn failures_name_the_proxy() {
    let shell = Shell::new().unwrap();
    let far = [
        ("WHARF_URL", "http://wharf.invalid:81"),
        ("WHARF_API_KEY", "wharf_x_y"),
    ];
    let run = |proxy: &str| {
        let variables = [far[0], far[1], ("http_proxy", proxy)];
        shell.run_with(&["ls"], &variables, "").unwrap()
    };
    let gone = format!("127.0.0.1:{}", free_port());
    let refused = run(&format!("http://ann:secret@{gone}"));
    assert_eq!(refused.code, Some(6), "{refused:?}");
    has(&refused.stderr, "http://wharf.invalid:81/");
    has(&refused.stderr, format!("through the proxy http://{gone} "));
    has(&refused.stderr, "nothing accepts connections there");
    assert!(!refused.stderr.contains("secret"), "{refused:?}");
    let (url, _) = proxy("407 Proxy Authentication Required");
    let refused = run(&url);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    has(&refused.stderr, format!("the proxy {url} "));
    has(&refused.stderr, "407");
}

/// Starts a server with the certificate and key of these files.
fn with_tls(cert: &Path, key: &Path) -> Server {
    let (cert, key) = (cert.display(), key.display());
    let tls = format!("[tls]\ncert = \"{cert}\"\nkey = \"{key}\"\n");
    let settings = format!(
        "{tls}{}{}",
        Ports::take().settings(),
        simulated_node("one", "")
    );
    crate::serve(&settings)
}

#[test]
fn each_failure_names_the_server_and_what_is_wrong() {
    let shell = Shell::new().unwrap();
    let fails = |url: &str, ca: Option<&Path>, words: &str| {
        let ca = ca.map(|ca| ("SSL_CERT_FILE", ca.to_str().unwrap()));
        let mut variables = vec![("WHARF_URL", url), ("WHARF_API_KEY", "wharf_x_y")];
        variables.extend(ca);
        let ended = shell.run_with(&["ls"], &variables, "").unwrap();
        assert_eq!(ended.code, Some(6), "{url}: {ended:?}");
        has(&ended.stderr, format!("{url}/"));
        has(&ended.stderr, words);
    };
    let url = format!("http://127.0.0.1:{}", free_port());
    fails(&url, None, "nothing accepts connections there");
    fails("http://wharf.invalid", None, "its host name has no address");

    let (plain, _) = start();
    let url = plain.base_url().replace("http://", "https://");
    fails(&url, None, "its URL begins with http://");
    plain.finish().unwrap();

    let (authority, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let issued = authority.issue("server", &["127.0.0.1"]).unwrap();
    let server = with_tls(&issued.cert, &issued.key);
    let url = server.base_url();
    let http = url.replace("https://", "http://");
    fails(&http, None, "its URL begins with https://");
    fails(url, Some(&other.ca()), "SSL_CERT_FILE");
    let named = url.replace("127.0.0.1", "localhost");
    fails(&named, Some(&authority.ca()), "for another host name");
    server.finish().unwrap();
    let expired = authority.issue_expired("old", &["127.0.0.1"]).unwrap();
    let server = with_tls(&expired.cert, &expired.key);
    fails(server.base_url(), Some(&authority.ca()), "has expired");
    server.finish().unwrap();

    // The certificate of an authority as the server's own.
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pair = KeyPair::generate().unwrap();
    std::fs::write(&cert, params.self_signed(&pair).unwrap().pem()).unwrap();
    std::fs::write(&key, pair.serialize_pem()).unwrap();
    let server = with_tls(&cert, &key);
    fails(
        server.base_url(),
        Some(&cert),
        "its certificate is that of an authority",
    );
}

#[test]
fn a_command_waits_for_as_long_as_a_busy_server_asks() {
    let (server, ann) = start_under("[limits]\nrequests_per_second = 1\n", "");
    let shell = Shell::new().unwrap();
    let variables = [
        ("WHARF_URL", server.base_url()),
        ("WHARF_API_KEY", ann.key()),
    ];
    let refusals = || {
        // Each look has a key of its own, since it takes a request from its rate.
        let looks = server.user("op@example.com")?;
        let of_lists = "wharf_http_request_duration_seconds_count{method=\"GET\",\
                        route=\"/api/instance/\",status=\"429\"";
        metric(&looks, of_lists)
    };
    // A command that starts slowly finds that the key may send a request again.
    let met = until("a command meets the busy server", || {
        let before = refusals()?;
        while ann.get("/api/instance/")?.status != 429 {}
        shell.run_with(&["ls"], &variables, "")?.succeeded()?;
        let met = refusals()? - before - 1.0;
        Ok((met > 0.0).then_some(met))
    });
    // A command that comes back too early is refused again.
    assert_eq!(met.unwrap(), 1.0);
}

#[test]
fn commands_of_the_operator_need_no_trusted_certificates() {
    let server = crate::serve(&simulated_node("one", ""));
    let listed = Command::new(wharf_binary())
        .args(["key", "list", "--config"])
        .arg(server.config_path())
        .envs([
            ("SSL_CERT_FILE", "/dev/null"),
            ("SSL_CERT_DIR", "/nonexistent"),
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&listed.stderr);
    assert!(listed.status.success(), "{said}");
}
