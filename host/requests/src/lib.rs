//! The requests to an engine. A driver names a request of its request file and gives a few arguments;
//! this crate writes method, path, query and body from the file and the scope of the call.

mod answer;
mod argument;
mod body_node;
mod call;
mod check;
mod condition;
mod credentials;
mod explain;
mod fault;
mod file;
mod learn;
mod lint;
mod names;
mod path;
mod publish;
mod request;
mod sample;
mod scope;
mod setting;
mod show;
mod template;
#[cfg(test)]
mod tests;
mod values;
mod writer;

pub use sample::SampleCall;
pub use scope::{CallScope, CallSubject, CreateScope, SnapshotPurpose};

use file::Document;
use http::Method;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use template::Template;
use wharf_domain::blueprint::BlueprintFile;
use wharf_domain::image::Registry;
use writer::Writer;

/// A request file, read and checked.
#[derive(Debug, Clone)]
pub struct RequestFile(Arc<Document>);

/// The requests of a file for one node.
#[derive(Debug)]
pub struct Requests {
    document: Arc<Document>,
    settings: BTreeMap<String, Value>,
}

/// The use that a driver wants to make of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To send it and to await the answer.
    Send,
    /// To run it as a long request.
    Job,
    /// To see it.
    Show,
}

/// A written request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// Headers beside the usual ones.
    pub headers: Vec<(String, String)>,
    /// The registry whose credentials the host adds when it sends the request.
    pub credentials: Option<Registry>,
    /// The body.
    pub body: RenderedBody,
}

/// The targets of the GETs of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceTargets {
    /// Of the content.
    pub read: String,
    /// Of the changes to the image, unless the content has a root.
    pub changes: Option<String>,
    /// The directory of the archive that has the content.
    pub root: Option<String>,
}

/// The targets of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets {
    /// The end that is read; none if it is on another engine.
    pub source: Option<SourceTargets>,
    /// Of the request that writes the content; none if another engine gets it.
    pub write: Option<String>,
    /// The directory of the written archive that gets the content, where it is not the root.
    pub below: Option<String>,
    /// The files of the image as which it is written, with their paths. Without one, a PUT unpacks it.
    pub image: Vec<(String, String)>,
    /// Paths in the destination that have mounts of the instance's volumes. Their content stays.
    pub kept: Vec<String>,
}

/// The body of a written request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenderedBody {
    /// Nothing.
    None,
    /// JSON, with sorted keys.
    Json(String),
    /// An archive of these files.
    Archive(Vec<BlueprintFile>),
    /// The content of one file.
    File(BlueprintFile),
    /// 10 MiB of random bytes, which no file system stores in less.
    Noise,
}

/// The reason of a refusal, for the driver and the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRefusal(pub String);

impl RequestFile {
    /// Reads and checks a file. An error names the place in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document = Document::parse(text);
        // An error cites the file.
        let document = document.map_err(|error| show::escaped_lines(&error))?;
        Ok(Self(Arc::new(document)))
    }

    /// The kind of engine that it is for.
    pub fn kind(&self) -> &str {
        &self.0.kind
    }

    /// Whether its engine runs in this process.
    pub fn in_process(&self) -> bool {
        self.0.in_process
    }
}

impl Requests {
    /// Binds a file to the settings of a node. An error names the setting.
    pub fn new(file: &RequestFile, given: &Value) -> Result<Self, String> {
        let none = Map::new();
        let given = match given {
            Value::Null => &none,
            Value::Object(given) => given,
            _ => return Err("must be a table".to_owned()),
        };
        let document = Arc::clone(&file.0);
        let mut settings = BTreeMap::new();
        for (name, setting) in &document.settings {
            let value = match (given.get(name), &setting.default) {
                (Some(value), _) | (None, Some(value)) => value,
                (None, None) if setting.optional => continue,
                (None, None) => return Err(format!("{name}: required: {}", setting.about)),
            };
            let value = setting
                .accept(value)
                .map_err(|why| format!("{name}: {why}"))?;
            settings.insert(name.clone(), value);
        }
        if document.has_address_of_each() {
            publish::check(&settings)?;
        }
        Ok(Self { document, settings })
    }

    /// Whether the file has a setting with this name.
    pub fn has_setting(&self, name: &str) -> bool {
        self.document.settings.contains_key(name)
    }

    /// Whether a request of the file has credentials.
    pub fn has_credentials(&self) -> bool {
        let mut requests = self.document.request.values();
        requests.any(|request| request.credentials.is_some())
    }

    /// Learns from the answer to a request that has been written with these arguments.
    pub fn learn(
        &self,
        scope: &mut CallScope,
        name: &str,
        arguments: &[(String, String)],
        status: u16,
        body: &[u8],
    ) {
        let Some(request) = self.document.request.get(name) else {
            return;
        };
        let text = |template: &Template| {
            let mut writer = Writer::new(self.values(scope));
            writer.arguments = argument::check(&mut writer, &request.arguments, arguments).ok()?;
            writer.text(template).ok()
        };
        let found = learn::find(&request.learn, status, body, &text);
        learn::keep(scope, found);
    }
}
