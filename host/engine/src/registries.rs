//! The operator's accounts at registries of images. A request has them in a header, which no guest sees; an engine's
//! answer that repeats them loses them here.

use super::message::EngineResponse;
use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use wharf_domain::image::Registry;
use wharf_domain::secret::SecretText;

/// The header in which engines expect an account.
pub const HEADER: HeaderName = HeaderName::from_static("x-registry-auth");
/// The text in place of a secret.
const HIDDEN: &[u8] = b"(secret)";
/// How deep texts are quoted in each other: an engine's answer, the registry's answer in it, a text in that one.
const QUOTED: usize = 4;

/// An account at a registry.
#[derive(Debug, Clone)]
pub struct RegistryAccount {
    pub registry: Registry,
    pub user: String,
    pub password: SecretText,
}

/// The accounts of a configuration, which a reload replaces.
#[derive(Debug, Default)]
pub struct Registries(ArcSwap<BTreeMap<Registry, Arc<Credentials>>>);

impl Registries {
    /// Replaces all accounts.
    pub fn replace(&self, accounts: &[RegistryAccount]) {
        let all = accounts.iter().filter_map(|account| {
            let credentials = Credentials::of(account)?;
            Some((account.registry.clone(), Arc::new(credentials)))
        });
        self.0.store(Arc::new(all.collect()));
    }

    /// The account at a registry.
    pub fn find(&self, registry: &Registry) -> Option<Arc<Credentials>> {
        self.0.load().get(registry).cloned()
    }
}

/// An account as a request has it. Its `Debug` is equal for all accounts: the key of a job outlasts a new password.
pub struct Credentials {
    header: HeaderValue,
    /// The forms in which an answer may repeat it, the longest first.
    forms: Vec<Vec<u8>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl Credentials {
    fn of(account: &RegistryAccount) -> Option<Self> {
        let (user, password) = (&account.user, account.password.expose());
        let written = encoded(account);
        let mut header = HeaderValue::try_from(&written).ok()?;
        header.set_sensitive(true);
        let pair = format!("{user}:{password}");
        let mut forms = BTreeSet::new();
        for secret in [
            password.to_owned(),
            STANDARD_NO_PAD.encode(&pair),
            URL_SAFE_NO_PAD.encode(&pair),
            STANDARD_NO_PAD.encode(password),
            URL_SAFE_NO_PAD.encode(password),
            written.trim_end_matches('=').to_owned(),
            STANDARD
                .encode(document(account))
                .trim_end_matches('=')
                .to_owned(),
        ] {
            forms.extend(ways_to_write(&secret));
        }
        let mut forms: Vec<_> = forms.into_iter().map(String::into_bytes).collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        Some(Self { header, forms })
    }

    /// The value of [`HEADER`].
    pub fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// A text without the account.
    pub fn hide(&self, text: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.first() {
            match self.forms.iter().find(|form| rest.starts_with(form)) {
                Some(form) => {
                    kept.extend_from_slice(HIDDEN);
                    rest = rest.get(form.len()..).unwrap_or_default();
                }
                None => {
                    kept.push(*first);
                    rest = rest.get(1..).unwrap_or_default();
                }
            }
        }
        kept
    }

    /// An answer without the account.
    pub fn hide_in(&self, answer: EngineResponse) -> EngineResponse {
        let hide = |text: String| String::from_utf8_lossy(&self.hide(text.as_bytes())).into_owned();
        let headers = answer.headers.into_iter();
        EngineResponse {
            status: answer.status,
            headers: headers.map(|(name, value)| (name, hide(value))).collect(),
            body: Bytes::from(self.hide(&answer.body)),
        }
    }
}

/// The value of [`HEADER`] for an account.
pub fn encoded(account: &RegistryAccount) -> String {
    URL_SAFE.encode(document(account))
}

/// The value of the header of builds, `X-Registry-Config`, with the accounts by their hosts. One at the engine's own
/// registry has no host.
pub fn encoded_for_builds(accounts: &[RegistryAccount]) -> Option<String> {
    let with_host = |account: &RegistryAccount| {
        let host = account.registry.host()?.to_owned();
        let account = serde_json::from_str::<Value>(&document(account)).ok()?;
        Some((host, account))
    };
    let all: BTreeMap<_, _> = accounts.iter().filter_map(with_host).collect();
    let document = serde_json::to_string(&all).ok()?;
    (!all.is_empty()).then(|| URL_SAFE.encode(document))
}

/// An account as engines read it.
#[derive(Serialize)]
struct Document<'a> {
    username: &'a str,
    password: &'a str,
    /// Without it, the account is one at the engine's own registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    serveraddress: Option<&'a str>,
}

fn document(account: &RegistryAccount) -> String {
    let document = Document {
        username: &account.user,
        password: account.password.expose(),
        serveraddress: account.registry.host(),
    };
    // Texts alone can always be written.
    serde_json::to_string(&document).unwrap_or_default()
}

/// A text by itself, in URLs, and in JSON that texts of JSON quote.
fn ways_to_write(text: &str) -> Vec<String> {
    let mut ways = vec![
        in_url(text, |byte| format!("%{byte:02X}")),
        in_url(text, |byte| format!("%{byte:02x}")),
    ];
    let (mut plain, mut of_go) = (text.to_owned(), text.to_owned());
    for _ in 0..QUOTED {
        ways.extend([plain.clone(), of_go.clone()]);
        plain = in_json(&plain);
        of_go = as_go_escapes(&in_json(&of_go));
    }
    ways
}

fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    // One quote at each end is not the text's own.
    let inner = quoted.strip_prefix('"');
    inner
        .and_then(|inner| inner.strip_suffix('"'))
        .unwrap_or_default()
        .to_owned()
}

/// A text of JSON with the characters escaped that only Go's encoder escapes.
fn as_go_escapes(json: &str) -> String {
    let escape = |c| match c {
        '<' | '>' | '&' => format!("\\u{:04x}", u32::from(c)),
        c => String::from(c),
    };
    json.chars().map(escape).collect()
}

fn in_url(text: &str, escape: fn(u8) -> String) -> String {
    let write = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => escape(byte),
    };
    text.bytes().map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWORD: &str = "pass \"word<1>&é%\"";

    fn registries(registry: Registry, password: &str) -> Registries {
        let registries = Registries::default();
        registries.replace(&[account(registry, password)]);
        registries
    }

    fn account(registry: Registry, password: &str) -> RegistryAccount {
        RegistryAccount {
            registry,
            user: "wharf".to_owned(),
            password: SecretText::new(password),
        }
    }

    fn host() -> Registry {
        Registry::new(Some("registry.example:5000"))
    }

    #[test]
    fn an_engine_reads_the_account_from_the_header() {
        for (registry, address) in [
            (host(), Value::from("registry.example:5000")),
            (Registry::OfEngine, Value::Null),
        ] {
            let credentials = registries(registry.clone(), PASSWORD)
                .find(&registry)
                .unwrap();
            let header = credentials.header();
            assert!(header.is_sensitive());
            // dockerd and Podman decode it with padding and the alphabet of URLs.
            let read = URL_SAFE.decode(header.as_bytes()).unwrap();
            let read: Value = serde_json::from_slice(&read).unwrap();
            assert_eq!(read["username"], "wharf");
            assert_eq!(read["password"], PASSWORD);
            assert_eq!(read["serveraddress"], address);
        }
    }

    #[test]
    fn builds_have_the_accounts_by_their_hosts() {
        let own = account(Registry::OfEngine, PASSWORD);
        assert_eq!(encoded_for_builds(std::slice::from_ref(&own)), None);
        let all = encoded_for_builds(&[own, account(host(), PASSWORD)]).unwrap();
        let read: Value = serde_json::from_slice(&URL_SAFE.decode(all).unwrap()).unwrap();
        assert_eq!(read.as_object().unwrap().len(), 1);
        assert_eq!(read["registry.example:5000"]["password"], PASSWORD);
    }

    #[test]
    fn an_account_is_for_its_registry_alone() {
        let registries = registries(host(), PASSWORD);
        assert!(
            registries
                .find(&Registry::of("REGISTRY.example:5000/a"))
                .is_some()
        );
        for image in [
            "registry.example/a",
            "registry.example:5001/a",
            "registry.example.evil:5000/a",
            "evil/registry.example:5000/a",
            "a",
        ] {
            assert!(registries.find(&Registry::of(image)).is_none(), "{image}");
        }
        registries.replace(&[]);
        assert!(registries.find(&host()).is_none());
    }

    #[test]
    fn debug_shows_no_account_and_is_equal_for_all() {
        let of = |password| registries(host(), password).find(&host()).unwrap();
        assert_eq!(format!("{:?}", of(PASSWORD)), "(secret)");
        assert_eq!(format!("{:?}", of("other password")), "(secret)");
        let registries = format!("{:?}", registries(host(), PASSWORD));
        assert!(!registries.contains("word<1>"), "{registries}");
        let account = format!("{:?}", account(host(), PASSWORD));
        assert!(!account.contains("word<1>"), "{account}");
    }

    #[test]
    fn all_forms_of_an_account_are_hidden() {
        let credentials = registries(host(), PASSWORD).find(&host()).unwrap();
        let basic = STANDARD.encode(format!("wharf:{PASSWORD}"));
        let message = format!("got Authorization: Basic {basic} for {PASSWORD:?}");
        let texts = [
            message.clone(),
            Value::from(message.as_str()).to_string(),
            Value::from(Value::from(message.as_str()).to_string()).to_string(),
            format!("{{\"error\":\"{}\"}}", as_go_escapes(&in_json(PASSWORD))),
            format!(
                "https://wharf:{}@registry.example",
                in_url(PASSWORD, |byte| format!("%{byte:02X}"))
            ),
            credentials.header().to_str().unwrap().to_owned(),
        ];
        for text in texts {
            let hidden = String::from_utf8(credentials.hide(text.as_bytes())).unwrap();
            assert!(hidden.contains("(secret)"), "{text}");
            for part in ["pass", "word", basic.get(8..24).unwrap()] {
                assert!(!hidden.contains(part), "{text}: {hidden}");
            }
        }
        let plain = b"{\"status\":\"Pulling from secret/tools\"}\n";
        assert_eq!(credentials.hide(plain), plain);
    }
}
