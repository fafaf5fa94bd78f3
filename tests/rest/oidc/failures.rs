//! Answers of providers that follow the standards in other ways, and the reasons of failures.

use super::provider::{Account, Provider};
use super::{EXAMPLE_COM, SignInPage, settings, setup};
use crate::sign_in::ANN;
use crate::{free_port, has, until_true};
use serde_json::{Value, json};
use wharf_tests::write_private;

fn account() -> Account {
    Account::new("ann-1", ANN)
}

/// An account whose token has no claims about its address, but the provider has them elsewhere.
fn thin(userinfo: Value) -> Account {
    Account {
        email: None,
        verified: None,
        userinfo: Some(userinfo),
        ..account()
    }
}

#[test]
fn claims_are_accepted_as_the_large_providers_send_them() {
    let with_claims = |claims: Value| Account {
        claims,
        ..account()
    };
    let apart = json!({ "sub": "ann-1", "email": ANN, "email_verified": true, "more": [] });
    for account in [
        with_claims(json!({ "email_verified": "true" })),
        with_claims(json!({ "email_verified": "True", "unknown": { "a": [1] } })),
        with_claims(json!({ "email_verified": 1 })),
        with_claims(json!({ "email_verified": null, "xms_edov": "1" })),
        thin(apart.clone()),
        Account {
            email: Some(ANN.to_owned()),
            ..thin(json!({ "sub": "ann-1", "email_verified": "true" }))
        },
        Account {
            header: json!({ "unknown": 1 }),
            members: json!({ "x5t": 1, "key_ops": "verify", "unknown": {} }),
            document: json!({ "unknown": {}, "scopes_supported": null }),
            ..account()
        },
        Account {
            document: json!({ "token_endpoint_auth_methods_supported": ["client_secret_post"] }),
            ..account()
        },
    ] {
        let setup = setup(EXAMPLE_COM);
        setup.server.user(ANN).unwrap();
        let shown = format!("{} {}", account.claims, account.document);
        setup.provider.set(account);
        let signed_in = setup.sign_in();
        assert!(signed_in.is_ok(), "{shown}: {:?}", signed_in.err());
    }
}

#[test]
fn claims_that_are_false_or_of_another_account_sign_nobody_in() {
    let setup = setup(EXAMPLE_COM);
    setup.server.user(ANN).unwrap();
    for verified in [json!("false"), json!("yes"), json!(0), json!({}), json!("")] {
        let claims = json!({ "email_verified": verified });
        let changed = Account {
            claims,
            ..account()
        };
        assert_eq!(setup.refusal(changed), "unverified", "{verified}");
    }
    let claims = json!({ "email": ["ann@example.com"] });
    let changed = Account {
        claims,
        ..account()
    };
    assert_eq!(setup.refusal(changed), "no-address");
    setup.server.finish().unwrap();
    // The document of the provider, which is read once, has the endpoint of claims.
    let setup = super::setup(EXAMPLE_COM);
    setup.server.user(ANN).unwrap();
    for (userinfo, reason) in [
        (
            json!({ "sub": "eve", "email": ANN, "email_verified": true }),
            "unusable",
        ),
        (json!({ "email": ANN, "email_verified": true }), "unusable"),
        (json!("a signed document"), "unusable"),
        (json!({ "sub": "ann-1", "email": ANN }), "unverified"),
        (
            json!({ "sub": "ann-1", "email": ANN, "email_verified": "false" }),
            "unverified",
        ),
        (json!({ "sub": "ann-1" }), "no-address"),
    ] {
        assert_eq!(setup.refusal(thin(userinfo.clone())), reason, "{userinfo}");
    }
}

#[test]
fn each_failure_of_a_provider_has_its_own_word() {
    let setup = setup(EXAMPLE_COM);
    setup.server.user(ANN).unwrap();
    for (status, body, reason) in [
        (
            "400 Bad Request",
            json!({ "error": "invalid_grant" }),
            "code",
        ),
        (
            "401 Unauthorized",
            json!({ "error": "invalid_client" }),
            "client",
        ),
        (
            "400 Bad Request",
            json!({ "error": "unauthorized_client" }),
            "client",
        ),
        (
            "400 Bad Request",
            json!({ "error": { "message": "no" } }),
            "failed",
        ),
        ("500 Internal Server Error", json!("sorry"), "failed"),
        ("302 Found", json!({}), "failed"),
        ("200 OK", json!("sorry"), "unusable"),
        ("200 OK", json!({ "access_token": "a" }), "unusable"),
        ("200 OK", json!({ "id_token": "a" }), "token"),
    ] {
        let refusal = Some((status, body.clone()));
        let refused = Account {
            refusal,
            ..account()
        };
        assert_eq!(setup.refusal(refused), reason, "{status} {body}");
    }
    for (error, reason) in [
        ("access_denied", "denied"),
        ("login_required", "denied"),
        ("temporarily_unavailable", "failed"),
        ("invalid_scope", "failed"),
    ] {
        let denies = Some(error);
        assert_eq!(
            setup.refusal(Account {
                denies,
                ..account()
            }),
            reason,
            "{error}"
        );
    }
}

/// The reason for which a sign-in does not begin.
fn begun(issuer: &str) -> String {
    let secrets = tempfile::tempdir().unwrap();
    let secret = secrets.path().join("secret");
    write_private(&secret, b"secret").unwrap();
    let server = crate::serve(&settings(issuer, &secret, EXAMPLE_COM));
    let page = SignInPage::get(&format!("{}/auth/oidc/", server.base_url()), "");
    until_true("the log has the reason", || {
        server.log().contains("the provider cannot be used")
    });
    server.finish().unwrap();
    page.location.strip_prefix("/sign-in#").unwrap().to_owned()
}

#[test]
fn only_a_provider_that_was_not_reached_is_unreachable() {
    let closed = format!("http://127.0.0.1:{}", free_port());
    assert_eq!(begun(&closed), "unreachable");
    for (document, reason) in [
        (json!({ "issuer": "https://evil.example" }), "other-issuer"),
        (
            json!({ "authorization_endpoint": "http://evil.example/" }),
            "unusable",
        ),
        (json!({ "authorization_endpoint": null }), "unusable"),
        (json!({ "jwks_uri": "http://evil.example/" }), "unusable"),
    ] {
        let provider = Provider::start(Account {
            document: document.clone(),
            ..account()
        });
        assert_eq!(begun(&provider.issuer()), reason, "{document}");
    }
    let provider = Provider::start(account());
    let elsewhere = format!("{}/elsewhere", provider.issuer());
    assert_eq!(begun(&elsewhere), "unusable");
}

#[test]
fn a_provider_with_an_unknown_certificate_is_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let tls = crate::tls::self_signed(dir.path());
    // Another Wharf stands for a provider with TLS.
    let ports = wharf_tests::Ports::take().settings();
    let node = wharf_tests::simulated_node("one", "");
    let other = crate::serve(&format!("{ports}{tls}{node}"));
    has(other.base_url(), "https://");
    assert_eq!(begun(other.base_url()), "untrusted");
}
