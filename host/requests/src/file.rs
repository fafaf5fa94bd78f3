//! A request file as written.

use super::argument::Argument;
use super::body_node::BodyNode;
use super::call::Calls;
use super::credentials::RequestCredentials;
use super::learn::Learn;
use super::names::ValueType;
use super::setting::Setting;
use super::template::Template;
use http::Method;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The most bytes of a file.
const MAX_FILE: usize = 64 << 10;
/// The most bytes of a compiled pattern.
const MAX_PATTERN: usize = 64 << 10;

/// A request file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Document {
    /// The kind of engine, as the driver names it.
    pub kind: String,
    /// One sentence for its reader.
    pub about: String,
    /// Whether the engine runs in Wharf's own process.
    #[serde(default)]
    pub in_process: bool,
    /// Settings of a node.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
    /// Named values.
    #[serde(default)]
    pub values: BTreeMap<String, BodyNode>,
    /// The requests.
    #[serde(default)]
    pub request: BTreeMap<String, RequestDeclaration>,
    /// The copies of content.
    #[serde(default)]
    pub transfer: BTreeMap<String, Transfer>,
    /// The types of the named values.
    #[serde(skip)]
    pub types: BTreeMap<String, ValueType>,
}

/// A request that a driver may name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestDeclaration {
    /// One sentence for the reader.
    pub about: String,
    /// The method.
    #[serde(deserialize_with = "method")]
    pub method: Method,
    /// The path.
    pub path: Template,
    /// The object of the query's keys.
    #[serde(default)]
    pub query: Option<BodyNode>,
    /// Headers beside the usual ones.
    #[serde(default)]
    pub headers: BTreeMap<String, Template>,
    /// The calls that may send it; none: all.
    #[serde(default)]
    pub calls: Option<Calls>,
    /// Its arguments.
    #[serde(default)]
    pub arguments: BTreeMap<String, Argument>,
    /// The body.
    #[serde(default)]
    pub body: DeclaredBody,
    /// Whether it is a long request, for `job` in place of `send`.
    #[serde(default)]
    pub job: bool,
    /// The registry whose credentials the host adds; none: it adds none.
    #[serde(default)]
    pub credentials: Option<RequestCredentials>,
    /// Values that the answer tells.
    #[serde(default)]
    pub learn: BTreeMap<String, Learn>,
}

/// A copy of the content of one container to another. With one of its ends alone, the other end is the host's: an
/// engine of another node, or a backup.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// One sentence for the reader.
    pub about: String,
    /// The path and query of the GET for the content.
    #[serde(default)]
    pub read: Option<Template>,
    /// Those of the GET for the changes to the image; present with `read`, unless `root` is or a backup reads.
    #[serde(default)]
    pub changes: Option<Template>,
    /// The directory of the archive that has the content, which is then all of it. In a transfer that writes alone, the
    /// directory of the written archive.
    #[serde(default)]
    pub root: Option<String>,
    /// Those of the PUT that writes the content.
    #[serde(default)]
    pub write: Option<Template>,
    /// The files of the image as which the content is written, by a POST.
    #[serde(default)]
    pub image: BTreeMap<String, ImageFile>,
    /// The calls that may begin it.
    pub calls: Calls,
    /// Its arguments.
    #[serde(default)]
    pub arguments: BTreeMap<String, Argument>,
}

impl Transfer {
    /// Whether its content goes to the host.
    pub fn is_sent(&self) -> bool {
        Calls::SEND.includes(self.calls) || Calls::SEND_VOLUME.includes(self.calls)
    }

    /// Its targets, with their keys.
    pub fn targets(&self) -> impl Iterator<Item = (&'static str, &Template)> {
        let targets = [
            ("read", &self.read),
            ("changes", &self.changes),
            ("write", &self.write),
        ];
        targets
            .into_iter()
            .filter_map(|(key, target)| Some((key, target.as_ref()?)))
    }

    /// The parts of its image.
    pub fn nodes(&self) -> impl Iterator<Item = (&String, &BodyNode)> {
        self.image.iter().filter_map(|(path, file)| match file {
            ImageFile::Json(node) => Some((path, node)),
            ImageFile::Text(_) => None,
        })
    }
}

/// A file beside the content of an image.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "toml::Value")]
pub enum ImageFile {
    /// This text, in which braces have no meaning.
    Text(String),
    Json(BodyNode),
}

impl TryFrom<toml::Value> for ImageFile {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::String(text) => Ok(Self::Text(text)),
            value => BodyNode::try_from(value).map(Self::Json),
        }
    }
}

/// The body of a request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "toml::Value")]
pub enum DeclaredBody {
    /// Nothing.
    #[default]
    None,
    /// An archive of the blueprint's files.
    Archive,
    /// The file of the argument that names one.
    File,
    /// Bytes without a meaning, to fill a disk.
    Noise,
    /// JSON.
    Json(BodyNode),
}

impl TryFrom<toml::Value> for DeclaredBody {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        match value.as_str() {
            Some("archive") => Ok(Self::Archive),
            Some("file") => Ok(Self::File),
            Some("noise") => Ok(Self::Noise),
            Some(text) if !text.contains('{') => Err(format!(
                "{text:?} is not \"archive\", \"file\", \"noise\" or a JSON body"
            )),
            _ => BodyNode::try_from(value).map(Self::Json),
        }
    }
}

impl Document {
    /// Reads and checks a file. An error names the place in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_FILE {
            return Err(format!("has more than {} KiB", MAX_FILE >> 10));
        }
        let mut document: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for name in document.ordered()? {
            if let Some(node) = document.values.get(&name) {
                let found = document.type_of_node(node, &mut Vec::new());
                document.types.insert(name, found);
            }
        }
        document.check()?;
        Ok(document)
    }

    /// The beginning of names of images, and the setting that replaces it.
    pub fn replacement(&self) -> Option<(&str, &str)> {
        self.settings
            .iter()
            .find_map(|(name, setting)| Some((setting.replaces.as_deref()?, name.as_str())))
    }

    /// The arguments of all requests and transfers.
    pub fn arguments(&self) -> impl Iterator<Item = &BTreeMap<String, Argument>> {
        let requests = self.request.values().map(|request| &request.arguments);
        requests.chain(self.transfer.values().map(|transfer| &transfer.arguments))
    }
}

impl RequestDeclaration {
    /// The calls that may send it.
    pub fn call_set(&self) -> Calls {
        self.calls.unwrap_or(Calls::ALL)
    }

    /// Whether it changes nothing.
    pub fn is_read(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }
}

/// A pattern that always stands for a whole text.
pub fn compile(text: &str) -> Result<Regex, String> {
    let build = |text: &str| {
        let pattern = RegexBuilder::new(text).size_limit(MAX_PATTERN).build();
        pattern.map_err(|error| format!("not a pattern: {error}").replace('\n', " "))
    };
    // Alone first: the text could end the group around it.
    build(text)?;
    build(&format!("^(?:{text})$"))
}

/// Deserializes a pattern.
pub fn optional_pattern<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Regex>, D::Error> {
    let text = String::deserialize(deserializer)?;
    compile(&text).map(Some).map_err(serde::de::Error::custom)
}

fn method<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
    const KNOWN: [Method; 6] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ];
    let text = String::deserialize(deserializer)?;
    KNOWN
        .into_iter()
        .find(|method| method.as_str() == text)
        .ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{text:?} is not one of GET, HEAD, POST, PUT, PATCH, DELETE"
            ))
        })
}
