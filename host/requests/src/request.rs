//! Writes a request of a file: its target, its headers and its body.

use super::argument::{self, Form, Members};
use super::fault::Fault;
use super::file::{DeclaredBody, ImageFile, RequestDeclaration, Transfer};
use super::path;
use super::template::Template;
use super::values::CallValues;
use super::writer::{Writer, scalar};
use super::{
    CallScope, Purpose, Rendered, RenderedBody, RequestRefusal, Requests, SourceTargets, Targets,
};
use serde_json::Value;
use std::fmt::Write as _;

/// The most bytes of a body of JSON.
const MAX_BODY: usize = 1 << 20;
/// The most characters of an unknown name in a refusal.
const MAX_NAME: usize = 100;

impl Requests {
    /// Writes a request with these arguments for a call, or refuses it with a reason.
    pub fn render(
        &self,
        scope: &CallScope,
        name: &str,
        arguments: &[(String, String)],
        purpose: Purpose,
    ) -> Result<Rendered, RequestRefusal> {
        let Some(request) = self.document.request.get(name) else {
            return Err(self.unknown(name));
        };
        let written = request.write(Writer::new(self.values(scope)), arguments, purpose);
        written.map_err(|fault| RequestRefusal(format!("{name}: {}", fault.words())))
    }

    /// Writes the targets of a transfer with these arguments for a call, or refuses it with a reason.
    pub fn transfer(
        &self,
        scope: &CallScope,
        name: &str,
        arguments: &[(String, String)],
    ) -> Result<Targets, RequestRefusal> {
        let Some(transfer) = self.document.transfer.get(name) else {
            return Err(self.unknown(name));
        };
        let written = transfer.write(Writer::new(self.values(scope)), arguments);
        written.map_err(|fault| RequestRefusal(format!("{name}: {}", fault.words())))
    }

    /// The refusal of a name that the file does not have, or has for the other function.
    fn unknown(&self, name: &str) -> RequestRefusal {
        let document = &self.document;
        RequestRefusal(if document.transfer.contains_key(name) {
            format!("{name}: is a transfer")
        } else if document.request.contains_key(name) {
            format!("{name}: is no transfer")
        } else {
            let shown: String = name.chars().take(MAX_NAME).collect();
            format!("there is no request {shown:?}")
        })
    }

    /// The values of a call.
    pub(crate) fn values<'a>(&'a self, scope: &'a CallScope) -> CallValues<'a> {
        CallValues {
            document: &self.document,
            settings: &self.settings,
            scope,
        }
    }
}

impl RequestDeclaration {
    fn write<'a>(
        &'a self,
        mut writer: Writer<'a>,
        arguments: &[(String, String)],
        purpose: Purpose,
    ) -> Result<Rendered, Fault> {
        let scope = writer.values().scope;
        match purpose {
            Purpose::Job if !self.job => return Err(Fault::refused("must not be a job")),
            Purpose::Send if self.job => return Err(Fault::refused("must be a job")),
            Purpose::Send | Purpose::Job if !self.is_read() && !scope.changes => {
                let why = format!("{} in a call that changes nothing", self.method);
                return Err(Fault::refused(why));
            }
            Purpose::Send | Purpose::Job | Purpose::Show => {}
        }
        self.call_set().include(scope).map_err(Fault::refused)?;
        writer.arguments = argument::check(&mut writer, &self.arguments, arguments)?;
        let mut target = writer.path(&self.path).map_err(|fault| fault.at("path"))?;
        if let Some(query) = &self.query {
            let written = writer
                .node(query)
                .map_err(|fault| fault.required().at("query"))?;
            push_query(&mut target, &written)?;
        }
        path::check(&target).map_err(Fault::refused)?;
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, template) in &self.headers {
            let at = |fault: Fault| fault.required().at(&format!("headers.{name}"));
            let value = writer.text(template).map_err(at)?;
            if http::HeaderValue::from_str(&value).is_err() {
                return Err(at(Fault::refused("not the value of a header")));
            }
            headers.push((name.clone(), value));
        }
        let credentials = self
            .credentials
            .map(|credentials| credentials.registry(writer.values()))
            .transpose()
            .map_err(|fault| fault.required().at("credentials"))?;
        Ok(Rendered {
            method: self.method.clone(),
            target,
            headers,
            credentials: credentials.flatten(),
            body: self
                .body(&mut writer)
                .map_err(|fault| fault.required().at("body"))?,
        })
    }

    fn body<'a>(&'a self, writer: &mut Writer<'a>) -> Result<RenderedBody, Fault> {
        Ok(match &self.body {
            DeclaredBody::None => RenderedBody::None,
            DeclaredBody::Noise => RenderedBody::Noise,
            DeclaredBody::Archive => RenderedBody::Archive(writer.values().files()?.to_vec()),
            DeclaredBody::File => {
                let mut arguments = self.arguments.iter();
                let is_file = |form: &Form| matches!(form, Form::Of(Members::Files));
                let named = arguments.find(|(_, argument)| is_file(&argument.form));
                let path = named.and_then(|(name, _)| writer.arguments.get(name.as_str()));
                let path = path.and_then(|file| file.get("path"));
                let mut files = writer.values().files()?.iter();
                let file = files.find(|file| path.is_some_and(|path| *path == file.path));
                let file = file.ok_or_else(|| Fault::refused("no argument names a file"))?;
                RenderedBody::File(file.clone())
            }
            DeclaredBody::Json(node) => {
                let text = writer.node(node)?.to_string();
                if text.len() > MAX_BODY {
                    return Err(Fault::refused("has more than 1 MiB"));
                }
                RenderedBody::Json(text)
            }
        })
    }
}

impl Transfer {
    fn write<'a>(
        &'a self,
        mut writer: Writer<'a>,
        arguments: &[(String, String)],
    ) -> Result<Targets, Fault> {
        let scope = writer.values().scope;
        self.calls.include(scope).map_err(Fault::refused)?;
        if !scope.changes {
            return Err(Fault::refused("a transfer in a call that changes nothing"));
        }
        writer.arguments = argument::check(&mut writer, &self.arguments, arguments)?;
        let mut target = |key: &str, template: &'a Option<Template>| {
            let Some(template) = template else {
                return Ok(None);
            };
            let target = writer.path(template).map_err(|fault| fault.at(key))?;
            path::check(&target).map_err(|why| Fault::refused(why).at(key))?;
            Ok::<_, Fault>(Some(target))
        };
        let (read, changes) = (
            target("read", &self.read)?,
            target("changes", &self.changes)?,
        );
        let root = self.root.clone();
        let below = root.clone().filter(|_| read.is_none());
        let source = read.map(|read| SourceTargets {
            read,
            changes,
            root,
        });
        let write = target("write", &self.write)?;
        let image = self.image.iter().map(|(path, file)| {
            let text = match file {
                ImageFile::Text(text) => text.clone(),
                ImageFile::Json(node) => {
                    let at = |fault: Fault| fault.required().at(&format!("image.{path:?}"));
                    writer.node(node).map_err(at)?.to_string()
                }
            };
            Ok((path.clone(), text))
        });
        Ok(Targets {
            source,
            write,
            below,
            image: image.collect::<Result<_, Fault>>()?,
            kept: {
                let mounts = scope.subject.iter().filter_map(|one| one.mounts.as_ref());
                mounts.flatten().map(|mount| mount.path.clone()).collect()
            },
        })
    }
}

/// Adds a query with the values in percent-encoding. A list or an object is JSON.
fn push_query(target: &mut String, query: &Value) -> Result<(), Fault> {
    let pairs = query
        .as_object()
        .ok_or_else(|| Fault::refused("query: is no table"))?;
    for (at, (key, value)) in pairs.iter().enumerate() {
        if !path::is_key(key) {
            return Err(Fault::refused(format!("the query key {key:?}")));
        }
        let text = scalar(value).unwrap_or_else(|| value.to_string());
        if text.chars().any(char::is_control) {
            return Err(Fault::refused(format!("the value of query key {key:?}")));
        }
        target.push(if at == 0 { '?' } else { '&' });
        target.push_str(key);
        target.push('=');
        for byte in text.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                target.push(char::from(byte));
            } else {
                // Writing to a text cannot fail.
                let _ = write!(target, "%{byte:02X}");
            }
        }
    }
    Ok(())
}
