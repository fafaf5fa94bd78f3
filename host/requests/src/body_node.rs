//! The tree of a body or a named value, as the file writes it.

use super::condition::Condition;
use super::template::{Expression, Template};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use toml::Table;

/// The deepest tree of a file.
pub const MAX_DEPTH: usize = 32;

/// A part of a body.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub enum BodyNode {
    /// A constant.
    Constant(Value),
    /// Text with placeholders.
    Template(Template),
    /// A list. Lists in it are spliced.
    List(Vec<BodyNode>),
    /// The first case that holds.
    Cases(Vec<Case>),
    /// An object.
    Object(Object),
    /// A part for each member of a list.
    Each(Box<Each>),
}

/// A part with a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// None: it always holds.
    pub when: Option<Condition>,
    /// None: there is no value.
    pub is: Option<BodyNode>,
}

/// An object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Object {
    /// Named values whose members it has too.
    pub with: Vec<String>,
    /// Its own members.
    pub members: Vec<Member>,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its key.
    pub key: Template,
    /// Whether it is left out if it has no value or is empty.
    pub optional: bool,
    /// Its value.
    pub value: BodyNode,
}

/// A part for each member of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Each {
    /// The list's name.
    pub list: String,
    /// The part.
    pub item: BodyNode,
    /// Its key, if the parts make an object.
    pub key: Option<Template>,
}

impl TryFrom<toml::Value> for BodyNode {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        Self::parse(&value, 0)
    }
}

impl BodyNode {
    fn parse(value: &toml::Value, depth: usize) -> Result<Self, String> {
        if depth > MAX_DEPTH {
            return Err(format!("is deeper than {MAX_DEPTH}"));
        }
        Ok(match value {
            toml::Value::String(text) => {
                let template = Template::parse(text)?;
                if template.is_constant() {
                    Self::Constant(text.as_str().into())
                } else {
                    Self::Template(template)
                }
            }
            toml::Value::Integer(number) => Self::Constant((*number).into()),
            toml::Value::Boolean(flag) => Self::Constant((*flag).into()),
            toml::Value::Float(_) | toml::Value::Datetime(_) => {
                return Err(format!("{value} is neither a text, an integer nor a flag"));
            }
            toml::Value::Array(items) => Self::list(items, depth)?,
            toml::Value::Table(table) if is_case(value) => {
                Self::Cases(vec![Case::parse(table, depth)?])
            }
            toml::Value::Table(table) if table.contains_key("each") => {
                Self::Each(Box::new(Each::parse(table, depth)?))
            }
            toml::Value::Table(table) => Self::Object(Object::parse(table, depth)?),
        })
    }

    fn list(items: &[toml::Value], depth: usize) -> Result<Self, String> {
        let cases = items.iter().filter(|item| is_case(item)).count();
        if cases == 0 {
            let items = items.iter().enumerate().map(|(at, item)| {
                Self::parse(item, depth + 1).map_err(|why| place(&format!("[{at}]"), &why))
            });
            return items.collect::<Result<_, _>>().map(Self::List);
        }
        if cases < items.len() {
            return Err("a list has either cases or items".to_owned());
        }
        let cases: Vec<_> = items
            .iter()
            .filter_map(toml::Value::as_table)
            .map(|table| Case::parse(table, depth))
            .collect::<Result<_, _>>()?;
        let always = cases.iter().position(|case| case.when.is_none());
        if always.is_some_and(|at| at + 1 < cases.len()) {
            return Err("a case without `when` is the last one".to_owned());
        }
        Ok(Self::Cases(cases))
    }

    /// Whether it has this value in each call.
    pub fn is_constant(&self) -> bool {
        match self {
            Self::Constant(_) => true,
            Self::List(items) => items.iter().all(Self::is_constant),
            Self::Object(object) => {
                let is_constant = |member: &Member| {
                    member.key.is_constant() && !member.optional && member.value.is_constant()
                };
                object.with.is_empty() && object.members.iter().all(is_constant)
            }
            Self::Template(_) | Self::Cases(_) | Self::Each(_) => false,
        }
    }
}

impl Case {
    fn parse(table: &Table, depth: usize) -> Result<Self, String> {
        let when = table.get("when").map(Condition::parse).transpose();
        let is = table.get("is").map(|is| BodyNode::parse(is, depth + 1));
        Ok(Self {
            when: when.map_err(|why| place("when", &why))?,
            is: is.transpose()?,
        })
    }
}

impl Object {
    fn parse(table: &Table, depth: usize) -> Result<Self, String> {
        let mut object = Self::default();
        for (key, value) in table {
            if key == "with" {
                object.with = names(value).ok_or("with: must be a list of names")?;
                continue;
            }
            let at = |why: String| place(key, &why);
            let (plain, optional) = match key.strip_suffix('?') {
                Some(plain) => (plain, true),
                None => (key.as_str(), false),
            };
            let value = BodyNode::parse(value, depth + 1).map_err(at)?;
            if optional && value.is_constant() {
                return Err(at(
                    "a constant is never left out, so its key has no `?`".to_owned()
                ));
            }
            object.members.push(Member {
                key: Template::parse(plain).map_err(at)?,
                optional,
                value,
            });
        }
        Ok(object)
    }
}

impl Each {
    fn parse(table: &Table, depth: usize) -> Result<Self, String> {
        if let Some(other) = table
            .keys()
            .find(|key| !["each", "item", "key"].contains(&key.as_str()))
        {
            return Err(format!(
                "{other:?}: beside `each` stand only `item` and `key`"
            ));
        }
        let text = |key: &str| {
            table.get(key).map(|value| {
                value
                    .as_str()
                    .ok_or_else(|| format!("{key}: must be a text"))
            })
        };
        let item = table.get("item").ok_or("`each` needs an `item`")?;
        Ok(Self {
            list: text("each").transpose()?.unwrap_or_default().to_owned(),
            item: BodyNode::parse(item, depth + 1).map_err(|why| place("item", &why))?,
            key: text("key").transpose()?.map(Template::parse).transpose()?,
        })
    }
}

fn names(value: &toml::Value) -> Option<Vec<String>> {
    let names = value.as_array()?.iter();
    names.map(|name| name.as_str().map(str::to_owned)).collect()
}

fn is_case(value: &toml::Value) -> bool {
    let Some(table) = value.as_table() else {
        return false;
    };
    !table.is_empty() && table.keys().all(|key| key == "when" || key == "is")
}

/// An error within a member.
pub fn place(key: &str, why: &str) -> String {
    if why.starts_with('[') {
        format!("{key}{why}")
    } else {
        format!("{key}: {why}")
    }
}

/// The place of a name in a tree, which decides on the permitted types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameUse<'a> {
    /// The whole of a value.
    Alone,
    /// The whole of a value, as text.
    AloneAsText,
    /// Within a text.
    Text,
    /// In a calculation.
    Number,
    /// In a condition.
    Tested,
    /// In a condition with this text.
    Compared(&'a str),
    /// After `each`.
    List,
    /// After `with`.
    Members,
}

/// Sees a name, its use, and the lists of the `each` around it, the innermost last.
pub type NameVisitor<'s> = dyn FnMut(&str, NameUse<'_>, &[&str]) -> Result<(), String> + 's;

impl BodyNode {
    /// Calls `see` with each name of the tree. An error names the place.
    pub fn walk<'n>(
        &'n self,
        around: &mut Vec<&'n str>,
        see: &mut NameVisitor<'_>,
    ) -> Result<(), String> {
        match self {
            Self::Constant(_) => Ok(()),
            Self::Template(template) => template.walk(around, see),
            Self::List(items) => items.iter().enumerate().try_for_each(|(at, item)| {
                item.walk(around, see)
                    .map_err(|why| place(&format!("[{at}]"), &why))
            }),
            Self::Cases(cases) => cases.iter().try_for_each(|case| {
                if let Some(when) = &case.when {
                    when.walk(around, see)?;
                }
                case.is.as_ref().map_or(Ok(()), |is| is.walk(around, see))
            }),
            Self::Object(object) => {
                for name in &object.with {
                    see(name, NameUse::Members, around).map_err(|why| place("with", &why))?;
                }
                object.members.iter().try_for_each(|member| {
                    let key = member.key.walk_text(around, see);
                    key.and_then(|()| member.value.walk(around, see))
                        .map_err(|why| place(member.key.as_str(), &why))
                })
            }
            Self::Each(each) => {
                see(&each.list, NameUse::List, around).map_err(|why| place("each", &why))?;
                around.push(&each.list);
                let key = each.key.as_ref();
                let key = key.map_or(Ok(()), |key| key.walk_text(around, see));
                let item = key.and_then(|()| each.item.walk(around, see));
                around.pop();
                item
            }
        }
    }
}

impl Template {
    /// Calls `see` with each name. A placeholder alone keeps its type.
    pub fn walk(&self, around: &[&str], see: &mut NameVisitor<'_>) -> Result<(), String> {
        let Some(alone) = self.alone() else {
            return self.walk_text(around, see);
        };
        match (&alone.of, alone.text) {
            (Expression::Name(name), false) => see(name, NameUse::Alone, around),
            (Expression::Name(name), true) => see(name, NameUse::AloneAsText, around),
            _ => return self.walk_text(around, see),
        }
        .map_err(|why| place(self.as_str(), &why))
    }

    /// Calls `see` with each name of a template that becomes text.
    pub fn walk_text(&self, around: &[&str], see: &mut NameVisitor<'_>) -> Result<(), String> {
        self.placeholders()
            .try_for_each(|placeholder| match &placeholder.of {
                Expression::Name(name) => see(name, NameUse::Text, around),
                calculation => calculation.names(&mut |name| see(name, NameUse::Number, around)),
            })
            .map_err(|why| place(self.as_str(), &why))
    }
}

impl Condition {
    /// Calls `see` with each name.
    pub fn walk(&self, around: &[&str], see: &mut NameVisitor<'_>) -> Result<(), String> {
        self.0.iter().try_for_each(|test| {
            let of = match &test.wanted {
                super::condition::Expected::Text(text) => NameUse::Compared(text),
                _ => NameUse::Tested,
            };
            see(&test.name, of, around).map_err(|why| place("when", &why))
        })
    }
}

/// The names that a walk sees.
fn seen(walk: impl FnOnce(&mut NameVisitor<'_>) -> Result<(), String>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // The walk itself finds no error.
    let _ = walk(&mut |name, _, _| {
        names.insert(name.to_owned());
        Ok(())
    });
    names
}

impl Template {
    /// The names of its values.
    pub fn names(&self) -> BTreeSet<String> {
        seen(|see| self.walk(&[], see))
    }
}

impl BodyNode {
    /// The names of its values.
    pub fn names(&self) -> BTreeSet<String> {
        seen(|see| self.walk(&mut Vec::new(), see))
    }
}
