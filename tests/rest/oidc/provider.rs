//! A provider of OpenID Connect: its document, keys, page and tokens, over HTTP on this machine. It
//! checks each request as a real one does.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD as BASE64};
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

pub const CLIENT: &str = "wharf-at-test";
pub const SECRET: &str = "the secret of the client";

/// The account that is signed in at the provider, and the settings that a test changes.
#[derive(Clone)]
pub struct Account {
    pub subject: String,
    pub email: Option<String>,
    pub verified: Option<bool>,
    /// The provider sends the browser back with this error.
    pub denies: Option<&'static str>,
    /// Changes of the claims before they are signed.
    pub claims: Value,
    /// Changes of the header before it is signed.
    pub header: Value,
    /// The token is authenticated with a secret that is made from the provider's public key.
    pub shared_secret: Option<fn(&Value) -> Vec<u8>>,
    /// Changes the signed token.
    pub spoils_signature: bool,
    /// The token has `none` as its algorithm, and no signature.
    pub unsigned: bool,
    /// The claims at the endpoint of claims; none without such an endpoint.
    pub userinfo: Option<Value>,
    /// The status and the body of the token endpoint instead of its own.
    pub refusal: Option<(&'static str, Value)>,
    /// Changes of the provider's document.
    pub document: Value,
    /// More members of the provider's key.
    pub members: Value,
}

impl Account {
    pub fn new(subject: &str, email: &str) -> Self {
        Self {
            subject: subject.to_owned(),
            email: Some(email.to_owned()),
            verified: Some(true),
            denies: None,
            claims: json!({}),
            header: json!({}),
            shared_secret: None,
            spoils_signature: false,
            unsigned: false,
            userinfo: None,
            refusal: None,
            document: json!({}),
            members: json!({}),
        }
    }
}

struct Grant {
    nonce: String,
    challenge: String,
    redirect: String,
}

struct State {
    issuer: String,
    account: Account,
    key: (String, SigningKey),
    grants: HashMap<String, Grant>,
    made: u32,
    /// The number of tokens for a right code, secret and verifier.
    tokens: u32,
    /// The number of times that the document was read.
    documents: u32,
}

/// A running provider. Its threads end with the test.
pub struct Provider {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Provider {
    /// Starts a provider on a free port.
    pub fn start(account: Account) -> Self {
        Self::start_at("127.0.0.1:0", account)
    }

    /// Starts a provider on this address.
    pub fn start_at(address: &str, account: Account) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            issuer: format!("http://{address}"),
            account,
            key: key(0),
            grants: HashMap::new(),
            made: 0,
            tokens: 0,
            documents: 0,
        }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(&stream.unwrap(), &shared));
            }
        });
        Self { address, state }
    }

    pub fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Signs another account in at the provider.
    pub fn set(&self, account: Account) {
        self.state.lock().unwrap().account = account;
    }

    /// Gives the provider another key.
    pub fn rotate(&self) {
        self.state.lock().unwrap().key = key(1);
    }

    pub fn tokens(&self) -> u32 {
        self.state.lock().unwrap().tokens
    }

    pub fn documents(&self) -> u32 {
        self.state.lock().unwrap().documents
    }
}

fn key(number: u8) -> (String, SigningKey) {
    let key = SigningKey::from_slice(&Sha256::digest([b'k', number])).unwrap();
    (format!("key-{number}"), key)
}

struct TokenAnswer {
    status: &'static str,
    location: Option<String>,
    body: Value,
}

fn ok(body: Value) -> TokenAnswer {
    TokenAnswer {
        status: "200 OK",
        location: None,
        body,
    }
}

fn bad(error: &str) -> TokenAnswer {
    TokenAnswer {
        status: "400 Bad Request",
        location: None,
        body: json!({ "error": error }),
    }
}

fn serve(stream: &TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap().to_owned());
    let method = method.to_owned();
    let (mut length, mut authorization) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => value.clone_into(&mut authorization),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut state = state.lock().unwrap();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let answer = match (method.as_str(), path) {
        ("GET", "/.well-known/openid-configuration") => {
            state.documents += 1;
            let mut document = document(&state.issuer);
            if state.account.userinfo.is_some() {
                document["userinfo_endpoint"] = json!(format!("{}/userinfo", state.issuer));
            }
            change(&mut document, &state.account.document);
            ok(document)
        }
        ("GET", "/keys") => {
            let mut keys = keys(&state.key);
            change(&mut keys["keys"][0], &state.account.members);
            ok(keys)
        }
        ("GET", "/userinfo") if authorization == "Bearer an access token" => {
            ok(state.account.userinfo.clone().unwrap())
        }
        ("GET", "/authorize") => authorize(&mut state, &form(query)),
        ("POST", "/token") => {
            let body = String::from_utf8(body).unwrap();
            token(&mut state, &authorization, &form(&body))
        }
        _ => bad("unknown"),
    };
    let body = answer.body.to_string();
    let location = answer.location.map(|to| format!("Location: {to}\r\n"));
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{body}",
        answer.status,
        body.len(),
        location.unwrap_or_default(),
    )
    .unwrap();
}

fn document(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256", "none", "HS256"],
        "code_challenge_methods_supported": ["S256"],
    })
}

fn keys((id, key): &(String, SigningKey)) -> Value {
    let point = key.verifying_key().to_encoded_point(false);
    json!({ "keys": [{
        "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": id,
        "x": BASE64.encode(point.x().unwrap()), "y": BASE64.encode(point.y().unwrap()),
    }] })
}

fn change(object: &mut Value, changes: &Value) {
    for (name, value) in changes.as_object().unwrap() {
        object[name] = value.clone();
    }
}

/// The page on which a user consents; this one consents at once.
fn authorize(state: &mut State, query: &HashMap<String, String>) -> TokenAnswer {
    let right = query["response_type"] == "code"
        && query["client_id"] == CLIENT
        && query["code_challenge_method"] == "S256"
        && query["scope"].split(' ').any(|scope| scope == "openid")
        && query["scope"].split(' ').any(|scope| scope == "email");
    assert!(right, "{query:?}");
    assert!(query["state"].len() >= 32 && query["nonce"].len() >= 32);
    let (redirect, kept) = (&query["redirect_uri"], &query["state"]);
    let answer = match state.account.denies {
        Some(error) => format!("error={error}"),
        None => {
            state.made += 1;
            let code = format!("code-{}", state.made);
            let grant = Grant {
                nonce: query["nonce"].clone(),
                challenge: query["code_challenge"].clone(),
                redirect: redirect.clone(),
            };
            state.grants.insert(code.clone(), grant);
            format!("code={code}")
        }
    };
    TokenAnswer {
        status: "302 Found",
        location: Some(format!("{redirect}?{answer}&state={kept}")),
        body: json!({}),
    }
}

fn token(state: &mut State, authorization: &str, body: &HashMap<String, String>) -> TokenAnswer {
    if let Some((status, body)) = state.account.refusal.clone() {
        return TokenAnswer {
            status,
            location: None,
            body,
        };
    }
    let encoded = |text: &str| text.replace(' ', "+");
    let basic = BASE64_STANDARD.encode(format!("{CLIENT}:{}", encoded(SECRET)));
    let methods = &state.account.document["token_endpoint_auth_methods_supported"];
    let is_client = if *methods == json!(["client_secret_post"]) {
        authorization.is_empty()
            && body.get("client_id").is_some_and(|id| id == CLIENT)
            && body
                .get("client_secret")
                .is_some_and(|secret| secret == SECRET)
    } else {
        authorization == format!("Basic {basic}") && !body.contains_key("client_secret")
    };
    if !is_client {
        return bad("invalid_client");
    }
    // A code is valid once.
    let Some(grant) = body.get("code").and_then(|code| state.grants.remove(code)) else {
        return bad("invalid_grant");
    };
    let verifier = body.get("code_verifier").map_or("", String::as_str);
    let challenge = BASE64.encode(Sha256::digest(verifier.as_bytes()));
    if body["grant_type"] != "authorization_code"
        || challenge != grant.challenge
        || body["redirect_uri"] != grant.redirect
    {
        return bad("invalid_grant");
    }
    state.tokens += 1;
    ok(json!({
        "access_token": "an access token",
        "token_type": "Bearer",
        "expires_in": 300,
        "id_token": id_token(state, &grant),
    }))
}

fn id_token(state: &State, grant: &Grant) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let account = &state.account;
    let mut claims = json!({
        "iss": state.issuer,
        "sub": account.subject,
        "aud": CLIENT,
        "iat": now,
        "exp": now + 300,
        "nonce": grant.nonce,
    });
    if let Some(email) = &account.email {
        claims["email"] = json!(email);
    }
    if let Some(verified) = account.verified {
        claims["email_verified"] = json!(verified);
    }
    change(&mut claims, &account.claims);
    let (id, key) = &state.key;
    let mut header = if account.unsigned {
        json!({ "alg": "none" })
    } else {
        json!({ "alg": "ES256", "kid": id })
    };
    change(&mut header, &account.header);
    let encode = |part: &Value| BASE64.encode(part.to_string());
    let signed = format!("{}.{}", encode(&header), encode(&claims));
    let signature: Signature = key.sign(signed.as_bytes());
    let mut signature = signature.to_bytes().to_vec();
    if account.spoils_signature {
        signature[10] ^= 1;
    }
    if let Some(secret) = account.shared_secret {
        let secret = secret(&keys(&state.key)["keys"][0]);
        signature = hmac(&secret, signed.as_bytes());
    }
    if account.unsigned {
        format!("{signed}.")
    } else {
        format!("{signed}.{}", BASE64.encode(signature))
    }
}

/// HMAC with SHA-256, of RFC 2104.
fn hmac(secret: &[u8], text: &[u8]) -> Vec<u8> {
    let mut key = match secret.len() {
        0..=64 => secret.to_vec(),
        _ => Sha256::digest(secret).to_vec(),
    };
    key.resize(64, 0);
    let padded = |pad: u8| key.iter().map(|byte| byte ^ pad).collect::<Vec<_>>();
    let inner = Sha256::digest([&padded(0x36), text].concat());
    Sha256::digest([&padded(0x5c), &inner[..]].concat()).to_vec()
}

/// The fields of a query or a form.
pub fn form(text: &str) -> HashMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), decoded(value)))
        .collect()
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}
