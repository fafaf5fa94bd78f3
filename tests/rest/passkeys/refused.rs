//! Passkeys that are refused: with the name of the field, and never with a fault of the service.

use super::authenticator::Authenticator;
use super::{BEGIN, NEW, PASSKEYS, SIGN_IN, accept, assert_refused, post, sign_in};
use crate::sign_in::{ANN, ConsoleBrowser};
use crate::{Expected, start};
use serde_json::{Value, json};

#[test]
fn a_challenge_is_answered_once_by_the_passkey_itself_on_the_console() {
    let (server, _) = start();
    let mut browser = ConsoleBrowser::new(&server);
    let mut passkey = Authenticator::new(&server);
    accept(&mut browser, &server, &mut passkey, ANN);
    let used = passkey.counter;
    let options = post(&browser, BEGIN, &Value::Null).is(200);
    let credential = passkey.sign_in(&options);
    let body = json!({ "credential": credential });
    assert_eq!(post(&browser, SIGN_IN, &body).status, 204);
    assert_refused(post(&browser, SIGN_IN, &body));
    // A refused answer spends the challenge as well.
    let options = post(&browser, BEGIN, &Value::Null).is(200);
    let right = passkey.sign_in(&options);
    let mut wrong = right.clone();
    wrong["response"]["signature"] = credential["response"]["signature"].clone();
    assert_refused(post(&browser, SIGN_IN, &json!({ "credential": wrong })));
    assert_refused(post(&browser, SIGN_IN, &json!({ "credential": right })));
    // A challenge of the server is needed.
    let invented = passkey.sign_in(&json!({
        "challenge": "AAECAwQFBgcICQoLDA0ODw", "userVerification": "required",
    }));
    assert_refused(post(&browser, SIGN_IN, &json!({ "credential": invented })));

    let (origin, counter) = (passkey.origin.clone(), passkey.counter);
    let port = origin.rsplit(':').next().unwrap();
    for other in [
        "https://evil.example".to_owned(),
        format!("http://127.0.0.1:{port}"),
        format!("https://localhost:{port}"),
        "http://localhost".to_owned(),
        "null".to_owned(),
    ] {
        passkey.origin = other;
        assert_refused(sign_in(&browser, &mut passkey));
    }
    passkey.origin = origin;
    passkey.host = "evil.example".to_owned();
    assert_refused(sign_in(&browser, &mut passkey));
    passkey.host = "localhost".to_owned();
    passkey.verifies = false;
    assert_refused(sign_in(&browser, &mut passkey));
    passkey.verifies = true;
    passkey.kind = Some("webauthn.create");
    assert_refused(sign_in(&browser, &mut passkey));
    passkey.kind = None;
    // A copy of the passkey has a counter that was used.
    passkey.counter = used;
    assert_refused(sign_in(&browser, &mut passkey));
    passkey.counter = counter;
    assert_refused(sign_in(&browser, &mut Authenticator::new(&server)));
    assert_eq!(sign_in(&browser, &mut passkey).status, 204);
    // The same holds for a new passkey.
    for change in [
        |new: &mut Authenticator| new.origin = "https://evil.example".to_owned(),
        |new: &mut Authenticator| new.host = "evil.example".to_owned(),
        |new: &mut Authenticator| new.verifies = false,
        |new: &mut Authenticator| new.kind = Some("webauthn.get"),
    ] {
        let mut new = Authenticator::new(&server);
        change(&mut new);
        let signed_in = sign_in(&browser, &mut passkey);
        browser.keep_cookie(signed_in);
        let options = post(&browser, NEW, &Value::Null).is(200);
        let credential = new.make(&options);
        assert_refused(post(
            &browser,
            PASSKEYS,
            &json!({ "credential": credential }),
        ));
    }
}

#[test]
fn a_passkey_with_unknown_or_no_transports_is_accepted() {
    let (server, _) = start();
    let mut browser = ConsoleBrowser::new(&server);
    accept(&mut browser, &server, &mut Authenticator::new(&server), ANN);
    for (transports, attachment) in [
        (json!([]), json!("platform")),
        (json!(["", "cable", "hybrid", 7]), Value::Null),
        (json!(["usb", "usb", "a new one"]), json!("a new one")),
        (json!(null), json!("")),
        (json!("usb"), json!(7)),
    ] {
        println!("{transports} {attachment}");
        let mut passkey = Authenticator::new(&server);
        let mut made = passkey.make(&post(&browser, NEW, &Value::Null).is(200));
        made["response"]["transports"] = transports.clone();
        made["authenticatorAttachment"] = attachment.clone();
        made["unknown"] = json!({});
        post(&browser, PASSKEYS, &json!({ "credential": made })).is(201);
        let options = post(&browser, BEGIN, &Value::Null).is(200);
        let mut used = passkey.sign_in(&options);
        used["authenticatorAttachment"] = attachment;
        let credential = json!({ "credential": used });
        post(&ConsoleBrowser::new(&server), SIGN_IN, &credential).is(204);
    }
    let options = post(&browser, NEW, &Value::Null).is(200);
    let mut made = Authenticator::new(&server).make(&options);
    for part in ["clientExtensionResults", "authenticatorAttachment"] {
        made.as_object_mut().unwrap().remove(part);
    }
    made["response"]
        .as_object_mut()
        .unwrap()
        .remove("transports");
    post(&browser, PASSKEYS, &json!({ "credential": made })).is(201);
}

#[test]
fn every_damaged_credential_is_a_wrong_field_and_no_fault() {
    let (server, _) = start();
    let mut browser = ConsoleBrowser::new(&server);
    let mut passkey = Authenticator::new(&server);
    accept(&mut browser, &server, &mut passkey, ANN);
    // Each credential answers a challenge of its own, so that its damage decides.
    let mut whole = |path: &str| match path {
        SIGN_IN => passkey.sign_in(&post(&browser, BEGIN, &Value::Null).is(200)),
        _ => {
            let options = post(&browser, NEW, &Value::Null).is(200);
            Authenticator::new(&server).make(&options)
        }
    };
    for wrong in [Value::Null, json!("x"), json!(1), json!([]), json!({})] {
        for path in [SIGN_IN, PASSKEYS] {
            assert_refused(post(&browser, path, &json!({ "credential": wrong })));
        }
    }
    for path in [SIGN_IN, PASSKEYS] {
        assert_refused(post(&browser, path, &json!({})));
    }
    let fields = [
        (SIGN_IN, "/id"),
        (SIGN_IN, "/response"),
        (SIGN_IN, "/response/clientDataJSON"),
        (SIGN_IN, "/response/authenticatorData"),
        (SIGN_IN, "/response/signature"),
        (SIGN_IN, "/response/userHandle"),
        (PASSKEYS, "/id"),
        (PASSKEYS, "/response"),
        (PASSKEYS, "/response/clientDataJSON"),
        (PASSKEYS, "/response/attestationObject"),
    ];
    for (path, field) in fields {
        // `e30` is an empty object, and `gA` an empty array of CBOR.
        for wrong in [
            Value::Null,
            json!(""),
            json!("!"),
            json!("e30"),
            json!("gA"),
            json!(7),
            json!({}),
        ] {
            println!("{path} {field} {wrong}");
            let mut damaged = whole(path);
            *damaged.pointer_mut(field).unwrap() = wrong;
            let body = json!({ "credential": damaged });
            assert_refused(post(&browser, path, &body));
        }
        if (path, field) == (PASSKEYS, "/id") {
            // The attestation has the id too.
            continue;
        }
        println!("{path} without {field}");
        let (parent, name) = field.rsplit_once('/').unwrap();
        let mut damaged = whole(path);
        let parent = damaged.pointer_mut(parent).unwrap();
        parent.as_object_mut().unwrap().remove(name);
        assert_refused(post(&browser, path, &json!({ "credential": damaged })));
    }
    let log = server.log();
    assert!(!log.contains("panicked"), "{log}");
}
