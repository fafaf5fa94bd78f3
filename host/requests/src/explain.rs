//! A request file in words, for an operator who decides on it.

use super::RequestFile;
use super::argument::{Argument, Form};
use super::body_node::{BodyNode, Case, Member};
use super::file::{DeclaredBody, Document, ImageFile, RequestDeclaration, Transfer};
use super::setting::shown;
use super::show::escaped;
use super::template::Template;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Display;

/// The depth of the details of a request.
const DETAIL: usize = 3;

impl RequestFile {
    /// Describes the requests of the file in words.
    pub fn explain(&self) -> String {
        explain(&self.0)
    }
}

fn explain(document: &Document) -> String {
    let mut text = Lines::default();
    let Document { kind, about, .. } = document;
    text.add(0, format!("Engines of kind {kind:?}. {about}"));
    if document.in_process {
        text.add(0, "The engine runs in Wharf's own process.");
    }
    let requests = |reads: bool| {
        let all = document.request.iter();
        all.filter(move |(_, request)| request.is_read() == reads)
    };
    let read = "The driver may read:";
    text.section(read, requests(true), |text, (name, request)| {
        text.request(name, request);
    });
    let change = "The driver may change:";
    text.section(change, requests(false), |text, (name, request)| {
        text.request(name, request);
    });
    let copy = "The driver may copy:";
    text.section(copy, &document.transfer, |text, (name, transfer)| {
        text.transfer(name, transfer);
    });
    text.section("Values:", &document.values, |text, (name, value)| {
        text.node(1, &format!("{{value.{name}}}"), value);
    });
    let settings = "Settings of a node:";
    text.section(settings, &document.settings, |text, (name, setting)| {
        let default = match &setting.default {
            Some(default) => format!("default {default}"),
            None if setting.optional => "optional".to_owned(),
            None => "required".to_owned(),
        };
        text.add(1, format!("{name}: {} ({default})", setting.about));
    });
    text.0
}

/// Indented lines.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, depth: usize, words: impl Display) {
        self.0.push_str(&"  ".repeat(depth));
        self.0.push_str(&escaped(&words.to_string()));
        self.0.push('\n');
    }

    /// Adds a section, unless it is empty.
    fn section<T>(
        &mut self,
        title: &str,
        items: impl IntoIterator<Item = T>,
        mut add: impl FnMut(&mut Self, T),
    ) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_some() {
            self.0.push('\n');
            self.add(0, title);
            items.for_each(|item| add(self, item));
        }
    }

    fn request(&mut self, name: &str, request: &RequestDeclaration) {
        self.add(1, format!("{name}: {}", request.about));
        let (members, whole) = match &request.query {
            Some(BodyNode::Object(query)) if query.with.is_empty() => {
                (query.members.as_slice(), None)
            }
            other => (&[][..], other.as_ref()),
        };
        let keys: Vec<_> = members.iter().map(key_of_query).collect();
        let mark = if keys.is_empty() { "" } else { "?" };
        let target = format!("{}{mark}{}", request.path, keys.join("&"));
        self.add(DETAIL, format!("{} {target}", request.method));
        if let Some(query) = whole {
            self.node(DETAIL, "with the query", query);
        }
        for member in members
            .iter()
            .filter(|member| plain(&member.value).is_none())
        {
            self.member(DETAIL, member);
        }
        if let Some(calls) = &request.calls {
            self.add(DETAIL, format!("only in {}", calls.described()));
        }
        if request.job {
            self.add(DETAIL, "as a long request, which outlasts a call");
        }
        if request.credentials.is_some() {
            self.add(
                DETAIL,
                "with the operator's credentials for the registry of {image}, if the program or the operator names it",
            );
        }
        self.arguments(&request.arguments);
        for (name, value) in &request.headers {
            self.add(DETAIL, format!("header {name}: {value}"));
        }
        match &request.body {
            DeclaredBody::None => {}
            DeclaredBody::Archive => self.add(DETAIL, "with an archive of the blueprint's files"),
            DeclaredBody::File => self.add(DETAIL, "with one file of the blueprint"),
            DeclaredBody::Noise => self.add(DETAIL, "with 10 MiB of random bytes"),
            DeclaredBody::Json(body) => self.node(DETAIL, "with the body", body),
        }
        for (name, learn) in &request.learn {
            let statuses: Vec<_> = learn.statuses.iter().map(u16::to_string).collect();
            let statuses = statuses.join(" or ");
            self.add(
                DETAIL,
                format!(
                    "its answer {statuses} tells {{learnt.{name}}}: {}",
                    learn.described()
                ),
            );
        }
    }

    fn transfer(&mut self, name: &str, transfer: &Transfer) {
        self.add(1, format!("{name}: {}", transfer.about));
        let end = |target: &Option<Template>, other: &str| {
            let target = target.as_ref().map(Template::to_string);
            target.unwrap_or_else(|| other.to_owned())
        };
        let other = if transfer.is_sent() {
            "a backup"
        } else {
            "an engine of another node"
        };
        let from = end(&transfer.read, "an engine of another node or a backup");
        let to = end(&transfer.write, other);
        self.add(DETAIL, format!("from {from} to {to}"));
        if let Some(changes) = &transfer.changes {
            self.add(DETAIL, format!("by the list of changes at {changes}"));
        }
        if let Some(root) = &transfer.root {
            self.add(DETAIL, format!("what is below {root} in the archive"));
        }
        for (path, file) in &transfer.image {
            match file {
                ImageFile::Text(text) => {
                    self.add(DETAIL, format!("as an image with {path}: {text:?}"));
                }
                ImageFile::Json(node) => {
                    self.node(DETAIL, &format!("as an image with {path}"), node)
                }
            }
        }
        self.add(DETAIL, format!("only in {}", transfer.calls.described()));
        self.arguments(&transfer.arguments);
    }

    fn arguments(&mut self, arguments: &BTreeMap<String, Argument>) {
        for (name, argument) in arguments {
            let form = match &argument.form {
                Form::OneOf(templates) => {
                    let all: Vec<_> = templates.iter().map(Template::as_str).collect();
                    all.join(" or ")
                }
                Form::Flag => "true or false".to_owned(),
                Form::Max(max) => format!("an integer up to {max}"),
                Form::Pattern(pattern) => format!("text of the form {}", shown(pattern)),
                Form::Of(list) => format!("one of the call's {}", list.list()),
            };
            let optional = if argument.optional {
                ", or nothing"
            } else {
                ""
            };
            let when = argument.when.as_ref();
            let when = when.map_or_else(String::new, |when| format!(", when {when}"));
            self.add(
                DETAIL,
                format!("the driver chooses {{argument.{name}}}: {form}{optional}{when}"),
            );
        }
    }

    fn member(&mut self, depth: usize, member: &Member) {
        let optional = if member.optional {
            " (left out if empty)"
        } else {
            ""
        };
        self.node(depth, &format!("{}{optional}", member.key), &member.value);
    }

    /// Adds a part of a body with its name.
    fn node(&mut self, depth: usize, name: &str, node: &BodyNode) {
        if let Some(text) = plain(node) {
            return self.add(depth, format!("{name}: {text}"));
        }
        let inner = depth.saturating_add(1);
        match node {
            BodyNode::Constant(_) | BodyNode::Template(_) => {}
            BodyNode::List(items) => {
                self.add(depth, format!("{name}: a list of"));
                items.iter().for_each(|item| self.node(inner, "-", item));
            }
            BodyNode::Cases(cases) => {
                self.add(depth, format!("{name}:"));
                cases.iter().for_each(|case| self.case(inner, case));
            }
            BodyNode::Object(object) => {
                self.add(depth, format!("{name}:"));
                for value in &object.with {
                    self.add(inner, format!("the members of {{{value}}}"));
                }
                let members = object.members.iter();
                members.for_each(|member| self.member(inner, member));
            }
            BodyNode::Each(each) => {
                let key = each.key.as_ref().map_or("-", Template::as_str);
                self.add(depth, format!("{name}: for each of {{{}}}", each.list));
                self.node(inner, key, &each.item);
            }
        }
    }

    fn case(&mut self, depth: usize, case: &Case) {
        let name = match &case.when {
            Some(when) => format!("when {when}"),
            None => "otherwise".to_owned(),
        };
        match &case.is {
            Some(is) => self.node(depth, &name, is),
            None => self.add(depth, format!("{name}: nothing")),
        }
    }
}

fn key_of_query(member: &Member) -> String {
    let value = plain(&member.value).unwrap_or_else(|| "…".to_owned());
    let optional = if member.optional { "?" } else { "" };
    format!("{}{optional}={value}", member.key)
}

/// The value, if it fits into a line.
fn plain(node: &BodyNode) -> Option<String> {
    match node {
        BodyNode::Constant(Value::String(text)) if text.is_empty() => Some("empty text".to_owned()),
        BodyNode::Constant(Value::String(text)) => Some(text.clone()),
        BodyNode::Constant(other) => Some(other.to_string()),
        BodyNode::Template(template) => Some(template.to_string()),
        BodyNode::List(items) if items.is_empty() => Some("an empty list".to_owned()),
        BodyNode::List(items) => {
            let is_text =
                |item: &&BodyNode| matches!(item, BodyNode::Constant(_) | BodyNode::Template(_));
            let items: Vec<_> = items.iter().filter(is_text).map_while(plain).collect();
            let all = matches!(node, BodyNode::List(list) if list.len() == items.len());
            all.then(|| items.join(", "))
        }
        BodyNode::Object(object) if object.members.is_empty() && object.with.is_empty() => {
            Some("an empty object".to_owned())
        }
        _ => None,
    }
}
