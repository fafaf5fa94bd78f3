//! The names of values: the types of the values, and the calls that have them.

use super::argument::{Argument, Form};
use super::call::Calls;
use super::file::Document;
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

/// The list of published ports.
const PUBLISHED: &str = "published";
/// The list of the blueprint's variables.
const ENVIRONMENT: &str = "environment";
/// The list of the blueprint's files.
const FILES: &str = "files";
/// A network of the instance.
const NETWORK: &str = "network";

/// The word for a member of a list, within `each`.
pub fn word(list: &str) -> &'static str {
    match list {
        PUBLISHED => "published",
        ENVIRONMENT => "variable",
        FILES => "file",
        _ => "item",
    }
}

/// The type of a value of the host, and the calls that have it.
fn host(name: &str) -> Option<(Type, Calls)> {
    if let Some((NETWORK | "public", part)) = name.split_once('.') {
        return part_of(NETWORK, part).map(|found| (found, Calls::CHANGE));
    }
    Some(match name {
        "installation" | "installation.end" | "installation.end3" => (Type::Text, Calls::ALL),
        "mark" => (Type::Text, Calls::MARK),
        "instance" => (Type::Text, Calls::INSTANCE),
        "incarnation" => (Type::Number, Calls::INSTANCE),
        "kind" => (Type::Text, Calls::CHANGE),
        "size.vcpus" | "size.mem_gib" | "size.mem_bytes" | "size.disk_gib" | "size.disk_bytes" => {
            (Type::Number, Calls::CHANGE)
        }
        "ports" => (Type::List, Calls::CHANGE),
        "hostname" | "image" => (Type::Text, Calls::CREATE_OR_MOVE),
        "gpus" | "command" | PUBLISHED | ENVIRONMENT => (Type::List, Calls::CREATE_OR_MOVE),
        "images" => (Type::List, Calls::WITH_IMAGES),
        "directories" | FILES => (Type::List, Calls::CREATE),
        _ => return None,
    })
}

/// The type of a part of a member of a list, or of a network.
fn part_of(list: &str, part: &str) -> Option<Type> {
    Some(match (list, part) {
        (PUBLISHED, "node_port" | "instance_port") => Type::Number,
        (PUBLISHED, "address") => Type::Text,
        (ENVIRONMENT, "name" | "value") => Type::Text,
        (FILES, "uid" | "gid") => Type::Number,
        (FILES, "path" | "mode") => Type::Text,
        (NETWORK, "prefix") => Type::Number,
        (NETWORK, "id" | "subnet" | "hex" | "prefix_hex" | "gateway" | "address" | "mac") => {
            Type::Text
        }
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
        let (table, key) = name.split_once('.').unwrap_or((name, ""));
        if name == "n" {
            return around.last().map(|_| Type::Number);
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
                    Known::Nothing => Vec::new(),
                    Known::Of(arguments) => vec![arguments.get(argument)?.type_of(part)],
                    Known::All => self
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
    fn type_of_member(&self, list: &str, part: &str) -> Option<Type> {
        let setting = list.strip_prefix("settings.");
        let setting = setting.and_then(|setting| self.type_of_setting(setting));
        match (setting, part) {
            (Some(Type::Table), "") => Some(Type::Member),
            (Some(Type::Table), "name") => Some(Type::Text),
            (Some(Type::Table), "value") => Some(Type::Number),
            _ if list.starts_with("value.") => Some(Type::Any),
            (_, "") => Some(match list {
                "ports" => Type::Number,
                PUBLISHED | ENVIRONMENT | FILES => Type::Member,
                _ => Type::Text,
            }),
            _ => part_of(list, part),
        }
    }

    /// The type of a setting, or of a named group of its pattern.
    fn type_of_setting(&self, name: &str) -> Option<Type> {
        let (name, group) = name.split_once('.').unwrap_or((name, ""));
        let setting = self.settings.get(name)?;
        match setting.kind() {
            _ if !group.is_empty() => setting.has_group(group).then_some(Type::Text),
            SettingType::String | SettingType::Address => Some(Type::Text),
            SettingType::Integer => Some(Type::Number),
            SettingType::List | SettingType::Addresses => Some(Type::List),
            SettingType::Numbers => Some(Type::Table),
        }
    }

    fn type_of_learnt(&self, name: &str) -> Option<Type> {
        let mut requests = self.request.values();
        let learn = requests.find_map(|request| request.learn.get(name))?;
        Some(learn.value_type())
    }

    /// The calls that have a value. The parts of arguments and of named values have their own.
    pub fn calls_of(&self, name: &str) -> Calls {
        host(name).map_or(Calls::ALL, |(_, calls)| calls)
    }

    /// The type of a tree.
    pub fn type_of_node<'n>(&self, node: &'n Node, around: &mut Vec<&'n str>) -> Type {
        match node {
            Node::Constant(Value::Number(number)) if number.is_u64() => Type::Number,
            Node::Constant(Value::String(_)) => Type::Text,
            Node::Constant(Value::Bool(_)) => Type::Flag,
            Node::Constant(_) => Type::Any,
            Node::Template(template) => {
                let Some(alone) = template.alone() else {
                    return Type::Text;
                };
                let found = match &alone.of {
                    Expression::Name(name) => self.type_of(name, Known::All, around),
                    _ => Some(Type::Number),
                };
                match found.unwrap_or(Type::Any) {
                    list @ (Type::List | Type::Ids) => list,
                    _ if alone.text => Type::Text,
                    other => other,
                }
            }
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
        self.type_of_setting(publish::COMMON) == Some(Type::Text) || self.has_address_of_each()
    }

    /// Whether the settings can give each published port an address of its own.
    pub fn has_address_of_each(&self) -> bool {
        let types = publish::OF_EACH.map(|setting| self.type_of_setting(setting));
        types == [Some(Type::Text), Some(Type::Number)]
    }
}

impl Argument {
    fn type_of(&self, part: &str) -> Option<Type> {
        match (&self.form, part) {
            (Form::Of(_), "") => Some(Type::Member),
            (Form::Of(list), part) => part_of(list.list(), part),
            (Form::Max(_), "") => Some(Type::Number),
            (Form::Flag, "") => Some(Type::Flag),
            (Form::OneOf(_) | Form::Pattern(_), "") => Some(Type::Text),
            _ => None,
        }
    }
}

fn join(one: Type, other: Type) -> Type {
    if one == other { one } else { Type::Any }
}

impl Type {
    /// Refuses a use that no value of the type has.
    pub fn permits(self, of: Use<'_>) -> Result<(), String> {
        let (is_permitted, needed) = match of {
            Use::Number => (self == Self::Number, "calculations are with numbers"),
            Use::List => (
                matches!(self, Self::List | Self::Ids | Self::Table | Self::Any),
                "`each` takes a list",
            ),
            Use::Members => (
                matches!(self, Self::Table | Self::Any),
                "`with` takes a table",
            ),
            Use::Compared(_) => (
                !matches!(self, Self::Member | Self::Table | Self::List),
                "a text is not compared with that",
            ),
            Use::Text => (
                !matches!(self, Self::Member | Self::Table | Self::List),
                "a text consists of texts, numbers and flags",
            ),
            Use::AloneAsText => (
                !matches!(self, Self::Member | Self::Table),
                "only texts, numbers and flags become texts",
            ),
            Use::Alone => (self != Self::Member, "a body takes one of its parts"),
            Use::Tested => (true, ""),
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
