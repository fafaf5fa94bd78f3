//! Sign-in with an account at a provider of OpenID Connect.

mod failures;
mod forged;
mod provider;
mod settings;

use crate::sign_in::{ANN, ConsoleBrowser};
use crate::{Expected, recorded};
use provider::{Account, CLIENT, Provider, SECRET};
use serde_json::{Value, json};
use std::path::Path;
use ureq::Agent;

use wharf_tests::{Ports, Server, simulated_node, write_private};

const BOB: &str = "bob@example.com";

/// The settings of a provider whose secret is at a path.
fn settings(issuer: &str, secret: &Path, more: &str) -> String {
    format!(
        "{}{}\n[oidc]\nissuer = \"{issuer}\"\nclient_id = \"{CLIENT}\"\n\
         client_secret_file = \"{}\"\n{more}\n",
        Ports::take().settings(),
        simulated_node("one", ""),
        secret.display()
    )
}

/// A server with a provider; the directory has the secret.
struct ProviderSetup {
    server: Server,
    provider: Provider,
    _secrets: tempfile::TempDir,
}

fn setup(more: &str) -> ProviderSetup {
    let provider = Provider::start(Account::new("ann-1", ANN));
    let secrets = tempfile::tempdir().unwrap();
    let secret = secrets.path().join("secret");
    write_private(&secret, format!("{SECRET}\n").as_bytes()).unwrap();
    let server = crate::serve(&settings(&provider.issuer(), &secret, more));
    ProviderSetup {
        server,
        provider,
        _secrets: secrets,
    }
}

const EXAMPLE_COM: &str = "allow_domains = [\"example.com\"]\nname = \"Example\"";

/// A browser that follows no redirect by itself.
fn agent() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .build();
    config.into()
}

/// A response with the next page and the cookies that it sets.
struct SignInPage {
    status: u16,
    location: String,
    cookies: Vec<String>,
}

impl SignInPage {
    fn get(url: &str, cookie: &str) -> Self {
        let request = agent().get(url).header("Cookie", cookie);
        let answer = request.call().unwrap();
        let all = |name: &str| {
            let values = answer.headers().get_all(name).iter();
            let values = values.map(|value| value.to_str().unwrap().to_owned());
            values.collect::<Vec<_>>()
        };
        Self {
            status: answer.status().as_u16(),
            location: all("location").pop().unwrap_or_default(),
            cookies: all("set-cookie"),
        }
    }

    /// The cookie whose name is this and the end of the installation's id, as a browser sends it back.
    fn cookie(&self, name: &str) -> Option<String> {
        let is_named = |cookie: &&String| {
            let full = cookie.split('=').next().unwrap_or_default();
            full == name
                || full
                    .rsplit_once('-')
                    .is_some_and(|(found, id)| found == name && id.len() == 12)
        };
        let mut found = self.cookies.iter().filter(is_named);
        let cookie = found.next()?;
        assert!(
            cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
            "{cookie}"
        );
        cookie.split(';').next().map(str::to_owned)
    }
}

/// A sign-in that has come back from the provider, and not to Wharf yet.
struct Attempt {
    back: String,
    cookie: String,
}

impl ProviderSetup {
    fn page(&self, path: &str, cookie: &str) -> SignInPage {
        SignInPage::get(&format!("{}{path}", self.server.base_url()), cookie)
    }

    /// Goes to the provider and back.
    fn attempt(&self) -> Attempt {
        let begun = self.page("/auth/oidc/", "");
        assert_eq!(begun.status, 303);
        let page = format!("{}/authorize?", self.provider.issuer());
        assert!(begun.location.starts_with(&page), "{}", begun.location);
        let cookie = begun.cookie("wharf-attempt").unwrap();
        let back = SignInPage::get(&begun.location, "");
        assert_eq!(back.status, 302);
        let port = self.server.base_url().rsplit(':').next().unwrap();
        let console = format!("http://localhost:{port}");
        let back = back.location.strip_prefix(&console).unwrap().to_owned();
        assert!(back.starts_with("/auth/oidc/callback/?"), "{back}");
        Attempt { back, cookie }
    }

    /// Signs in as the account that is signed in at the provider. Returns the browser, or the reason of
    /// the refusal.
    fn sign_in(&self) -> Result<ConsoleBrowser, String> {
        let Attempt { back, cookie } = self.attempt();
        self.finish_attempt(&back, &cookie)
    }

    fn finish_attempt(&self, back: &str, cookie: &str) -> Result<ConsoleBrowser, String> {
        let page = self.page(back, cookie);
        assert_eq!(page.status, 303);
        let mut browser = ConsoleBrowser::new(&self.server);
        let fragment = page.location.strip_prefix("/sign-in#").unwrap();
        let Some(part) = fragment.strip_prefix("session=") else {
            assert!(page.cookie("wharf").is_none());
            return Err(fragment.to_owned());
        };
        browser.cookie = page.cookie("wharf").unwrap();
        assert!(!browser.is_signed_in());
        part.clone_into(&mut browser.part);
        assert!(browser.is_signed_in());
        Ok(browser)
    }

    /// The reason for which an account is refused.
    fn refusal(&self, account: Account) -> String {
        self.provider.set(account);
        self.sign_in().err().expect("the account was accepted")
    }
}

fn session(browser: &ConsoleBrowser) -> Value {
    browser.get("/api/session/").is(200)
}

#[test]
fn a_verified_account_is_linked_to_the_user_with_its_address() {
    let setup = setup(EXAMPLE_COM);
    let key = setup.server.user(ANN).unwrap();
    let browser = setup.sign_in().unwrap();
    assert_eq!(setup.provider.tokens(), 1);
    let options = browser.get("/auth/options/").is(200);
    assert_eq!(options["provider"], "Example");
    let shown = session(&browser);
    assert_eq!(shown["email"], ANN);
    let identity = &shown["identities"][0];
    assert_eq!(
        (&identity["issuer"], &identity["email"]),
        (&json!(setup.provider.issuer()), &json!(ANN))
    );
    let list = setup.server.cli(&["user", "list"]).unwrap();
    let expected = format!("\tsign-in by {}", setup.provider.issuer());
    assert!(list.contains(&expected), "{list}");
    // The subject is the identity, and not the address.
    setup
        .provider
        .set(Account::new("ann-1", "ann.smith@example.com"));
    assert_eq!(session(&setup.sign_in().unwrap())["email"], ANN);
    let thief = Account::new("another person", ANN);
    assert_eq!(setup.refusal(thief.clone()), "other-identity");
    // It is the last way in, until there is a password.
    let id = identity["id"].as_str().unwrap();
    let path = format!("/auth/identity/{id}/");
    let unlink = || browser.send("DELETE", &path, &Value::Null);
    let refused = unlink().is(400);
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("last way to sign in"), "{detail}");
    let body = json!({ "new": "correct horse battery" });
    browser.send("POST", "/auth/password/", &body).is(204);
    unlink().is(204);
    assert_eq!(unlink().status, 404);
    assert_eq!(session(&browser)["identities"], json!([]));
    setup.provider.set(thief);
    assert_eq!(session(&setup.sign_in().unwrap())["email"], ANN);
    let count = |operation: &str, result: &str| {
        let records = recorded(&key, operation);
        records.iter().filter(|r| r["result"] == result).count()
    };
    assert_eq!(count("session.begin", "oidc"), 3);
    assert_eq!(count("identity.link", &setup.provider.issuer()), 2);
    assert_eq!(count("identity.unlink", "removed"), 1);
}

#[test]
fn accounts_without_a_verified_allowed_address_of_a_user_are_refused() {
    let setup = setup("allow_emails = [\"ann@example.com\", \"bob@example.com\"]");
    setup.server.user(ANN).unwrap();
    let account = || Account::new("ann-1", ANN);
    for verified in [Some(false), None] {
        let unverified = Account {
            verified,
            ..account()
        };
        assert_eq!(setup.refusal(unverified), "unverified");
    }
    let nameless = Account {
        email: None,
        ..account()
    };
    assert_eq!(setup.refusal(nameless), "no-address");
    assert_eq!(
        setup.refusal(Account::new("eve", "eve@example.com")),
        "not-allowed"
    );
    assert_eq!(setup.refusal(Account::new("bob-1", BOB)), "no-user");
    let denied = Account {
        denies: Some("access_denied"),
        ..account()
    };
    assert_eq!(setup.refusal(denied), "denied");
    setup.provider.set(account());
    let browser = setup.sign_in().unwrap();
    setup.server.cli(&["user", "disable", ANN]).unwrap();
    assert!(!browser.is_signed_in());
    assert_eq!(setup.refusal(account()), "disabled");
}

#[test]
fn an_allowed_account_creates_its_user_if_the_configuration_says_so() {
    let setup = setup(&format!("{EXAMPLE_COM}\ncreate_users = true"));
    setup.provider.set(Account::new("bob-1", "Bob@Example.com"));
    let browser = setup.sign_in().unwrap();
    assert_eq!(session(&browser)["email"], BOB);
    browser.send("POST", "/api/key/", &json!({})).is(201);
    assert_eq!(session(&setup.sign_in().unwrap())["email"], BOB);
    let list = setup.server.cli(&["user", "list"]).unwrap();
    assert_eq!(list.matches('@').count(), 1, "{list}");
    let records = browser.get("/api/audit/").is(200);
    let operations = records.as_array().unwrap().iter();
    assert!(operations.clone().any(|r| r["operation"] == "user.create"));
}

#[test]
fn an_answer_is_of_one_attempt_in_one_browser() {
    let setup = setup(EXAMPLE_COM);
    setup.server.user(ANN).unwrap();
    let first = setup.attempt();
    let expired = |back: &str, cookie: &str| {
        let refused = setup.finish_attempt(back, cookie).err();
        assert_eq!(refused.as_deref(), Some("expired"), "{back}");
    };
    // Another browser spends the attempt of the first one, and learns nothing.
    expired(&first.back, "");
    expired(&first.back, &first.cookie);
    let (one, other) = (setup.attempt(), setup.attempt());
    expired(&one.back, &other.cookie);
    expired("/auth/oidc/callback/", &other.cookie);
    expired(
        "/auth/oidc/callback/?code=code-1&state=invented",
        &other.cookie,
    );
    setup.finish_attempt(&other.back, &other.cookie).unwrap();
    expired(&other.back, &other.cookie);
    // The provider knows no such code.
    let third = setup.attempt();
    let back = third.back.replace("code=code-", "code=other-");
    let refused = setup.finish_attempt(&back, &third.cookie).err();
    assert_eq!(refused.as_deref(), Some("code"));
    let fourth = setup.attempt();
    let back = format!("{}&iss=https%3A%2F%2Fevil.example", fourth.back);
    let refused = setup.finish_attempt(&back, &fourth.cookie).err();
    assert_eq!(refused.as_deref(), Some("other-issuer"));
}

#[test]
fn a_token_must_be_signed_by_the_provider_for_this_attempt() {
    let setup = setup(EXAMPLE_COM);
    setup.server.user(ANN).unwrap();
    let account = || Account::new("ann-1", ANN);
    let spoiled = Account {
        spoils_signature: true,
        ..account()
    };
    assert_eq!(setup.refusal(spoiled), "token");
    let unsigned = Account {
        unsigned: true,
        ..account()
    };
    assert_eq!(setup.refusal(unsigned), "token");
    setup.provider.set(account());
    setup.sign_in().unwrap();
    // A new key is found without a restart.
    let before = setup.provider.documents();
    setup.provider.rotate();
    setup.sign_in().unwrap();
    assert_eq!(setup.provider.documents(), before + 1);
    setup.sign_in().unwrap();
    assert_eq!(setup.provider.documents(), before + 1);
}
