//! The checks of a file that need no node.

use super::argument::{Argument, Form, Members};
use super::body_node::{BodyNode, MAX_DEPTH, NameUse, NameVisitor, place};
use super::call::Calls;
use super::credentials;
use super::file::{DeclaredBody, Document, RequestDeclaration, Transfer};
use super::lint;
use super::names::{KnownArguments, ValueType, word};
use super::path;
use super::publish;
use super::template::{Part, Template};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

impl Document {
    /// The named values, each after those that it uses.
    pub fn ordered(&self) -> Result<Vec<String>, String> {
        let mut order = Order {
            document: self,
            path: Vec::new(),
            depths: BTreeMap::new(),
            names: Vec::new(),
        };
        for name in self.values.keys() {
            order.visit(name).map_err(|why| format!("values.{why}"))?;
        }
        Ok(order.names)
    }

    /// Checks everything but the order of the values.
    pub fn check(&self) -> Result<(), String> {
        if self.kind.is_empty() {
            return Err("kind: must not be empty".to_owned());
        }
        let names = self.settings.keys().chain(self.values.keys());
        let names = names.chain(self.request.keys()).chain(self.transfer.keys());
        let learnt = self
            .request
            .values()
            .flat_map(|request| request.learn.keys());
        let arguments = self.arguments().flat_map(BTreeMap::keys);
        for name in names.chain(learnt).chain(arguments) {
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
            if name.is_empty() || !name.bytes().all(is_plain) {
                return Err(format!("{name:?}: a name has letters, digits, - and _"));
            }
        }
        for (name, setting) in &self.settings {
            setting
                .check()
                .map_err(|why| format!("settings.{name}: {why}"))?;
        }
        let replacements = self
            .settings
            .values()
            .filter(|setting| setting.replaces.is_some());
        if replacements.count() > 1 {
            return Err("settings: only one `replaces`".to_owned());
        }
        let here = Here::new(self, KnownArguments::All, Calls::ALL);
        for name in self.values.keys() {
            here.value(name)?;
        }
        for (name, request) in &self.request {
            if self.transfer.contains_key(name) {
                return Err(format!("transfer.{name}: a request has this name"));
            }
            self.check_request(request)
                .map_err(|why| format!("request.{name}.{why}"))?;
        }
        for (name, transfer) in &self.transfer {
            self.check_transfer(transfer)
                .map_err(|why| format!("transfer.{name}.{why}"))?;
        }
        Ok(())
    }

    fn check_request(&self, request: &RequestDeclaration) -> Result<(), String> {
        let here = Here::new(
            self,
            KnownArguments::Of(&request.arguments),
            request.call_set(),
        );
        here.arguments(&request.arguments)?;
        here.path("path", &request.path)?;
        if request.path.as_str().contains('?') {
            return Err("path: its query stands in `query`".to_owned());
        }
        let has_files = !matches!(request.body, DeclaredBody::None | DeclaredBody::Json(_));
        if request.job && (has_files || !request.learn.is_empty()) {
            return Err("job: takes no files, and learns nothing".to_owned());
        }
        if !request.is_read() && request.calls.is_none() {
            return Err("calls: required for a change".to_owned());
        }
        if request.credentials.is_some() {
            here.calls_have("image")
                .map_err(|why| format!("credentials: {why}"))?;
            credentials::check(self, request)?;
        }
        if let Some(query) = &request.query {
            let kind = self.type_of_node(query, &mut Vec::new());
            let checked = here.node(query).and(kind.permits(NameUse::Members));
            checked.map_err(|why| place("query", &why))?;
            if let Some(key) = wrong_key(query) {
                return Err(format!(
                    "query: the key {key:?} has other characters than letters, digits, - and _"
                ));
            }
        }
        for (name, template) in &request.headers {
            // Other headers have a meaning for HTTP, or identify the host.
            if !name.to_ascii_lowercase().starts_with("x-") {
                return Err(format!("headers.{name}: must begin with \"X-\""));
            }
            if credentials::is_header(name) {
                return Err(format!(
                    "headers.{name}: the host writes it; use `credentials = \"image\"`"
                ));
            }
            http::HeaderName::try_from(name.as_str())
                .map_err(|_| format!("headers.{name}: not the name of a header"))?;
            here.text(template)
                .map_err(|why| format!("headers.{name}: {why}"))?;
        }
        match &request.body {
            DeclaredBody::None | DeclaredBody::Noise => {}
            DeclaredBody::Archive => here
                .calls_have("files")
                .map_err(|why| format!("body: {why}"))?,
            DeclaredBody::File => {
                let is_file =
                    |argument: &&Argument| matches!(argument.form, Form::Of(Members::Files));
                let files: Vec<_> = request.arguments.values().filter(is_file).collect();
                if files.len() != 1
                    || files
                        .iter()
                        .any(|file| file.optional || file.when.is_some())
                {
                    return Err(
                        "body: needs one argument `of = \"files\"`, always given".to_owned()
                    );
                }
            }
            DeclaredBody::Json(body) => here.node(body).map_err(|why| format!("body.{why}"))?,
        }
        let names = lint::names(self, request);
        for (name, argument) in &request.arguments {
            if matches!(argument.form, Form::Of(Members::Published)) {
                publish::check_port(&names, &format!("argument.{name}"))
                    .map_err(|why| format!("arguments.{name}: {why}"))?;
            }
        }
        for (name, learn) in &request.learn {
            let forms = self
                .request
                .values()
                .filter_map(|other| other.learn.get(name));
            if forms
                .into_iter()
                .any(|other| other.value_type() != learn.value_type())
            {
                return Err(format!(
                    "learn.{name}: another request learns another kind of value"
                ));
            }
            for (pointer, template) in &learn.conditions {
                let checked = here.text(template);
                checked.map_err(|why| format!("learn.{name}.where.{pointer:?}: {why}"))?;
            }
        }
        Ok(())
    }

    /// Whether a value can be this text. An argument is that of any request, as named values have it.
    fn may_be(&self, name: &str, text: &str) -> bool {
        match name.split_once('.') {
            None if name == "kind" => matches!(text, "container" | "vm"),
            Some(("settings", key)) => {
                let setting = self.settings.get(key);
                setting.is_none_or(|setting| setting.may_be(text))
            }
            Some(("argument", key)) if !key.contains('.') => {
                let mut declared = self.arguments().filter_map(|all| all.get(key));
                declared.any(|argument| argument.may_be(text))
            }
            Some(("learnt", _)) => {
                let found = self.type_of(name, KnownArguments::Nothing, &[]);
                found != Some(ValueType::Flag) || text == "true"
            }
            _ => true,
        }
    }

    fn check_transfer(&self, transfer: &Transfer) -> Result<(), String> {
        let here = Here::new(
            self,
            KnownArguments::Of(&transfer.arguments),
            transfer.calls,
        );
        here.arguments(&transfer.arguments)?;
        // A backup reads a snapshot or a volume, which have no changes.
        let writes_alone = transfer.read.is_none() && transfer.write.is_some();
        let has_root = transfer.root.is_some() && !writes_alone;
        let tells_all = transfer.changes.is_some() || has_root || transfer.is_sent();
        if transfer.read.is_some() != tells_all {
            return Err("changes: comes with read, and read with it".to_owned());
        }
        let is_name =
            |text: &String| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase());
        if transfer.changes.is_some() && transfer.root.is_some()
            || !transfer.root.iter().all(is_name)
        {
            return Err("root: the name of a directory, in place of changes".to_owned());
        }
        if !transfer.image.is_empty() && (transfer.write.is_none() || transfer.read.is_some()) {
            return Err("image: for a transfer that writes alone".to_owned());
        }
        for (path, node) in transfer.nodes() {
            here.node(node)
                .map_err(|why| format!("image.{path:?}.{why}"))?;
        }
        if transfer.targets().next().is_none() {
            return Err("read: a transfer needs an end to read or to write".to_owned());
        }
        for (key, target) in transfer.targets() {
            here.path(key, target)?;
        }
        Ok(())
    }
}

/// The path with plain text in place of its values.
fn stand_in(path: &Template) -> String {
    let parts = path.parts().iter().enumerate();
    let texts = parts.map(|(at, part)| match part {
        Part::Literal(text) => text.as_str(),
        Part::Placeholder(_) if at == 0 => "/x",
        Part::Placeholder(_) => "x",
    });
    texts.collect()
}

/// The first constant key of a query that no query has.
fn wrong_key(query: &BodyNode) -> Option<&str> {
    match query {
        BodyNode::Object(object) => {
            let mut keys = object.members.iter().map(|member| &member.key);
            let is_wrong = |key: &&Template| key.is_constant() && !path::is_key(key.as_str());
            keys.find(is_wrong).map(Template::as_str)
        }
        BodyNode::Cases(cases) => {
            let mut values = cases.iter().filter_map(|case| case.is.as_ref());
            values.find_map(wrong_key)
        }
        _ => None,
    }
}

/// A search for the order of the named values.
struct Order<'a> {
    document: &'a Document,
    path: Vec<&'a str>,
    depths: BTreeMap<&'a str, usize>,
    names: Vec<String>,
}

impl<'a> Order<'a> {
    /// How deep the values of a value are.
    fn visit(&mut self, name: &'a str) -> Result<usize, String> {
        if let Some(depth) = self.depths.get(name) {
            return Ok(*depth);
        }
        if self.path.contains(&name) {
            return Err(format!("{name}: is a part of itself"));
        }
        let Some(node) = self.document.values.get(name) else {
            return Ok(0);
        };
        let mut depth = 1;
        self.path.push(name);
        if self.path.len() <= MAX_DEPTH {
            for used in node.names() {
                let used = used.strip_prefix("value.").unwrap_or_default();
                if let Some((used, _)) = self.document.values.get_key_value(used) {
                    depth = depth.max(self.visit(used)?.saturating_add(1));
                }
            }
        }
        if self.path.len().max(depth) > MAX_DEPTH {
            return Err(format!(
                "{name}: values of values are deeper than {MAX_DEPTH}"
            ));
        }
        self.path.pop();
        self.depths.insert(name, depth);
        self.names.push(name.to_owned());
        Ok(depth)
    }
}

/// A place of a file.
struct Here<'a> {
    document: &'a Document,
    known: KnownArguments<'a>,
    calls: Calls,
    /// The named values that are checked.
    checked: RefCell<BTreeSet<String>>,
}

impl<'a> Here<'a> {
    fn new(document: &'a Document, known: KnownArguments<'a>, calls: Calls) -> Self {
        Self {
            document,
            known,
            calls,
            checked: RefCell::default(),
        }
    }

    /// Checks a named value, once.
    fn value(&self, name: &str) -> Result<(), String> {
        match self.document.values.get(name) {
            Some(node) if self.checked.borrow_mut().insert(name.to_owned()) => self
                .node(node)
                .map_err(|why| format!("values.{}", place(name, &why))),
            _ => Ok(()),
        }
    }

    fn name(&self, name: &str, of: NameUse<'_>, around: &[&str]) -> Result<(), String> {
        let found = self.document.type_of(name, self.known, around);
        let Some(found) = found else {
            return Err(format!("there is no {{{name}}} here"));
        };
        found
            .permits(of)
            .map_err(|why| format!("{{{name}}} {why}"))?;
        let setting = name.strip_prefix("settings.").unwrap_or_default();
        if publish::is_public(setting) && !matches!(of, NameUse::Tested | NameUse::Compared(_)) {
            return Err(format!(
                "{{{name}}} is of public ports alone; {{published.address}} is the address of each port"
            ));
        }
        if let NameUse::Compared(text) = of
            && !self.document.may_be(name, text)
        {
            return Err(format!("{{{name}}} is never {text:?}"));
        }
        let of = name.strip_suffix(".address");
        if of.is_some_and(|of| self.is_port(of)) && !self.document.has_addresses() {
            let ([range, first], common) = (publish::OF_EACH, publish::COMMON);
            return Err(format!(
                "{{{name}}} needs the setting `{common}`, a text, or `{range}`, a text, and `{first}`, \
                 an integer"
            ));
        }
        let is_local = around
            .iter()
            .any(|list| name.split('.').next() == Some(word(list)));
        if is_local {
            Ok(())
        } else {
            self.calls_have(name)
        }
    }

    /// Whether a name is that of a published port.
    fn is_port(&self, name: &str) -> bool {
        let argument = match (name.strip_prefix("argument."), self.known) {
            (Some(argument), KnownArguments::Of(arguments)) => arguments.get(argument),
            _ => return name == "published",
        };
        argument.is_some_and(|argument| matches!(argument.form, Form::Of(Members::Published)))
    }

    /// Refuses a value that a call of the request does not have.
    fn calls_have(&self, name: &str) -> Result<(), String> {
        // Values alone are in no request.
        if matches!(self.known, KnownArguments::All) {
            return Ok(());
        }
        let having = self.document.calls_of(name);
        if having.includes(self.calls) {
            Ok(())
        } else {
            Err(format!(
                "only {} has {{{name}}}; the request's `calls` must name such calls",
                having.described()
            ))
        }
    }

    fn arguments(&self, arguments: &BTreeMap<String, Argument>) -> Result<(), String> {
        let alone = Here::new(self.document, KnownArguments::Nothing, self.calls);
        for (name, argument) in arguments {
            let at = |why: String| format!("arguments.{name}: {why}");
            if let Some(when) = &argument.when {
                alone.walk(&mut |see| when.walk(&[], see)).map_err(at)?;
            }
            match &argument.form {
                Form::OneOf(templates) => {
                    for template in templates {
                        alone
                            .walk(&mut |see| match template.alone() {
                                Some(_) => template.walk(&[], see),
                                None => template.walk_text(&[], see),
                            })
                            .map_err(at)?;
                    }
                }
                Form::Of(list) => self.calls_have(list.list()).map_err(at)?,
                Form::Flag | Form::Max(_) | Form::Pattern(_) => {}
            }
        }
        Ok(())
    }

    fn path(&self, key: &str, path: &Template) -> Result<(), String> {
        // A value may be the path's beginning.
        if !path.as_str().starts_with(['/', '{']) {
            return Err(format!("{key}: must begin with /"));
        }
        let checked = self.text(path).and_then(|()| path::check(&stand_in(path)));
        checked.map_err(|why| format!("{key}: {why}"))
    }

    fn text(&self, template: &Template) -> Result<(), String> {
        self.walk(&mut |see| template.walk_text(&[], see))
    }

    fn node(&self, node: &BodyNode) -> Result<(), String> {
        self.walk(&mut |see| node.walk(&mut Vec::new(), see))?;
        publish::check_ports(node)
    }

    /// Checks the names of a part of the file, and those of the named values that it uses.
    fn walk(
        &self,
        part: &mut dyn FnMut(&mut NameVisitor<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        part(&mut |name, of, around| {
            self.name(name, of, around)?;
            let value = name.strip_prefix("value.");
            value.map_or(Ok(()), |value| self.value(value))
        })
    }
}
