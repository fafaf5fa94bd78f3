//! Policies as data: a file for each kind of engine says what its driver may ask. Everything else is
//! refused.

mod document;
mod explain;
mod learn;
mod lint;
mod names;
mod publish;
mod schema;
mod template;
#[cfg(test)]
mod tests;

use super::path::RequestTarget;
use super::{CheckedRequest, Refusal, Sent};
use crate::message::{Body, Request, Response, Transfer};
use document::{BodyRule, Calls, Document, QueryValue, Rule, TransferRule};
use http::Method;
use names::Names;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use wharf_domain::blueprint::File;
use wharf_requests::CallScope;

/// A policy file, read and checked.
#[derive(Debug, Clone)]
pub struct PolicyFile(Arc<Document>);

impl PolicyFile {
    /// Reads and checks a policy file. An error names the place in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        Document::parse(text).map(|document| Self(Arc::new(document)))
    }

    /// The kind of engine that it is for.
    pub fn kind(&self) -> &str {
        &self.0.kind
    }

    /// Whether its engine runs in this process.
    pub fn in_process(&self) -> bool {
        self.0.in_process
    }

    /// Says in words what a driver could do to a node.
    pub fn explain(&self) -> String {
        explain::explain(&self.0)
    }

    /// The parts that need a second look, a sentence each.
    pub fn lint(&self) -> Vec<String> {
        lint::lint(&self.0)
    }
}

/// The policy of one node.
#[derive(Debug)]
pub struct Policy {
    document: Arc<Document>,
    settings: BTreeMap<String, Value>,
}

impl Policy {
    /// Binds a file to the settings of a node. An error names the setting.
    pub fn new(file: &PolicyFile, given: &Value) -> Result<Self, String> {
        let none = serde_json::Map::new();
        let given = match given {
            Value::Null => &none,
            Value::Object(given) => given,
            _ => return Err("must be a table".to_owned()),
        };
        let mut settings = BTreeMap::new();
        for (name, setting) in &file.0.settings {
            let value = match (given.get(name), &setting.default) {
                (Some(value), _) => {
                    setting
                        .accept(value)
                        .map_err(|why| format!("{name}: {why}"))?;
                    value
                }
                (None, Some(default)) => default,
                (None, None) => return Err(format!("{name}: required: {}", setting.about)),
            };
            settings.insert(name.clone(), value.clone());
        }
        if publish::has_addresses(&file.0) {
            publish::check(&settings)?;
        }
        Ok(Self {
            document: Arc::clone(&file.0),
            settings,
        })
    }

    /// Whether the file has a setting with this name.
    pub fn has_setting(&self, name: &str) -> bool {
        self.settings.contains_key(name)
    }

    /// Allows a request, or refuses it with a reason.
    pub fn check(
        &self,
        scope: &CallScope,
        request: &Request,
        job: bool,
    ) -> Result<CheckedRequest, Refusal> {
        for (name, _) in &request.headers {
            if !name.eq_ignore_ascii_case("accept") {
                return Err(Refusal::new(format!(
                    "header {name:?}; only accept may be set"
                )));
            }
        }
        if !matches!(request.method, Method::GET | Method::HEAD) && !scope.changes {
            return Err(Refusal::new(format!(
                "{} in a call that changes nothing",
                request.method
            )));
        }
        let target = RequestTarget::parse(&request.path)?;
        let body = match &request.body {
            Body::Json(text) => Sent::Json(
                serde_json::from_str(text)
                    .map_err(|_| Refusal::new("the body is not valid JSON"))?,
            ),
            Body::Archive(files) => Sent::Archive(files),
            Body::File(file) => Sent::File(file),
            Body::Empty => Sent::Empty,
        };
        let (rule, headers) = self.find(scope, &request.method, &target, &body, job)?;
        let body = match body {
            Sent::Json(value) => Some(value.to_string()),
            Sent::Archive(_) | Sent::File(_) | Sent::Empty => None,
        };
        Ok(CheckedRequest {
            body,
            headers,
            rule: rule.to_owned(),
        })
    }

    /// Finds the rule that allows a request, and the host's headers. The refusal has the reason of the
    /// rule that fits best.
    fn find(
        &self,
        scope: &CallScope,
        method: &Method,
        target: &RequestTarget<'_>,
        body: &Sent<'_>,
        job: bool,
    ) -> Result<(&str, Headers), Refusal> {
        let names = self.names(scope, body);
        let path = self.path(target);
        let mut refusal: Option<(u32, Refusal)> = None;
        for (name, rule) in &self.document.request {
            if rule.method != *method {
                continue;
            }
            match rule.judge(&names, &path, target, body, job) {
                Ok(headers) => return Ok((name, headers)),
                Err((depth, why)) => {
                    let why = Refusal::new(format!("{name}: {}", why.0));
                    // Of the rules that fit as well, the first is told.
                    if refusal.as_ref().is_none_or(|(deepest, _)| depth > *deepest) {
                        refusal = Some((depth, why));
                    }
                }
            }
        }
        // A rule for another path says nothing about this one.
        match refusal {
            Some((depth, why)) if depth > 0 => Err(why),
            _ => Err(Refusal::new(format!("{method} on this path"))),
        }
    }

    /// Allows a transfer, or refuses it with a reason.
    pub fn check_transfer(&self, scope: &CallScope, transfer: &Transfer) -> Result<(), Refusal> {
        let names = self.names(scope, &Sent::Empty);
        let mut refusal = Refusal::new("this kind of engine has no transfers");
        for (name, rule) in &self.document.transfer {
            match rule.judge(&names, transfer, &|target| self.path(target)) {
                Ok(()) => return Ok(()),
                Err(why) => refusal = Refusal::new(format!("{name}: {}", why.0)),
            }
        }
        Err(refusal)
    }

    /// Learns ids from the answer to a request that a rule has allowed.
    pub fn learn(&self, scope: &mut CallScope, rule: &str, answer: &Response) {
        if let Some(rule) = self.document.request.get(rule) {
            let learnt = learn::ids(&self.names(scope, &Sent::Empty), rule, answer);
            learn::keep(scope, learnt);
        }
    }

    /// The path without the version of the interface.
    fn path(&self, target: &RequestTarget<'_>) -> String {
        let segments = match target.segments.as_slice() {
            [version, rest @ ..] if self.document.versioned && is_version(version) => rest,
            all => all,
        };
        format!("/{}", segments.join("/"))
    }

    fn names<'a>(&'a self, scope: &'a CallScope, body: &Sent<'a>) -> Names<'a> {
        Names {
            document: &self.document,
            settings: &self.settings,
            scope,
            file: match body {
                Sent::File(file) => Some(file),
                _ => None,
            },
            each: None,
        }
    }
}

/// The path and the query, decoded.
fn whole(path: &str, target: &RequestTarget<'_>) -> String {
    let query: Vec<_> = target
        .query
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    match query.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", query.join("&")),
    }
}

/// `v1.41`, `v4.3.1`.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|digits| {
        digits.len() <= 12
            && digits.split('.').count() >= 2
            && digits
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Names and values.
type Headers = Vec<(String, String)>;

/// A refusal, and how much of the rule fits.
type Misfit = (u32, Refusal);

impl Rule {
    /// Allows a request and gives the host's headers. With `each`, one published port fits all of it.
    fn judge(
        &self,
        names: &Names<'_>,
        path: &str,
        target: &RequestTarget<'_>,
        body: &Sent<'_>,
        job: bool,
    ) -> Result<Headers, Misfit> {
        if self.each.is_none() {
            return self.judge_one(names, path, target, body, job);
        }
        let depth = u32::from(self.is_like(path));
        self.called(names.scope).map_err(|why| (0, why))?;
        let ports = names.each(names::PUBLISHED).map_err(|why| (depth, why))?;
        let none = Refusal::new("the instance has no published port");
        let mut misfit: Option<Misfit> = None;
        for port in ports {
            let names = names.with(port);
            match self.judge_one(&names, path, target, body, job) {
                Ok(headers) => return Ok(headers),
                // The port of the deepest misfit is the likely one.
                Err(other) if misfit.as_ref().is_none_or(|one| other.0 > one.0) => {
                    misfit = Some(other);
                }
                Err(_) => {}
            }
        }
        Err(misfit.unwrap_or((depth, none)))
    }

    /// Allows a request, with the names of one published port if the rule has `each`.
    fn judge_one(
        &self,
        names: &Names<'_>,
        path: &str,
        target: &RequestTarget<'_>,
        body: &Sent<'_>,
        job: bool,
    ) -> Result<Headers, Misfit> {
        let at = |depth: u32| move |why: Refusal| (depth, why);
        self.called(names.scope).map_err(at(0))?;
        if !names.matches(&self.path, path).map_err(at(1))? {
            let depth = u32::from(self.is_like(path));
            let why = Refusal::new(format!(
                "the path must be {}, not {}",
                self.path_of(names),
                whole(path, target)
            ));
            return Err((depth, why));
        }
        if job != self.job {
            let why = match self.job {
                true => "must be a job",
                false => "must not be a job",
            };
            return Err((2, Refusal::new(why)));
        }
        self.query(names, target).map_err(at(3))?;
        self.body(names, body).map_err(at(4))?;
        let header = |(name, template)| {
            let value = names.expand(template)?;
            match value.as_slice() {
                [value] => Ok((String::clone(name), names::text(value))),
                _ => Err(Refusal::new(format!("header {name}: must be one value"))),
            }
        };
        self.headers
            .iter()
            .map(header)
            .collect::<Result<_, _>>()
            .map_err(at(5))
    }

    fn called(&self, scope: &CallScope) -> Result<(), Refusal> {
        self.calls.map_or(Ok(()), |calls| calls.include(scope))
    }

    /// Whether a path differs from the rule's only in the placeholders.
    fn is_like(&self, path: &str) -> bool {
        let rule = self.path.to_string();
        let (ours, theirs): (Vec<_>, Vec<_>) =
            (rule.split('/').collect(), path.split('/').collect());
        ours.len() == theirs.len()
            && ours
                .iter()
                .zip(&theirs)
                .all(|(ours, theirs)| ours == theirs || ours.contains('{'))
    }

    fn path_of(&self, names: &Names<'_>) -> String {
        match names.expand(&self.path).as_deref() {
            Ok([path]) => names::text(path),
            _ => self.path.to_string(),
        }
    }

    fn query(&self, names: &Names<'_>, target: &RequestTarget<'_>) -> Result<(), Refusal> {
        let plain = |key: &str| key.trim_end_matches('?').to_owned();
        let keys: Vec<_> = self.query.keys().map(|key| plain(key)).collect();
        target.only(&keys.iter().map(String::as_str).collect::<Vec<_>>())?;
        for (key, wanted) in &self.query {
            let name = plain(key);
            let Some(given) = target.get(&name) else {
                if key.ends_with('?') {
                    continue;
                }
                return Err(Refusal::new(format!("the query key {name:?} is required")));
            };
            match wanted {
                QueryValue::Text(template) => {
                    if !names.matches(template, given)? {
                        return Err(Refusal::new(format!(
                            "{name}={given:?}; it must be {template}"
                        )));
                    }
                }
                QueryValue::AtMost { max } => {
                    if !given.parse::<u64>().is_ok_and(|number| number <= *max) {
                        return Err(Refusal::new(format!(
                            "{name}={given:?}; it must be an integer up to {max}"
                        )));
                    }
                }
                QueryValue::Form { pattern } => {
                    if !pattern.is_match(given) {
                        return Err(Refusal::new(format!(
                            "{name}={given:?}; it must fit {pattern}"
                        )));
                    }
                }
                QueryValue::Json { json } => {
                    let given = serde_json::from_str(given)
                        .map_err(|_| Refusal::new(format!("{name}: not valid JSON")))?;
                    schema::validate(json, &given, names)
                        .map_err(|why| Refusal::new(format!("{name}: {}", why.0)))?;
                }
            }
        }
        Ok(())
    }

    fn body(&self, names: &Names<'_>, body: &Sent<'_>) -> Result<(), Refusal> {
        let known = || -> Result<&[File], Refusal> {
            let subject = names.scope.subject.as_ref();
            let creation = subject.and_then(|subject| subject.creation.as_ref());
            let creation = creation.ok_or_else(|| Refusal::new("only ensure writes files"))?;
            Ok(&creation.files)
        };
        match &self.body {
            BodyRule::None => body.nothing(),
            BodyRule::Archive => body.archive(known()?),
            BodyRule::File => body.file(known()?),
            BodyRule::Json(wanted) => schema::validate(wanted, body.json()?, names),
        }
    }
}

impl Calls {
    /// Refuses other calls.
    fn include(self, scope: &CallScope) -> Result<(), Refusal> {
        let subject = scope.subject.as_ref();
        let (fits, what) = match self {
            Self::Node => (subject.is_none(), "a call about the whole node"),
            Self::Survey => (scope.survey.is_some(), "the survey of the node"),
            Self::Mark => (scope.mark.is_some(), "the call that marks the store"),
            Self::Instance => (subject.is_some(), "a call about one instance"),
            Self::Change => (
                subject.is_some() && scope.changes,
                "a call that changes one instance",
            ),
            Self::Create => (
                subject.is_some_and(|subject| subject.creation.is_some()) && !scope.moves,
                "the call that creates an instance",
            ),
            Self::Move => (scope.moves, "the call that moves an instance here"),
        };
        match fits {
            true => Ok(()),
            false => Err(Refusal::new(format!("only for {what}"))),
        }
    }
}

impl TransferRule {
    /// Allows a transfer.
    fn judge(
        &self,
        names: &Names<'_>,
        transfer: &Transfer,
        path: &dyn Fn(&RequestTarget<'_>) -> String,
    ) -> Result<(), Refusal> {
        self.calls.include(names.scope)?;
        for (what, given, rule) in [
            ("read", &transfer.read, &self.read),
            ("changes", &transfer.changes, &self.changes),
            ("write", &transfer.write, &self.write),
        ] {
            let target = RequestTarget::parse(given)?;
            let given = whole(&path(&target), &target);
            if !names.matches(rule, &given)? {
                return Err(Refusal::new(format!("{what}: must be {rule}")));
            }
        }
        Ok(())
    }
}
