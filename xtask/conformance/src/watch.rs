//! Rules for every response, whatever the request; checked on each response of a run.

use super::check::{Basis, Outcome, Verdict};
use super::client::Answer;
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
    answers: usize,
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
        "every body is JSON, and says so in Content-Type",
    ),
    (
        Rule::NoContent,
        "4.7",
        Basis::Specification,
        "an answer 204 has no body",
    ),
    (
        Rule::ServerError,
        "7",
        Basis::Specification,
        "no answer is a 5xx but 502 for a host out of reach",
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
        "every answer carries X-Request-Id",
    ),
    (
        Rule::Secret,
        "5",
        Basis::Decision,
        "no answer shows an API key or a secret given at creation",
    ),
    (
        Rule::Document,
        "2",
        Basis::Decision,
        "every answer agrees with the service's OpenAPI document",
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
    pub fn see(&self, method: &str, path: &str, answer: &Answer) {
        let disagrees = self.document.as_ref().and_then(|document| {
            let body = (!answer.text.is_empty()).then_some(&answer.body);
            let headers = |name: &str| answer.header(name);
            document
                .check(method, path, answer.status, body)
                .and_then(|()| document.check_headers(method, path, answer.status, headers))
                .err()
        });
        let mut seen = self.lock();
        seen.answers += 1;
        let mut violated = Vec::new();
        let content_type = answer.header("content-type").unwrap_or("");
        let is_json = content_type.to_ascii_lowercase();
        let is_json = is_json.split(';').next().unwrap_or("").trim() == "application/json"
            && serde_json::from_str::<serde::de::IgnoredAny>(&answer.text).is_ok();
        if !answer.text.is_empty() && !is_json && !path.starts_with("/api/docs/") {
            violated.push((
                Rule::Json,
                format!("Content-Type: {content_type}: {answer}"),
            ));
        }
        if answer.status == 204 && !answer.text.is_empty() {
            violated.push((Rule::NoContent, answer.to_string()));
        }
        if answer.status >= 500 && answer.status != 502 {
            violated.push((Rule::ServerError, answer.to_string()));
        }
        let challenge = answer.header("www-authenticate").unwrap_or("");
        if answer.status == 401 && !challenge.starts_with("Bearer") {
            violated.push((Rule::Challenge, answer.to_string()));
        }
        if answer.header("x-request-id").is_none_or(str::is_empty) {
            violated.push((Rule::RequestId, answer.to_string()));
        }
        if seen.secrets.iter().any(|s| answer.text.contains(s)) {
            // The response itself would reveal the secret.
            violated.push((Rule::Secret, format!("{method} {path}: {}", answer.status)));
        }
        if let Some(why) = disagrees {
            let body = redacted(&answer.body);
            let text = format!("{method} {path} answers {}: {why}: {body}", answer.status);
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
                        "{} of {} answers: {}",
                        texts.len(),
                        seen.answers,
                        shown.join("; ")
                    ))
                }
                None if *rule == Rule::Document && self.document.is_none() => {
                    Verdict::Skipped("there is no OpenAPI document to hold it against".to_owned())
                }
                None if seen.answers == 0 => Verdict::Skipped("nothing was asked".to_owned()),
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
