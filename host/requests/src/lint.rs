//! The parts of a request file that need a second look, such as those left to the driver.

use super::RequestFile;
use super::argument::{Argument, Form};
use super::body_node::{BodyNode, NameUse};
use super::file::{DeclaredBody, Document, RequestDeclaration, Transfer};
use super::names::ValueType;
use super::publish;
use super::show::escaped;
use super::template::Template;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;

/// Names that tie a request to the instance of the call, to its image, or to this installation's mark.
const OWN: [&str; 3] = ["instance", "image", "mark"];
/// A text that only a pattern for any text fits.
const ANY: &str = "Any text? \u{2026}=*";

impl RequestFile {
    /// Names the parts that need a second look, a sentence for each.
    pub fn lint(&self) -> Vec<String> {
        let findings = lint(&self.0).into_iter();
        findings.map(|finding| escaped(&finding)).collect()
    }
}

fn lint(document: &Document) -> Vec<String> {
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for (name, request) in &document.request {
        let names = names(document, request);
        let mut add = |what: String| findings.push(format!("request.{name}: {what}"));
        arguments(&request.arguments, &names, &mut add);
        let ties = Ties {
            document,
            arguments: &request.arguments,
        };
        ties.path(&request.path, &mut add);
        if !request.is_read() && !ties.request(request) {
            add("nothing ties this change to the instance of the call".to_owned());
        }
        for (id, learn) in &request.learn {
            let has_ids = learn.value_type() == ValueType::Ids;
            if has_ids && learn.items.is_some() && learn.conditions.is_empty() {
                add(format!("every item of the answer becomes {{learnt.{id}}}"));
            }
        }
        used.extend(names);
    }
    for (name, transfer) in &document.transfer {
        let names = names_of_transfer(document, transfer);
        let mut add = |what: String| findings.push(format!("transfer.{name}: {what}"));
        arguments(&transfer.arguments, &names, &mut add);
        let ties = Ties {
            document,
            arguments: &transfer.arguments,
        };
        let mut image = transfer.nodes();
        let has_tied_image = image.any(|(_, node)| ties.node(node, &mut Vec::new()));
        for (_, target) in transfer.targets() {
            ties.path(target, &mut add);
            if !has_tied_image && !ties.text(target, &mut Vec::new()) {
                add(format!("nothing ties {target} to the instance of the call"));
            }
        }
        used.extend(names);
    }
    unused(document, &used, &mut findings);
    findings
}

/// Finds arguments that may be anything, and those without a use.
fn arguments(
    arguments: &BTreeMap<String, Argument>,
    names: &BTreeSet<String>,
    add: &mut dyn FnMut(String),
) {
    for (name, argument) in arguments {
        if matches!(&argument.form, Form::Pattern(pattern) if pattern.is_match(ANY)) {
            add(format!("the argument {name:?} may be any text"));
        }
        if !is_used(names, &format!("argument.{name}")) {
            add(format!("the argument {name:?} has no use"));
        }
    }
}

/// The search for a tie of a request to the instance of the call, or to this installation's mark. A condition
/// is no tie.
struct Ties<'a> {
    document: &'a Document,
    arguments: &'a BTreeMap<String, Argument>,
}

impl Ties<'_> {
    /// Finds parts of a path that may be any text of a form, in named values too.
    fn path(&self, path: &Template, add: &mut dyn FnMut(String)) {
        let names = with_values(self.document, path.names(), written);
        let mut arguments = names
            .iter()
            .filter_map(|name| self.arguments.get(name.strip_prefix("argument.")?));
        if arguments.any(|argument| matches!(argument.form, Form::Pattern(_))) {
            add(format!("the path {path} leaves a part to the driver"));
        }
    }

    fn request(&self, request: &RequestDeclaration) -> bool {
        let seen = &mut Vec::new();
        let query = request.query.as_ref();
        if self.text(&request.path, seen) || query.is_some_and(|query| self.node(query, seen)) {
            return true;
        }
        // A path with one of these is that of another object, which the rest of the request may only mention.
        let names = with_values(self.document, request.path.names(), written);
        let is_of_other =
            |name: &String| name.starts_with("argument.") || name.starts_with("learnt.");
        if names.iter().any(is_of_other) {
            return false;
        }
        let body = match &request.body {
            DeclaredBody::Json(body) => Some(body),
            DeclaredBody::None
            | DeclaredBody::Archive
            | DeclaredBody::File
            | DeclaredBody::Noise => None,
        };
        let mut headers = request.headers.values();
        headers.any(|text| self.text(text, seen)) || body.is_some_and(|body| self.node(body, seen))
    }

    fn text(&self, text: &Template, seen: &mut Vec<String>) -> bool {
        text.names().iter().any(|name| self.name(name, seen))
    }

    fn node(&self, node: &BodyNode, seen: &mut Vec<String>) -> bool {
        match node {
            // A list may have no members.
            BodyNode::Constant(_) | BodyNode::Each(_) => false,
            BodyNode::Template(text) => self.text(text, seen),
            BodyNode::List(items) => items.iter().any(|item| self.node(item, seen)),
            BodyNode::Cases(cases) => {
                let mut values = cases.iter().filter_map(|case| case.is.as_ref());
                values.all(|value| self.node(value, seen))
            }
            BodyNode::Object(object) => {
                let mut members = object.members.iter();
                object.with.iter().any(|name| self.name(name, seen))
                    || members.any(|member| {
                        self.text(&member.key, seen) || self.node(&member.value, seen)
                    })
            }
        }
    }

    fn name(&self, name: &str, seen: &mut Vec<String>) -> bool {
        let Some((table, key)) = name.split_once('.') else {
            return OWN.contains(&name);
        };
        let argument = key.split('.').next().unwrap_or(key);
        match table {
            "network" | "public" | "volume" | "snapshot" => true,
            "value" => {
                let value = self.document.values.get(key);
                value.is_some_and(|value| self.node(value, seen))
            }
            "argument" => match self.arguments.get(argument).map(|it| &it.form) {
                Some(Form::OneOf(texts)) => texts.iter().all(|text| self.text(text, seen)),
                _ => false,
            },
            // A chain of ids that ends in itself is no tie.
            "learnt" if seen.iter().any(|one| one == key) => false,
            "learnt" => {
                seen.push(key.to_owned());
                let mut sources = self.document.request.values();
                let is_tied = sources.all(|request| match request.learn.get(key) {
                    Some(learn) => {
                        let ties = Ties {
                            arguments: &request.arguments,
                            ..*self
                        };
                        let mut texts = iter::once(&request.path).chain(learn.conditions.values());
                        texts.any(|text| ties.text(text, seen))
                    }
                    None => true,
                });
                seen.pop();
                is_tied
            }
            _ => false,
        }
    }
}

/// The names in a request and in the values that it uses.
/// The names of the values of a request, and of the named values that it uses.
pub(super) fn names(document: &Document, request: &RequestDeclaration) -> BTreeSet<String> {
    let mut names = request.path.names();
    names.extend(request.headers.values().flat_map(Template::names));
    names.extend(names_of_arguments(&request.arguments));
    for learn in request.learn.values() {
        names.extend(learn.conditions.values().flat_map(Template::names));
    }
    names.extend(request.query.iter().flat_map(BodyNode::names));
    if let DeclaredBody::Json(body) = &request.body {
        names.extend(body.names());
    }
    with_values(document, names, BodyNode::names)
}

fn names_of_transfer(document: &Document, transfer: &Transfer) -> BTreeSet<String> {
    let templates = transfer.targets().map(|(_, target)| target);
    let mut names: BTreeSet<String> = templates.flat_map(Template::names).collect();
    names.extend(transfer.nodes().flat_map(|(_, node)| node.names()));
    names.extend(names_of_arguments(&transfer.arguments));
    with_values(document, names, BodyNode::names)
}

fn names_of_arguments(arguments: &BTreeMap<String, Argument>) -> Vec<String> {
    let mut names = Vec::new();
    for argument in arguments.values() {
        if let Form::OneOf(templates) = &argument.form {
            names.extend(templates.iter().flat_map(Template::names));
        }
        let tests = argument.when.iter().flat_map(|when| &when.0);
        names.extend(tests.map(|test| test.name.clone()));
    }
    names
}

/// The names of a value without those of its conditions.
fn written(node: &BodyNode) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // The walk itself finds no error.
    let _ = node.walk(&mut Vec::new(), &mut |name, of, _| {
        if !matches!(of, NameUse::Tested | NameUse::Compared(_)) {
            names.insert(name.to_owned());
        }
        Ok(())
    });
    names
}

/// Adds the names that `inner` finds in the values among the names.
fn with_values(
    document: &Document,
    mut names: BTreeSet<String>,
    inner: fn(&BodyNode) -> BTreeSet<String>,
) -> BTreeSet<String> {
    let mut rest: Vec<String> = names.iter().cloned().collect();
    while let Some(name) = rest.pop() {
        let value = name.strip_prefix("value.");
        let value = value.and_then(|value| document.values.get(value));
        let found = value.into_iter().flat_map(inner);
        rest.extend(found.filter(|name| names.insert(name.clone())));
    }
    names
}

fn unused(document: &Document, used: &BTreeSet<String>, findings: &mut Vec<String>) {
    let has_addresses = used.iter().any(|name| name.ends_with(".address"));
    for (name, setting) in &document.settings {
        let by_images = setting.replaces.is_some();
        let by_addresses = has_addresses && publish::is_read(name);
        if !by_images && !by_addresses && !is_used(used, &format!("settings.{name}")) {
            findings.push(format!("settings.{name}: no request uses it"));
        }
    }
    for name in document.values.keys() {
        if !is_used(used, &format!("value.{name}")) {
            findings.push(format!("values.{name}: no request uses it"));
        }
    }
}

/// Whether a name or a part of it is among the names.
fn is_used(names: &BTreeSet<String>, name: &str) -> bool {
    let is_part = |used: &String| {
        let rest = used.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    names.iter().any(is_part)
}
