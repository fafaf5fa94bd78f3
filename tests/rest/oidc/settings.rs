//! The settings of the provider, and a provider that is out of reach.

use super::provider::{Account, Provider, SECRET};
use super::{EXAMPLE_COM, ProviderSetup, SignInPage, settings};
use crate::sign_in::{ANN, ConsoleBrowser};
use crate::{Expected, free_port, has, start, stores_none};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use wharf_tests::{Server, write_private};

#[test]
fn the_secret_is_protected_and_the_allow_list_is_needed() {
    let secrets = tempfile::tempdir().unwrap();
    let secret = secrets.path().join("secret");
    write_private(&secret, SECRET.as_bytes()).unwrap();
    let refused =
        |issuer: &str, more: &str| Server::refused(&settings(issuer, &secret, more)).unwrap();
    let issuer = "https://login.example.org";
    let message = refused(issuer, "");
    has(&message, "`oidc.allow_domains`");
    has(&message, "allow_emails");
    let message = refused("http://192.0.2.1:80", EXAMPLE_COM);
    has(&message, "`oidc.issuer` must be an https URL");
    fs::set_permissions(&secret, Permissions::from_mode(0o640)).unwrap();
    let message = refused(issuer, EXAMPLE_COM);
    for part in ["`oidc.client_secret_file`", "mode 0640", "chmod 0600"] {
        has(&message, part);
    }
    fs::remove_file(&secret).unwrap();
    let message = refused(issuer, EXAMPLE_COM);
    assert!(message.contains("`oidc.client_secret_file`"), "{message}");
}

#[test]
fn a_provider_out_of_reach_fails_neither_the_start_nor_other_ways_to_sign_in() {
    let address = format!("127.0.0.1:{}", free_port());
    let secrets = tempfile::tempdir().unwrap();
    let secret = secrets.path().join("secret");
    write_private(&secret, SECRET.as_bytes()).unwrap();
    let issuer = format!("http://{address}");
    let server = crate::serve(&settings(&issuer, &secret, EXAMPLE_COM));
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
    stores_none(&server, &[SECRET]);
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
}
