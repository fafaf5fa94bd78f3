//! An authenticator in software, and the browser around it.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicU32, Ordering};
use wharf_tests::Server;

/// The user is present, and verified.
const PRESENT: u8 = 0x01;
const VERIFIED: u8 = 0x04;
const ATTESTED: u8 = 0x40;

/// The number of authenticators so far: each has other keys.
static MADE: AtomicU32 = AtomicU32::new(1);

/// One passkey, and the settings that a test changes to provoke a refusal.
pub struct Authenticator {
    key: SigningKey,
    id: Vec<u8>,
    user_handle: Option<String>,
    pub counter: u32,
    pub origin: String,
    pub host: String,
    pub verifies: bool,
    pub kind: Option<&'static str>,
}

impl Authenticator {
    /// An authenticator on the machine of the server, at the address of its console.
    pub fn new(server: &Server) -> Self {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let seed = Sha256::digest(number.to_be_bytes());
        let port = server.base_url().rsplit(':').next().unwrap();
        Self {
            key: SigningKey::from_slice(&seed).unwrap(),
            id: seed[..16].to_vec(),
            user_handle: None,
            counter: 0,
            origin: format!("http://localhost:{port}"),
            host: "localhost".to_owned(),
            verifies: true,
            kind: None,
        }
    }

    /// The id of the passkey in base64url.
    pub fn id(&self) -> String {
        BASE64.encode(&self.id)
    }

    /// Makes the passkey with the options of the server.
    pub fn make(&mut self, options: &Value) -> Value {
        assert_eq!(options["rp"]["id"], "localhost", "{options}");
        assert_eq!(
            options["authenticatorSelection"]["userVerification"],
            "required"
        );
        assert_eq!(options["authenticatorSelection"]["residentKey"], "required");
        let handle = options["user"]["id"].as_str().unwrap();
        self.user_handle = Some(handle.to_owned());
        let point = self.key.verifying_key().to_encoded_point(false);
        let mut data = self.data(ATTESTED);
        data.extend([0; 16]);
        data.extend(u16::try_from(self.id.len()).unwrap().to_be_bytes());
        data.extend(&self.id);
        // A map of five: an elliptic key (1: 2) for ES256 (3: -7) on P-256 (-1: 1), with x and y.
        data.extend([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20]);
        data.extend(point.x().unwrap());
        data.extend([0x22, 0x58, 0x20]);
        data.extend(point.y().unwrap());
        let mut object = vec![0xa3];
        object.extend(b"\x63fmt\x64none\x67attStmt\xa0\x68authData\x58");
        object.push(u8::try_from(data.len()).unwrap());
        object.extend(&data);
        json!({
            "id": self.id(),
            "rawId": self.id(),
            "type": "public-key",
            "authenticatorAttachment": "platform",
            "clientExtensionResults": {},
            "response": {
                "clientDataJSON": BASE64.encode(self.client_data("webauthn.create", options)),
                "attestationObject": BASE64.encode(object),
                "transports": ["internal"],
            },
        })
    }

    /// Signs in with the options of the server.
    pub fn sign_in(&mut self, options: &Value) -> Value {
        assert_eq!(options["userVerification"], "required", "{options}");
        self.counter += 1;
        let client_data = self.client_data("webauthn.get", options);
        let data = self.data(0);
        let signed = [data.as_slice(), &Sha256::digest(&client_data)].concat();
        let signature: DerSignature = self.key.sign(&signed);
        json!({
            "id": self.id(),
            "rawId": self.id(),
            "type": "public-key",
            "authenticatorAttachment": "platform",
            "clientExtensionResults": {},
            "response": {
                "clientDataJSON": BASE64.encode(client_data),
                "authenticatorData": BASE64.encode(data),
                "signature": BASE64.encode(signature.as_bytes()),
                "userHandle": self.user_handle,
            },
        })
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        let mut data = Sha256::digest(self.host.as_bytes()).to_vec();
        let verified = if self.verifies { VERIFIED } else { 0 };
        data.push(flags | PRESENT | verified);
        data.extend(self.counter.to_be_bytes());
        data
    }

    fn client_data(&self, kind: &str, options: &Value) -> Vec<u8> {
        let client_data = json!({
            "type": self.kind.unwrap_or(kind),
            "challenge": options["challenge"],
            "origin": self.origin,
            "crossOrigin": false,
        });
        client_data.to_string().into_bytes()
    }
}
