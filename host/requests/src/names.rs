//! The names of values: the types of the values, and the calls that have them.

use super::argument::{Argument, Form};
use super::body_node::{BodyNode, NameUse};
use super::call::Calls;
use super::file::Document;
use super::publish;
use super::setting::SettingType;
use super::template::Expression;
use serde_json::Value;
use std::collections::BTreeMap;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
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

/// The list of published ports.
const PUBLISHED: &str = "published";
/// The list of the blueprint's variables.
const ENVIRONMENT: &str = "environment";
/// The list of the blueprint's files.
const FILES: &str = "files";
/// The list of the instance's volumes.
const MOUNTS: &str = "mounts";
/// A network of the instance.
const NETWORK: &str = "network";

/// The word for a member of a list, within `each`.
pub fn word(list: &str) -> &'static str {
    match list {
        PUBLISHED => "published",
        ENVIRONMENT => "variable",
        FILES => "file",
        MOUNTS => "mount",
        _ => "item",
    }
}

/// The type of a value of the host, and the calls that have it.
fn host(name: &str) -> Option<(ValueType, Calls)> {
    if let Some((NETWORK | "public", part)) = name.split_once('.') {
        return part_of(NETWORK, part).map(|found| (found, Calls::CHANGE));
    }
    Some(match name {
        "installation" | "installation.end" | "installation.end3" => (ValueType::Text, Calls::ALL),
        "mark" => (ValueType::Text, Calls::MARK),
        "instance" => (ValueType::Text, Calls::INSTANCE),
        "incarnation" => (ValueType::Number, Calls::INSTANCE),
        "kind" => (ValueType::Text, Calls::CHANGE),
        "size.vcpus" | "size.mem_gib" | "size.mem_bytes" | "size.disk_gib" | "size.disk_bytes" => {
            (ValueType::Number, Calls::CHANGE)
        }
        "ports" | MOUNTS => (ValueType::List, Calls::CHANGE),
        "volume.id" => (ValueType::Text, Calls::WITH_VOLUME),
        "volume.size_gib" | "volume.size_bytes" => (ValueType::Number, Calls::MAKE),
        "snapshot.id" | "snapshot.instance" => (ValueType::Text, Calls::WITH_SNAPSHOT),
        "snapshot.incarnation" => (ValueType::Number, Calls::WITH_SNAPSHOT),
        "hostname" | "image" => (ValueType::Text, Calls::CREATE_OR_MOVE),
        "gpus" | "command" | PUBLISHED | ENVIRONMENT => (ValueType::List, Calls::CREATE_OR_MOVE),
        "images" => (ValueType::List, Calls::WITH_IMAGES),
        "directories" | FILES => (ValueType::List, Calls::CREATE),
        _ => return None,
    })
}

/// The type of a part of a member of a list, or of a network.
fn part_of(list: &str, part: &str) -> Option<ValueType> {
    Some(match (list, part) {
        (PUBLISHED, "node_port" | "instance_port") => ValueType::Number,
        (PUBLISHED, "address") => ValueType::Text,
        (ENVIRONMENT, "name" | "value") => ValueType::Text,
        (FILES, "uid" | "gid") => ValueType::Number,
        (FILES, "path" | "mode") => ValueType::Text,
        (MOUNTS, "volume" | "path") => ValueType::Text,
        (MOUNTS, "read_only") => ValueType::Flag,
        (NETWORK, "prefix") => ValueType::Number,
        (NETWORK, "id" | "subnet" | "hex" | "prefix_hex" | "gateway" | "address" | "mac") => {
            ValueType::Text
        }
        _ => return None,
    })
}

/// The arguments at a place of a file.
#[derive(Debug, Clone, Copy)]
pub enum KnownArguments<'a> {
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
    pub fn type_of(
        &self,
        name: &str,
        known: KnownArguments<'_>,
        around: &[&str],
    ) -> Option<ValueType> {
        let (table, key) = name.split_once('.').unwrap_or((name, ""));
        if name == "n" {
            return around.last().map(|_| ValueType::Number);
        }
        if let Some(list) = around.iter().rev().find(|list| word(list) == table) {
            return self.type_of_member(list, key);
        }
        match table {
            "settings" => self.type_of_setting(key),
            "value" => self.types.get(key).copied(),
            "learnt" => self.type_of_learnt(key),
            "argument" => {
                let (argument, part) = key.split_once('.').unwrap_or((key, ""));
                let types: Vec<_> = match known {
                    KnownArguments::Nothing => Vec::new(),
                    KnownArguments::Of(arguments) => vec![arguments.get(argument)?.type_of(part)],
                    KnownArguments::All => self
                        .arguments()
                        .filter_map(|arguments| arguments.get(argument))
                        .map(|argument| argument.type_of(part))
                        .collect(),
                };
                types.into_iter().flatten().reduce(join)
            }
            _ => host(name).map(|(found, _)| found),
        }
    }

    /// The type of a member of a list, or of its part.
    fn type_of_member(&self, list: &str, part: &str) -> Option<ValueType> {
        let setting = list.strip_prefix("settings.");
        let setting = setting.and_then(|setting| self.type_of_setting(setting));
        match (setting, part) {
            (Some(ValueType::Table), "") => Some(ValueType::Member),
            (Some(ValueType::Table), "name") => Some(ValueType::Text),
            (Some(ValueType::Table), "value") => Some(ValueType::Number),
            _ if list.starts_with("value.") => Some(ValueType::Any),
            (_, "") => Some(match list {
                "ports" => ValueType::Number,
                PUBLISHED | ENVIRONMENT | FILES | MOUNTS => ValueType::Member,
                _ => ValueType::Text,
            }),
            _ => part_of(list, part),
        }
    }

    /// The type of a setting, or of a named group of its pattern.
    fn type_of_setting(&self, name: &str) -> Option<ValueType> {
        let (name, group) = name.split_once('.').unwrap_or((name, ""));
        let setting = self.settings.get(name)?;
        match setting.kind() {
            _ if !group.is_empty() => setting.has_group(group).then_some(ValueType::Text),
            SettingType::String | SettingType::Address => Some(ValueType::Text),
            SettingType::Integer => Some(ValueType::Number),
            SettingType::List | SettingType::Addresses => Some(ValueType::List),
            SettingType::Numbers => Some(ValueType::Table),
        }
    }

    fn type_of_learnt(&self, name: &str) -> Option<ValueType> {
        let mut requests = self.request.values();
        let learn = requests.find_map(|request| request.learn.get(name))?;
        Some(learn.value_type())
    }

    /// The calls that have a value. The parts of arguments and of named values have their own.
    pub fn calls_of(&self, name: &str) -> Calls {
        host(name).map_or(Calls::ALL, |(_, calls)| calls)
    }

    /// The type of a tree.
    pub fn type_of_node<'n>(&self, node: &'n BodyNode, around: &mut Vec<&'n str>) -> ValueType {
        match node {
            BodyNode::Constant(Value::Number(number)) if number.is_u64() => ValueType::Number,
            BodyNode::Constant(Value::String(_)) => ValueType::Text,
            BodyNode::Constant(Value::Bool(_)) => ValueType::Flag,
            BodyNode::Constant(_) => ValueType::Any,
            BodyNode::Template(template) => {
                let Some(alone) = template.alone() else {
                    return ValueType::Text;
                };
                let found = match &alone.of {
                    Expression::Name(name) => self.type_of(name, KnownArguments::All, around),
                    _ => Some(ValueType::Number),
                };
                match found.unwrap_or(ValueType::Any) {
                    list @ (ValueType::List | ValueType::Ids) => list,
                    _ if alone.text => ValueType::Text,
                    other => other,
                }
            }
            BodyNode::List(_) => ValueType::List,
            BodyNode::Object(_) => ValueType::Table,
            BodyNode::Each(each) if each.key.is_some() => ValueType::Table,
            BodyNode::Each(_) => ValueType::List,
            BodyNode::Cases(cases) => {
                let values = cases.iter().filter_map(|case| case.is.as_ref());
                let types = values.map(|value| self.type_of_node(value, around));
                types.reduce(join).unwrap_or(ValueType::Any)
            }
        }
    }

    /// Whether the settings give addresses to published ports.
    pub fn has_addresses(&self) -> bool {
        self.type_of_setting(publish::COMMON) == Some(ValueType::Text) || self.has_address_of_each()
    }

    /// Whether the settings can give each published port an address of its own.
    pub fn has_address_of_each(&self) -> bool {
        let types = publish::OF_EACH.map(|setting| self.type_of_setting(setting));
        types == [Some(ValueType::Text), Some(ValueType::Number)]
    }
}

impl Argument {
    fn type_of(&self, part: &str) -> Option<ValueType> {
        match (&self.form, part) {
            (Form::Of(_), "") => Some(ValueType::Member),
            (Form::Of(list), part) => part_of(list.list(), part),
            (Form::Max(_), "") => Some(ValueType::Number),
            (Form::Flag, "") => Some(ValueType::Flag),
            (Form::OneOf(_) | Form::Pattern(_), "") => Some(ValueType::Text),
            _ => None,
        }
    }
}

fn join(one: ValueType, other: ValueType) -> ValueType {
    if one == other { one } else { ValueType::Any }
}

impl ValueType {
    /// Refuses a use that no value of the type has.
    pub fn permits(self, of: NameUse<'_>) -> Result<(), String> {
        let (is_permitted, needed) = match of {
            NameUse::Number => (self == Self::Number, "calculations are with numbers"),
            NameUse::List => (
                matches!(self, Self::List | Self::Ids | Self::Table | Self::Any),
                "`each` takes a list",
            ),
            NameUse::Members => (
                matches!(self, Self::Table | Self::Any),
                "`with` takes a table",
            ),
            NameUse::Compared(_) => (
                !matches!(self, Self::Member | Self::Table | Self::List),
                "a text is not compared with that",
            ),
            NameUse::Text => (
                !matches!(self, Self::Member | Self::Table | Self::List),
                "a text consists of texts, numbers and flags",
            ),
            NameUse::AloneAsText => (
                !matches!(self, Self::Member | Self::Table),
                "only texts, numbers and flags become texts",
            ),
            NameUse::Alone => (self != Self::Member, "a body takes one of its parts"),
            NameUse::Tested => (true, ""),
        };
        if is_permitted {
            Ok(())
        } else {
            Err(format!("is {}, and {needed}", self.described()))
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
            Self::Member => "a member with parts",
            Self::Any => "of different types in different cases",
        }
    }
}
