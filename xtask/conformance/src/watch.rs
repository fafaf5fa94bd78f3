//! Rules for every response, checked on each response of a run.

use super::check::{Basis, Outcome, Verdict};
use super::client::Response;
use super::openapi::Document;
use super::redact::redacted;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Violations of a rule that the report shows.
const SHOWN: usize = 5;

/// Checks every response.
#[derive(Default)]
pub struct Watch {
    document: Option<Document>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    responses: usize,
    secrets: Vec<String>,
    violations: BTreeMap<Rule, Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    Json,
    NoContent,
    ServerError,
    Challenge,
    RequestId,
    Secret,
    Document,
}

/// In the order of the report.
const RULES: [(Rule, &str, Basis, &str); 7] = [
    (
        Rule::Json,
        "1",
        Basis::Specification,
        "every response body is JSON with Content-Type: application/json",
    ),
    (
        Rule::NoContent,
        "4.7",
        Basis::Specification,
        "a 204 has no body",
    ),
    (
        Rule::ServerError,
        "7",
        Basis::Specification,
        "no response is a 5xx except 502",
    ),
    (
        Rule::Challenge,
        "5",
        Basis::Decision,
        "every 401 carries WWW-Authenticate: Bearer",
    ),
    (
        Rule::RequestId,
        "4",
        Basis::Decision,
        "every response carries X-Request-Id",
    ),
    (
        Rule::Secret,
        "5",
        Basis::Decision,
        "no response contains an API key or a secret of a create request",
    ),
    (
        Rule::Document,
        "2",
        Basis::Decision,
        "every response agrees with the service's OpenAPI document",
    ),
];

impl Watch {
    /// A watch that also validates responses with an OpenAPI document, if there is one.
    pub fn new(document: Option<Document>) -> Self {
        Self {
            document,
            seen: Mutex::default(),
        }
    }

    /// Adds a secret that no later response may contain.
    pub fn add_secret(&self, secret: &str) {
        self.lock().secrets.push(secret.to_owned());
    }

    /// Checks one response.
    pub fn check(&self, method: &str, path: &str, response: &Response) {
        let mismatch = self.document.as_ref().and_then(|document| {
            let body = (!response.text.is_empty()).then_some(&response.body);
            let headers = |name: &str| response.header(name);
            document
                .check(method, path, response.status, body)
                .and_then(|()| document.check_headers(method, path, response.status, headers))
                .err()
        });
        let mut seen = self.lock();
        seen.responses += 1;
        let mut violated = Vec::new();
        let content_type = response.header("content-type").unwrap_or("");
        let is_json = content_type.to_ascii_lowercase();
        let is_json = is_json.split(';').next().unwrap_or("").trim() == "application/json"
            && serde_json::from_str::<serde::de::IgnoredAny>(&response.text).is_ok();
        let other =
            path.starts_with("/api/docs/") || (path == "/metrics" && response.status == 200);
        if !response.text.is_empty() && !is_json && !other {
            violated.push((
                Rule::Json,
                format!("Content-Type: {content_type}: {response}"),
            ));
        }
        if response.status == 204 && !response.text.is_empty() {
            violated.push((Rule::NoContent, response.to_string()));
        }
        if response.status >= 500 && response.status != 502 {
            violated.push((Rule::ServerError, response.to_string()));
        }
        let challenge = response.header("www-authenticate").unwrap_or("");
        if response.status == 401 && !challenge.starts_with("Bearer") {
            violated.push((Rule::Challenge, response.to_string()));
        }
        if response.header("x-request-id").is_none_or(str::is_empty) {
            violated.push((Rule::RequestId, response.to_string()));
        }
        if seen.secrets.iter().any(|s| response.text.contains(s)) {
            // The response itself would reveal the secret.
            violated.push((
                Rule::Secret,
                format!("{method} {path}: {}", response.status),
            ));
        }
        if let Some(why) = mismatch {
            let body = redacted(&response.body);
            let text = format!(
                "{method} {path} returned {}: {why}: {body}",
                response.status
            );
            violated.push((Rule::Document, text));
        }
        for (rule, text) in violated {
            seen.violations.entry(rule).or_default().push(text);
        }
    }

    /// The outcome of each rule.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let seen = self.lock();
        let outcome = |(rule, section, basis, name): &(Rule, &'static str, Basis, &str)| {
            let verdict = match seen.violations.get(rule) {
                Some(texts) => {
                    let shown: Vec<_> = texts.iter().take(SHOWN).map(String::as_str).collect();
                    Verdict::Failed(format!(
                        "{} of {} responses: {}",
                        texts.len(),
                        seen.responses,
                        shown.join("; ")
                    ))
                }
                None if *rule == Rule::Document && self.document.is_none() => {
                    Verdict::Skipped("the service has no OpenAPI document".to_owned())
                }
                None if seen.responses == 0 => Verdict::Skipped("no request was sent".to_owned()),
                None => Verdict::Passed,
            };
            Outcome {
                section,
                name: (*name).to_owned(),
                basis: *basis,
                verdict,
                time: Duration::ZERO,
            }
        };
        RULES.iter().map(outcome).collect()
    }

    /// The documented statuses that no response had.
    pub fn unseen_statuses(&self) -> Vec<(String, u16)> {
        self.document
            .as_ref()
            .map_or_else(Vec::new, Document::unseen)
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
