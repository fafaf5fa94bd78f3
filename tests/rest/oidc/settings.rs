//! The settings of the provider, and a provider that is out of reach.

use super::provider::{Account, Provider, SECRET};
use super::{EXAMPLE_COM, ProviderSetup, SignInPage, settings};
use crate::sign_in::{ANN, ConsoleBrowser};
use crate::{Expected, start};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use wharf_tests::{Server, write_private};

#[test]
fn the_secret_is_protected_and_the_allow_list_is_needed() {
    let secrets = tempfile::tempdir().unwrap();
    let secret = secrets.path().join("secret");
    write_private(&secret, SECRET.as_bytes()).unwrap();
    let refused = |issuer: &str, more: &str| {
        let started = Server::start(&settings(issuer, &secret, more));
        let error = started.err().expect("the server started");
        format!("{error:#}")
    };
    let issuer = "https://login.example.org";
    let message = refused(issuer, "");
    assert!(
        message.contains("`oidc.allow_domains`") && message.contains("allow_emails"),
        "{message}"
    );
    let message = refused(issuer, "allow_domains = [\"@example.com\"]");
    assert!(message.contains("`oidc.allow_domains`"), "{message}");
    for plain in ["http://login.example.org", "http://192.0.2.1:80", "login"] {
        let message = refused(plain, EXAMPLE_COM);
        assert!(
            message.contains("`oidc.issuer` must be an https URL"),
            "{message}"
        );
    }
    fs::set_permissions(&secret, Permissions::from_mode(0o640)).unwrap();
    let message = refused(issuer, EXAMPLE_COM);
    for part in ["`oidc.client_secret_file`", "mode 0640", "chmod 0600"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
    fs::remove_file(&secret).unwrap();
    let message = refused(issuer, EXAMPLE_COM);
    assert!(message.contains("`oidc.client_secret_file`"), "{message}");
}

#[test]
fn a_provider_out_of_reach_fails_neither_the_start_nor_other_ways_to_sign_in() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let secrets = tempfile::tempdir().unwrap();
    let secret = secrets.path().join("secret");
    write_private(&secret, SECRET.as_bytes()).unwrap();
    let issuer = format!("http://{address}");
    let server = Server::start(&settings(&issuer, &secret, EXAMPLE_COM)).unwrap();
    let page = || SignInPage::get(&format!("{}/auth/oidc/", server.base_url()), "");
    let refused = page();
    assert_eq!(
        (refused.status, refused.location.as_str()),
        (303, "/sign-in#unreachable")
    );
    ConsoleBrowser::new(&server).accept(&server, ANN);
    let provider = Provider::start_at(&address, Account::new("ann-1", ANN));
    let setup = ProviderSetup {
        server,
        provider,
        _secrets: secrets,
    };
    setup.sign_in().unwrap();
    // The secret is never shown.
    let mut server = setup.server;
    server.terminate().unwrap();
    let wrote = server.data_and_log().unwrap();
    let secret = SECRET.as_bytes();
    assert!(!wrote.windows(secret.len()).any(|part| part == secret));
}

#[test]
fn without_a_provider_there_is_no_way_to_one() {
    let (server, _) = start();
    let browser = ConsoleBrowser::new(&server);
    let options = browser.get("/auth/options/").is(200);
    assert_eq!(options["provider"], Value::Null);
    for path in ["/auth/oidc/", "/auth/oidc/callback/?state=x&code=y"] {
        assert_eq!(browser.get(path).status, 404, "{path}");
    }
    server.finish().unwrap();
}
