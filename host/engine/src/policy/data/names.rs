//! The placeholders of templates: their names, and their values in a call.

use super::document::{Document, SettingType};
use super::publish;
use super::template::{ANY, Part, Placeholder, Template};
use crate::policy::Refusal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use wharf_domain::blueprint::File;
use wharf_domain::driver::{Network, PublishedPort};
use wharf_requests::{CallScope, CreateScope, Subject};

/// Characters of the short form of an installation's id.
const INSTALLATION_END: usize = 8;
/// The most texts that one template may stand for.
const MAX_TEXTS: usize = 4096;
/// Mebibytes in a gibibyte.
const MIB: u64 = 1024;
/// Bytes in a gibibyte.
const GIB: u64 = 1 << 30;

/// Placeholders with one value, each with its meaning.
pub const SINGLE: &[(&str, &str)] = &[
    ("installation", "this installation's id"),
    (
        "installation.end",
        "the last 8 letters and digits of this installation's id",
    ),
    ("mark", "the mark of the engine's store"),
    ("instance", "the instance of the call"),
    ("incarnation", "the number of this creation of the instance"),
    ("kind", "`container` or `vm`"),
    ("hostname", "the instance's host name"),
    ("size.vcpus", "its vCPUs"),
    ("size.mem_gib", "its RAM in GiB"),
    ("size.mem_mib", "its RAM in MiB"),
    ("size.mem_bytes", "its RAM in bytes"),
    ("size.disk_gib", "its disk in GiB"),
    ("size.disk_bytes", "its disk in bytes"),
    ("network.id", "its owner's network"),
    ("network.subnet", "that network's range"),
    ("network.prefix", "the length of that range's prefix"),
    ("network.gateway", "the node's address on that network"),
    ("network.address", "the instance's address on that network"),
    ("public.id", "the network of its public address"),
    ("public.subnet", "that network's range"),
    ("public.prefix", "the length of that range's prefix"),
    ("public.gateway", "the node's address on that network"),
    ("public.address", "the instance's public address"),
];

/// Placeholders with any number of values, of which a request may have each.
pub const LISTS: &[(&str, &str)] = &[
    ("images", "the blueprint's images for this kind of engine"),
    ("gpus", "the instance's GPUs"),
    ("ports", "its open ports"),
    ("environment", "the blueprint's variables, as NAME=VALUE"),
    ("command", "the blueprint's command, word by word"),
    (
        "directories",
        "the parent directories of the blueprint's files",
    ),
];

/// The list of pairs, for `each`.
pub const PUBLISHED: &str = "published";

/// Placeholders of one pair of [`PUBLISHED`].
pub const PAIR: &[(&str, &str)] = &[
    ("published.node_port", "a port of the node"),
    (
        "published.instance_port",
        "the port of the instance behind it",
    ),
    (
        publish::ADDRESS,
        "the address in `publish_cidr` whose number is the node's port less `publish_from`",
    ),
];

/// Placeholders of the file in the body.
pub const FILE: &[(&str, &str)] = &[
    ("file.path", "the file's path"),
    ("file.uid", "its owner"),
    ("file.gid", "its group"),
    ("file.mode", "its mode, octal with a leading 0"),
];

/// The place of a template.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The request has a file as its body.
    pub file: bool,
    /// The list of the innermost `each`.
    pub each: Option<String>,
    /// Free text may stand here.
    pub free: bool,
}

/// Checks the names of a template. An error says which are known.
pub fn check(document: &Document, template: &Template, context: &Context) -> Result<(), String> {
    for name in template.names() {
        let known = match name.split_once('.') {
            Some(("settings", setting)) => document.settings.contains_key(setting),
            Some(("name", own)) => document.names.contains_key(own),
            Some(("learnt", id)) => document
                .request
                .values()
                .any(|rule| rule.learn.contains_key(id)),
            Some(("file", _)) => context.file && is_in(FILE, name),
            Some(("published", _)) => {
                if name == publish::ADDRESS && !publish::has_addresses(document) {
                    return Err(format!(
                        "{template}: {{{name}}} needs the settings `publish_cidr`, a text, and \
                         `publish_from`, an integer"
                    ));
                }
                context.each.as_deref() == Some(PUBLISHED) && is_in(PAIR, name)
            }
            None if name == ANY => {
                if !context.free || template.alone().is_none() && !is_segment(template) {
                    return Err(format!(
                        "{template}: {{any}} stands only for a whole part of a path or a whole \
                         value of the query"
                    ));
                }
                true
            }
            None if name == "item" => context
                .each
                .as_deref()
                .is_some_and(|list| list != PUBLISHED),
            _ => is_in(SINGLE, name) || is_in(LISTS, name),
        };
        if !known {
            return Err(format!("{template}: there is no {{{name}}} here"));
        }
    }
    Ok(())
}

/// Whether each `{any}` is a whole segment of the path.
fn is_segment(template: &Template) -> bool {
    let text = template.to_string();
    let whole = text
        .split('/')
        .filter(|segment| *segment == "{any}")
        .count();
    whole == text.matches("{any}").count()
}

/// Checks the name of a list, for `each` and `enum`.
pub fn is_list(document: &Document, name: &str) -> bool {
    match name.strip_prefix("settings.") {
        Some(setting) => document
            .settings
            .get(setting)
            .is_some_and(|setting| setting.kind() == SettingType::List),
        None => name == PUBLISHED || is_in(LISTS, name),
    }
}

fn is_in(table: &[(&str, &str)], name: &str) -> bool {
    table.iter().any(|(known, _)| *known == name)
}

/// The values of the placeholders in one call.
#[derive(Debug, Clone)]
pub struct Names<'a> {
    pub document: &'a Document,
    pub settings: &'a BTreeMap<String, Value>,
    pub scope: &'a CallScope,
    pub file: Option<&'a File>,
    /// The member of the innermost `each`.
    pub each: Option<Each<'a>>,
}

/// A member of a list.
#[derive(Debug, Clone)]
pub enum Each<'a> {
    /// A published port.
    Published(&'a PublishedPort),
    /// A member of another list.
    Item(Value),
}

impl Names<'_> {
    /// Every value that the template may stand for. A placeholder alone keeps the type of its value.
    pub fn expand(&self, template: &Template) -> Result<Vec<Value>, Refusal> {
        if let Some(placeholder) = template.alone() {
            return self.values(placeholder);
        }
        let mut texts = vec![String::new()];
        for part in template.parts() {
            let values = match part {
                Part::Literal(text) => vec![Value::from(text.as_str())],
                Part::Placeholder(placeholder) => self.values(placeholder)?,
            };
            if texts.len().saturating_mul(values.len()) > MAX_TEXTS {
                return Err(Refusal::new(format!(
                    "{template} stands for too many texts"
                )));
            }
            texts = texts
                .iter()
                .flat_map(|start| {
                    values
                        .iter()
                        .map(move |value| format!("{start}{}", text(value)))
                })
                .collect();
        }
        Ok(texts.into_iter().map(Value::from).collect())
    }

    /// Whether the template stands for this text.
    pub fn matches(&self, template: &Template, given: &str) -> Result<bool, Refusal> {
        self.matches_from(template.parts(), given)
    }

    fn matches_from(&self, parts: &[Part], given: &str) -> Result<bool, Refusal> {
        let Some((first, rest)) = parts.split_first() else {
            return Ok(given.is_empty());
        };
        match first {
            Part::Literal(literal) => match given.strip_prefix(literal.as_str()) {
                Some(after) => self.matches_from(rest, after),
                None => Ok(false),
            },
            Part::Placeholder(placeholder) if placeholder.name == ANY => {
                let end = match rest.is_empty() {
                    true => given.len(),
                    false => given.find('/').unwrap_or(given.len()),
                };
                let (any, after) = given.split_at(end);
                Ok(!any.is_empty() && self.matches_from(rest, after)?)
            }
            Part::Placeholder(placeholder) => {
                for value in self.values(placeholder)? {
                    if let Some(after) = given.strip_prefix(text(&value).as_str())
                        && self.matches_from(rest, after)?
                    {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// The names within an `each`, for one member of its list.
    pub fn with<'b>(&'b self, member: Each<'b>) -> Names<'b> {
        Names {
            each: Some(member),
            ..self.clone()
        }
    }

    fn values(&self, placeholder: &Placeholder) -> Result<Vec<Value>, Refusal> {
        let values = self.of(&placeholder.name)?;
        Ok(match placeholder.text {
            true => values.iter().map(|value| text(value).into()).collect(),
            false => values,
        })
    }

    /// The members of a list.
    pub fn each(&self, list: &str) -> Result<Vec<Each<'_>>, Refusal> {
        if list == PUBLISHED {
            return Ok(self
                .creation()?
                .published
                .iter()
                .map(Each::Published)
                .collect());
        }
        Ok(self.of(list)?.into_iter().map(Each::Item).collect())
    }

    fn of(&self, name: &str) -> Result<Vec<Value>, Refusal> {
        let one = |value: Value| Ok(vec![value]);
        if let Some((table, key)) = name.split_once('.') {
            match table {
                "settings" => {
                    return match self.settings.get(key) {
                        Some(Value::Array(items)) => Ok(items.clone()),
                        Some(value) => one(value.clone()),
                        None => Err(absent(name, "the node has no such setting")),
                    };
                }
                "name" => {
                    return match self.document.names.get(key) {
                        Some(choice) => {
                            let templates = choice.templates().iter();
                            let each: Result<Vec<_>, _> =
                                templates.map(|template| self.expand(template)).collect();
                            each.map(|each| each.concat())
                        }
                        None => Err(absent(name, "the policy has no such name")),
                    };
                }
                "learnt" => {
                    let learnt = self.scope.learnt.get(key);
                    let ids = learnt.into_iter().flatten();
                    return Ok(ids.map(|id| id.as_str().into()).collect());
                }
                "size" => return one(self.size(key)?.into()),
                "network" => {
                    return one(network_part(self.subject()?.network.as_ref(), name, key)?);
                }
                "public" => {
                    let network = self.subject()?.public_network.as_ref();
                    return one(network_part(network, name, key)?);
                }
                "file" => return one(self.file_part(key)?),
                "published" => {
                    let Some(Each::Published(port)) = &self.each else {
                        return Err(absent(name, "it stands outside of an `each`"));
                    };
                    return one(match key {
                        "node_port" => port.node_port.into(),
                        "address" => publish::address(self.settings, port.node_port)
                            .map_err(|why| absent(name, &why))?
                            .to_string()
                            .into(),
                        _ => port.instance_port.into(),
                    });
                }
                _ => {}
            }
        }
        match name {
            "installation" => one(self.scope.installation.as_str().into()),
            "installation.end" => one(end(&self.scope.installation).into()),
            "mark" => match &self.scope.mark {
                Some(mark) => one(mark.as_str().into()),
                None => Err(absent(name, "the call does not mark the store")),
            },
            "instance" => one(self.subject()?.tag.instance.to_string().into()),
            "incarnation" => one(self.subject()?.tag.incarnation.into()),
            "kind" => one(match self.subject()?.vm_ports {
                Some(_) => "vm".into(),
                None => "container".into(),
            }),
            "hostname" => one(self.creation()?.hostname.as_str().into()),
            "images" => Ok(match &self.scope.survey {
                Some(images) => texts(images),
                None => texts(&self.creation()?.images),
            }),
            "gpus" => Ok(texts(&self.creation()?.gpu_devices)),
            "ports" => {
                let ports = self.subject()?.vm_ports.as_deref();
                let ports = ports.ok_or_else(|| absent(name, "the instance is not a VM"))?;
                Ok(ports.iter().map(|port| (*port).into()).collect())
            }
            "command" => Ok(texts(&self.creation()?.command)),
            "environment" => Ok(self
                .creation()?
                .environment
                .iter()
                .map(|(name, value)| format!("{name}={value}").into())
                .collect()),
            "directories" => Ok(directories(&self.creation()?.files)),
            "item" => match &self.each {
                Some(Each::Item(value)) => one(value.clone()),
                _ => Err(absent(name, "it stands outside of an `each`")),
            },
            _ => Err(absent(name, "the host does not know it")),
        }
    }

    fn subject(&self) -> Result<&Subject, Refusal> {
        let subject = self.scope.subject.as_ref();
        subject.ok_or_else(|| Refusal::new("a call about the whole node touches no instance"))
    }

    fn creation(&self) -> Result<&CreateScope, Refusal> {
        let creation = self.subject()?.creation.as_ref();
        creation.ok_or_else(|| Refusal::new("only ensure creates"))
    }

    fn size(&self, key: &str) -> Result<u64, Refusal> {
        let size = self.subject()?.size;
        let size = size.ok_or_else(|| Refusal::new("this call has no size"))?;
        let (mem, disk) = (u64::from(size.mem_gib), u64::from(size.disk_size_gib));
        Ok(match key {
            "vcpus" => size.n_vcpus.into(),
            "mem_gib" => mem,
            "mem_mib" => mem.saturating_mul(MIB),
            "mem_bytes" => mem.saturating_mul(GIB),
            "disk_gib" => disk,
            _ => disk.saturating_mul(GIB),
        })
    }

    fn file_part(&self, key: &str) -> Result<Value, Refusal> {
        let file = self.file;
        let file = file.ok_or_else(|| Refusal::new("this request takes a file"))?;
        Ok(match key {
            "path" => file.path.as_str().into(),
            "uid" => file.uid.into(),
            "gid" => file.gid.into(),
            _ => format!("0{:o}", file.mode & 0o7777).into(),
        })
    }
}

fn network_part(network: Option<&Network>, name: &str, key: &str) -> Result<Value, Refusal> {
    let network = network.ok_or_else(|| absent(name, "this call has no such network"))?;
    Ok(match key {
        "id" => json!(network.id),
        "subnet" => json!(network.subnet.to_string()),
        "prefix" => json!(network.subnet.prefix_len()),
        "gateway" => json!(network.gateway.to_string()),
        _ => json!(network.address.to_string()),
    })
}

fn absent(name: &str, why: &str) -> Refusal {
    Refusal::new(format!("{{{name}}}: {why}"))
}

/// The text of a value: that of a string without quotes.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn texts(list: &[String]) -> Vec<Value> {
    list.iter().map(|text| text.as_str().into()).collect()
}

fn end(installation: &str) -> String {
    let letters: Vec<_> = installation
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let start = letters.len().saturating_sub(INSTALLATION_END);
    letters.into_iter().skip(start).collect()
}

fn directories(files: &[File]) -> Vec<Value> {
    let parents: BTreeSet<_> = files
        .iter()
        .flat_map(|file| {
            file.path
                .match_indices('/')
                .map(|(at, _)| file.path.get(..at))
        })
        .flatten()
        .filter(|parent| !parent.is_empty())
        .collect();
    parents.into_iter().map(Value::from).collect()
}
