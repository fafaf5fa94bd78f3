//! Tokens that are not what they seem to be.

use super::provider::{Account, CLIENT, SECRET};
use super::{EXAMPLE_COM, setup};
use crate::sign_in::ANN;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};

/// The point of the public key, uncompressed.
fn point(key: &Value) -> Vec<u8> {
    let part = |name: &str| BASE64.decode(key[name].as_str().unwrap()).unwrap();
    [vec![4], part("x"), part("y")].concat()
}

#[test]
fn a_shared_secret_signs_no_token() {
    let setup = setup(EXAMPLE_COM);
    setup.server.user(ANN).unwrap();
    let secrets: [fn(&Value) -> Vec<u8>; 4] = [
        point,
        |key| key.to_string().into_bytes(),
        |_| Vec::new(),
        |_| SECRET.into(),
    ];
    for (number, secret) in secrets.into_iter().enumerate() {
        for header in [
            json!({ "alg": "HS256" }),
            json!({ "alg": "HS256", "kid": null }),
        ] {
            let forged = Account {
                header,
                shared_secret: Some(secret),
                ..Account::new("ann-1", ANN)
            };
            assert_eq!(setup.refusal(forged), "token", "secret {number}");
        }
    }
    setup.provider.set(Account::new("ann-1", ANN));
    setup.sign_in().unwrap();
}

#[test]
fn a_signed_token_needs_a_header_and_claims_of_the_standard_for_this_attempt() {
    let setup = setup(EXAMPLE_COM);
    setup.server.user(ANN).unwrap();
    let account = || Account::new("ann-1", ANN);
    for header in [
        json!({ "alg": "none" }),
        json!({ "alg": "None" }),
        json!({ "alg": "RS256" }),
        json!({ "alg": "ES384" }),
        json!({ "kid": "another key" }),
        json!({ "crit": ["b64"] }),
        json!({ "typ": "at+jwt" }),
        json!({ "cty": "JWT" }),
    ] {
        let changed = Account {
            header: header.clone(),
            ..account()
        };
        assert_eq!(setup.refusal(changed), "token", "{header}");
    }
    for claims in [
        json!({ "iss": null }),
        json!({ "iss": [setup.provider.issuer(), "https://evil.example"] }),
        json!({ "aud": null }),
        json!({ "aud": [] }),
        json!({ "azp": "another client" }),
        json!({ "exp": null }),
        json!({ "exp": "soon" }),
        json!({ "iat": null }),
        json!({ "sub": null }),
        json!({ "nonce": "" }),
        json!({ "nonce": "another nonce" }),
        json!({ "nonce": null }),
        json!({ "aud": "another client" }),
        json!({ "aud": [CLIENT, "another client"] }),
        json!({ "iss": "https://evil.example" }),
        json!({ "exp": 1_000_000_000 }),
    ] {
        let changed = Account {
            claims: claims.clone(),
            ..account()
        };
        assert_eq!(setup.refusal(changed), "token", "{claims}");
    }
    for header in [json!({ "kid": null }), json!({ "typ": "jwt" })] {
        setup.provider.set(Account {
            header,
            ..account()
        });
        setup.sign_in().unwrap();
    }
}
