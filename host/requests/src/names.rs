//! The names of values: the types of the values, and the calls that have them.

use super::argument::{Argument, Form};
use super::call::CallSet;
use super::file::Document;
use super::learn;
use super::node::{Node, Use};
use super::publish;
use super::setting::SettingType;
use super::template::Expression;
use serde_json::Value;
use std::collections::BTreeMap;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Number,
    Text,
    Flag,
    /// Learnt ids: a list, or a text if there is one.
    Ids,
    List,
    /// A JSON object.
    Table,
    /// A member of a list of the host, which has parts.
    Member,
    /// Different types in different cases.
    Any,
}

/// A value of the host: its name, its meaning, its type, and the calls that have it.
pub type HostValue = (&'static str, &'static str, Type, CallSet);

/// The values of the host, without those of networks.
pub const HOST: &[HostValue] = &[
    (
        "installation",
        "this installation's id",
        Type::Text,
        CallSet::ALL,
    ),
    (
        "installation.end",
        "the last 8 letters and digits of this installation's id",
        Type::Text,
        CallSet::ALL,
    ),
    (
        "installation.end3",
        "the last 3 of them",
        Type::Text,
        CallSet::ALL,
    ),
    (
        "mark",
        "the mark of the engine's store",
        Type::Text,
        CallSet::MARK,
    ),
    (
        "instance",
        "the instance of the call",
        Type::Text,
        CallSet::INSTANCE,
    ),
    (
        "incarnation",
        "the number of this creation of the instance",
        Type::Number,
        CallSet::INSTANCE,
    ),
    ("kind", "`container` or `vm`", Type::Text, CallSet::CHANGE),
    (
        "hostname",
        "the instance's host name",
        Type::Text,
        CallSet::CREATE_OR_MOVE,
    ),
    (
        "image",
        "the blueprint's image for this kind of engine",
        Type::Text,
        CallSet::CREATE_OR_MOVE,
    ),
    ("size.vcpus", "its vCPUs", Type::Number, CallSet::CHANGE),
    (
        "size.mem_gib",
        "its RAM in GiB",
        Type::Number,
        CallSet::CHANGE,
    ),
    (
        "size.mem_mib",
        "its RAM in MiB",
        Type::Number,
        CallSet::CHANGE,
    ),
    (
        "size.mem_bytes",
        "its RAM in bytes",
        Type::Number,
        CallSet::CHANGE,
    ),
    (
        "size.disk_gib",
        "its disk in GiB",
        Type::Number,
        CallSet::CHANGE,
    ),
    (
        "size.disk_bytes",
        "its disk in bytes",
        Type::Number,
        CallSet::CHANGE,
    ),
    (
        "images",
        "the blueprints' images for this kind of engine",
        Type::List,
        CallSet::WITH_IMAGES,
    ),
    (
        "gpus",
        "the instance's GPUs",
        Type::List,
        CallSet::CREATE_OR_MOVE,
    ),
    ("ports", "its open ports", Type::List, CallSet::CHANGE),
    (
        "command",
        "the blueprint's command, word by word",
        Type::List,
        CallSet::CREATE_OR_MOVE,
    ),
    (
        "directories",
        "the parent directories of the blueprint's files",
        Type::List,
        CallSet::CREATE,
    ),
    (
        PUBLISHED,
        "its published ports",
        Type::List,
        CallSet::CREATE_OR_MOVE,
    ),
    (
        ENVIRONMENT,
        "the blueprint's variables",
        Type::List,
        CallSet::CREATE_OR_MOVE,
    ),
    (FILES, "the blueprint's files", Type::List, CallSet::CREATE),
    (NETWORKS, "its networks", Type::List, CallSet::CHANGE),
];

/// The list of published ports.
pub const PUBLISHED: &str = "published";
/// The list of variables.
pub const ENVIRONMENT: &str = "environment";
/// The list of files.
pub const FILES: &str = "files";
/// The list of networks.
pub const NETWORKS: &str = "networks";

/// A part of a member: its name, its meaning and its type.
pub type PartOf = (&'static str, &'static str, Type);

/// The parts of `network`, the owner's network; of `public`, that of the public address; and of each of
/// `networks`.
pub const NETWORK: &[PartOf] = &[
    ("id", "the network", Type::Text),
    ("subnet", "its range", Type::Text),
    ("prefix", "the length of the range's prefix", Type::Number),
    (
        "hex",
        "the range's first address, 8 hexadecimal digits",
        Type::Text,
    ),
    (
        "prefix_hex",
        "the length of its prefix, 2 hexadecimal digits",
        Type::Text,
    ),
    ("gateway", "the node's address on the network", Type::Text),
    (
        "address",
        "the instance's address on the network",
        Type::Text,
    ),
    ("mac", "the hardware address of that address", Type::Text),
    (
        "public",
        "that it is the network of public addresses",
        Type::Flag,
    ),
];

/// The parts of each of `published`.
pub const PORT: &[PartOf] = &[
    ("node_port", "a port of the node", Type::Number),
    (
        "instance_port",
        "the port of the instance behind it",
        Type::Number,
    ),
    (
        "address",
        "the address in `publish_cidr` whose number is the node's port less `publish_from`",
        Type::Text,
    ),
];

/// The parts of each of `environment`.
pub const VARIABLE: &[PartOf] = &[
    ("name", "the variable's name", Type::Text),
    ("value", "its value", Type::Text),
];

/// The parts of each of `files`.
pub const FILE: &[PartOf] = &[
    ("path", "the file's path", Type::Text),
    ("uid", "its owner", Type::Number),
    ("gid", "its group", Type::Number),
    ("mode", "its mode, octal with a leading 0", Type::Text),
];

/// The word for a member of a list, within `each`.
pub fn word(list: &str) -> &'static str {
    match list {
        PUBLISHED => "published",
        ENVIRONMENT => "variable",
        FILES => "file",
        _ => "item",
    }
}

/// The parts of a member of a list, if it has parts.
fn parts(list: &str) -> Option<&'static [PartOf]> {
    Some(match list {
        PUBLISHED => PORT,
        ENVIRONMENT => VARIABLE,
        FILES => FILE,
        NETWORKS => NETWORK,
        _ => return None,
    })
}

/// The arguments at a place of a file.
#[derive(Debug, Clone, Copy)]
pub enum Known<'a> {
    /// None.
    Nothing,
    /// Those of one request.
    Of(&'a BTreeMap<String, Argument>),
    /// Those of all requests.
    All,
}

impl Document {
    /// The type of a name within the lists of these `each`, the innermost last. None: there is no such
    /// name.
    pub fn type_of(&self, name: &str, known: Known<'_>, around: &[&str]) -> Option<Type> {
        let part = |of: &[PartOf], key: &str| {
            let found = of.iter().find(|(name, ..)| *name == key);
            found.map(|(_, _, found)| *found)
        };
        let (table, key) = name.split_once('.').unwrap_or((name, ""));
        if name == "n" {
            return around.last().map(|_| Type::Number);
        }
        if let Some(list) = around.iter().rev().find(|list| word(list) == table) {
            let parts = parts(list);
            return match key {
                "" => Some(match parts {
                    Some(_) => Type::Member,
                    None => self.type_of_item(list),
                }),
                _ if list.starts_with("settings.") => match (self.setting(list)?, key) {
                    (Type::Table, "name") => Some(Type::Text),
                    (Type::Table, "value") => Some(Type::Number),
                    _ => None,
                },
                _ if list.starts_with("value.") => Some(Type::Any),
                _ => part(parts?, key),
            };
        }
        match table {
            "network" | "public" if key != "public" => part(NETWORK, key),
            "settings" => self.setting(name),
            "value" => self.types.get(key).copied(),
            "learnt" => self.learnt(key).map(|form| match form {
                learn::Form::Ids => Type::Ids,
                learn::Form::Number => Type::Number,
                learn::Form::Fact => Type::Flag,
            }),
            "argument" => {
                let (argument, key) = key.split_once('.').unwrap_or((key, ""));
                let all: Vec<_> = match known {
                    Known::Nothing => Vec::new(),
                    Known::Of(arguments) => arguments.get(argument).into_iter().collect(),
                    Known::All => self
                        .arguments()
                        .filter_map(|arguments| arguments.get(argument))
                        .collect(),
                };
                let types = all
                    .iter()
                    .filter_map(|argument| match (&argument.form, key) {
                        (Form::Of(list), "") => parts(list.list()).map(|_| Type::Member),
                        (Form::Of(list), key) => part(parts(list.list())?, key),
                        (Form::Max(_), "") => Some(Type::Number),
                        (Form::Flag, "") => Some(Type::Flag),
                        (Form::OneOf(_) | Form::Pattern(_), "") => Some(Type::Text),
                        _ => None,
                    });
                types.reduce(join)
            }
            _ => HOST
                .iter()
                .find(|(host, ..)| *host == name)
                .map(|(_, _, found, _)| *found),
        }
    }

    /// The type of a setting, or of a named group of its pattern.
    fn setting(&self, name: &str) -> Option<Type> {
        let name = name.strip_prefix("settings.")?;
        let (name, group) = name.split_once('.').unwrap_or((name, ""));
        let setting = self.settings.get(name)?;
        Some(match setting.kind() {
            _ if !group.is_empty() => setting.has_group(group).then_some(Type::Text)?,
            SettingType::String | SettingType::Address => Type::Text,
            SettingType::Integer => Type::Number,
            SettingType::List | SettingType::Addresses => Type::List,
            SettingType::Numbers => Type::Table,
        })
    }

    fn type_of_item(&self, list: &str) -> Type {
        match list {
            "ports" => Type::Number,
            _ if list.starts_with("value.") => Type::Any,
            _ if self.setting(list) == Some(Type::Table) => Type::Member,
            _ => Type::Text,
        }
    }

    fn learnt(&self, name: &str) -> Option<learn::Form> {
        let mut requests = self.request.values();
        requests.find_map(|request| Some(request.learn.get(name)?.form()))
    }

    /// The calls that have a value, without those of arguments and named values, which have their own.
    pub fn calls_of(&self, name: &str) -> CallSet {
        let table = name.split('.').next();
        let host = HOST.iter().find(|(host, ..)| *host == name);
        match (table, host) {
            (Some("network" | "public"), _) => CallSet::CHANGE,
            (_, Some((.., calls))) => *calls,
            _ => CallSet::ALL,
        }
    }

    /// The type of a tree.
    pub fn type_of_node<'n>(&self, node: &'n Node, around: &mut Vec<&'n str>) -> Type {
        match node {
            Node::Constant(Value::Number(number)) if number.is_u64() => Type::Number,
            Node::Constant(Value::String(_)) => Type::Text,
            Node::Constant(Value::Bool(_)) => Type::Flag,
            Node::Constant(_) => Type::Any,
            Node::Template(template) => match template.alone() {
                Some(alone) => match (&alone.of, alone.text) {
                    (Expression::Name(name), text) => {
                        let found = self.type_of(name, Known::All, around);
                        match found.unwrap_or(Type::Any) {
                            list @ (Type::List | Type::Ids) => list,
                            _ if text => Type::Text,
                            other => other,
                        }
                    }
                    (_, true) => Type::Text,
                    (_, false) => Type::Number,
                },
                None => Type::Text,
            },
            Node::List(_) => Type::List,
            Node::Object(_) => Type::Table,
            Node::Each(each) if each.key.is_some() => Type::Table,
            Node::Each(_) => Type::List,
            Node::Cases(cases) => {
                let values = cases.iter().filter_map(|case| case.is.as_ref());
                let types = values.map(|value| self.type_of_node(value, around));
                types.reduce(join).unwrap_or(Type::Any)
            }
        }
    }

    /// Whether the settings give addresses to published ports.
    pub fn has_addresses(&self) -> bool {
        let [range, first] = publish::SETTINGS;
        let is = |name: &str, kind| {
            self.settings
                .get(name)
                .is_some_and(|setting| setting.kind() == kind)
        };
        is(range, SettingType::String) && is(first, SettingType::Integer)
    }
}

fn join(one: Type, other: Type) -> Type {
    match one == other {
        true => one,
        false => Type::Any,
    }
}

impl Type {
    /// Refuses a use that no value of the type has.
    pub fn permits(self, of: Use) -> Result<(), String> {
        let is_permitted = match of {
            Use::Alone => self != Self::Member,
            Use::AloneAsText => !matches!(self, Self::Member | Self::Table),
            Use::Text | Use::Compared => !matches!(self, Self::Member | Self::Table | Self::List),
            Use::Number => self == Self::Number,
            Use::Tested => true,
            Use::List => matches!(self, Self::List | Self::Ids | Self::Table | Self::Any),
            Use::Members => matches!(self, Self::Table | Self::Any),
        };
        match is_permitted {
            true => Ok(()),
            false => Err(format!("is {}, and {}", self.described(), of.needed())),
        }
    }

    fn described(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Text => "a text",
            Self::Flag => "a flag",
            Self::Ids => "learnt ids",
            Self::List => "a list",
            Self::Table => "a table",
            Self::Member => "a member with parts, such as `.id`",
            Self::Any => "of different types in different cases",
        }
    }
}

impl Use {
    fn needed(self) -> &'static str {
        match self {
            Self::Number => "calculations are with numbers",
            Self::List => "`each` takes a list",
            Self::Members => "`with` takes a table",
            Self::Compared => "a text is not compared with that",
            Self::Alone | Self::AloneAsText | Self::Text | Self::Tested => {
                "a text consists of texts, numbers and flags"
            }
        }
    }
}
