//! Writes values, trees and texts of a file for one call, within bounds.

use super::argument;
use super::body_node::{BodyNode, Each, MAX_DEPTH, Object};
use super::condition::{Condition, Expected};
use super::fault::Fault;
use super::names::word;
use super::path::is_plain;
use super::template::{ArithmeticOperator, Expression, Part, Placeholder, Template};
use super::values::CallValues;
use serde_json::{Map, Value, json};

/// The most values of one request.
const MAX_VALUES: usize = 20_000;
/// The most bytes of all its texts, which may become parts of each other.
const MAX_BYTES: usize = 4 << 20;

/// Writes parts of a file for one call.
#[derive(Debug)]
pub struct Writer<'a> {
    values: CallValues<'a>,
    pub arguments: argument::ArgumentValues<'a>,
    each: Vec<Bound>,
    depth: usize,
    written: usize,
    bytes: usize,
}

/// A member of a list, within `each`.
#[derive(Debug)]
struct Bound {
    word: &'static str,
    number: usize,
    member: Value,
}

impl<'a> Writer<'a> {
    /// Creates a writer without arguments.
    pub fn new(values: CallValues<'a>) -> Self {
        Self {
            values,
            arguments: argument::ArgumentValues::new(),
            each: Vec::new(),
            depth: 0,
            written: 0,
            bytes: 0,
        }
    }

    /// The host's values.
    pub fn values(&self) -> CallValues<'a> {
        self.values
    }

    /// Writes a tree.
    pub fn node(&mut self, node: &'a BodyNode) -> Result<Value, Fault> {
        if self.depth > MAX_DEPTH {
            return Err(Fault::refused(format!("is deeper than {MAX_DEPTH}")));
        }
        self.count(0)?;
        self.depth += 1;
        let written = self.node_here(node);
        self.depth -= 1;
        written
    }

    fn node_here(&mut self, node: &'a BodyNode) -> Result<Value, Fault> {
        match node {
            BodyNode::Constant(value) => {
                self.count_all(value)?;
                Ok(value.clone())
            }
            BodyNode::Template(template) => self.template(template),
            BodyNode::List(items) => {
                let mut list = Vec::new();
                for (at, item) in items.iter().enumerate() {
                    let at = |fault: Fault| fault.required().at(&format!("[{at}]"));
                    splice(&mut list, self.node(item).map_err(at)?);
                }
                Ok(list.into())
            }
            BodyNode::Cases(cases) => {
                for case in cases {
                    if let Some(when) = &case.when
                        && !self.holds(when)?
                    {
                        continue;
                    }
                    return match &case.is {
                        Some(is) => self.node(is),
                        None => Err(Fault::absent("the case that holds has no value")),
                    };
                }
                Err(Fault::absent("no case holds"))
            }
            BodyNode::Object(object) => self.object(object),
            BodyNode::Each(each) => self.each(each),
        }
    }

    fn object(&mut self, object: &'a Object) -> Result<Value, Fault> {
        let mut members = Map::new();
        let twice = |key: &str| Fault::refused(format!("the key {key:?} twice"));
        for name in &object.with {
            match self.name(name).map_err(Fault::required)? {
                Value::Object(others) => {
                    for (key, value) in others {
                        if members.insert(key.clone(), value).is_some() {
                            return Err(twice(&key));
                        }
                    }
                }
                _ => return Err(Fault::refused("is no table").of(name)),
            }
        }
        for member in &object.members {
            let key = self.text(&member.key);
            let pair = key.and_then(|key| match self.node(&member.value) {
                Ok(value) => Ok((key, value)),
                Err(fault) => Err(fault.at(&key)),
            });
            let (key, value) = match pair {
                Err(fault) if fault.is_absent() && member.optional => continue,
                other => other.map_err(Fault::required)?,
            };
            if member.optional && is_empty(&value) {
                continue;
            }
            if members.contains_key(&key) {
                return Err(twice(&key));
            }
            members.insert(key, value);
        }
        Ok(members.into())
    }

    fn each(&mut self, each: &'a Each) -> Result<Value, Fault> {
        let (mut list, mut members) = (Vec::new(), Map::new());
        let word = word(&each.list);
        for (number, member) in self.members(&each.list)?.into_iter().enumerate() {
            self.each.push(Bound {
                word,
                number,
                member,
            });
            let key = each.key.as_ref().map(|key| self.text(key)).transpose();
            let item = self.node(&each.item);
            self.each.pop();
            let at = |fault: Fault| fault.required().at(&format!("[{number}]"));
            let (key, item) = (key.map_err(at)?, item.map_err(at)?);
            let Some(key) = key else {
                splice(&mut list, item);
                continue;
            };
            match (members.get_mut(&key), item) {
                (None, item) => {
                    members.insert(key, item);
                }
                (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
                (Some(one), other) if *one == other => {}
                _ => return Err(Fault::refused(format!("the key {key:?} twice"))),
            }
        }
        Ok(match each.key {
            Some(_) => members.into(),
            None => list.into(),
        })
    }

    /// The members of a list. Those of a table have a name and a value.
    pub fn members(&mut self, list: &str) -> Result<Vec<Value>, Fault> {
        match self.name(list)? {
            Value::Array(items) => Ok(items),
            Value::Object(members) => {
                let pair = |(name, value)| json!({ "name": name, "value": value });
                Ok(members.into_iter().map(pair).collect())
            }
            _ => Err(Fault::refused("is no list").of(list)),
        }
    }

    /// Whether a condition holds.
    pub fn holds(&mut self, condition: &'a Condition) -> Result<bool, Fault> {
        for test in &condition.0 {
            let value = match self.name(&test.name) {
                Ok(value) => Some(value),
                Err(fault) if fault.is_absent() => None,
                Err(fault) => return Err(fault),
            };
            let is_something = value
                .as_ref()
                .is_some_and(|value| !is_empty(value) && *value != Value::Bool(false));
            let holds = match &test.wanted {
                Expected::Something => is_something,
                Expected::Nothing => !is_something,
                Expected::Text(wanted) => value
                    .and_then(|value| scalar(&value))
                    .is_some_and(|text| text == *wanted),
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes a template. A placeholder alone keeps the type of its value.
    fn template(&mut self, template: &'a Template) -> Result<Value, Fault> {
        match template.alone() {
            Some(alone) => self.placeholder(alone),
            None => self.text(template).map(Value::from),
        }
    }

    /// Writes a template as one text.
    pub fn text(&mut self, template: &'a Template) -> Result<String, Fault> {
        self.text_with(template, |_| true)
    }

    /// Writes a template as one text. The parts in place of placeholders must be permitted.
    fn text_with(
        &mut self,
        template: &'a Template,
        is_permitted: impl Fn(&str) -> bool,
    ) -> Result<String, Fault> {
        let mut text = String::new();
        for part in template.parts() {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Placeholder(placeholder) => {
                    let value = self.placeholder(placeholder)?;
                    let refused =
                        |why: &str| Err(Fault::refused(format!("{template}: a value {why}")));
                    let Some(value) = scalar(&value).or_else(|| only_id(placeholder, &value))
                    else {
                        return refused("is a list or a table");
                    };
                    if !is_permitted(&value) {
                        return refused("has characters that may not stand here");
                    }
                    text.push_str(&value);
                }
            }
        }
        self.count(text.len())?;
        Ok(text)
    }

    /// Writes a path. A value adds nothing but plain characters and parts of the path.
    pub fn path(&mut self, template: &'a Template) -> Result<String, Fault> {
        self.text_with(template, |value| {
            value.bytes().all(|b| b == b'/' || is_plain(b))
        })
        .map_err(Fault::required)
    }

    /// The texts of a template: several, if it is a list alone.
    pub fn texts(&mut self, template: &'a Template) -> Result<Vec<String>, Fault> {
        if let Some(alone) = template.alone()
            && let Value::Array(items) = self.placeholder(alone)?
        {
            return Ok(items.iter().filter_map(scalar).collect());
        }
        self.text(template).map(|text| vec![text])
    }

    fn placeholder(&mut self, placeholder: &'a Placeholder) -> Result<Value, Fault> {
        let value = match &placeholder.of {
            Expression::Name(name) => self.name(name)?,
            calculation => self.number(calculation)?.into(),
        };
        Ok(match (placeholder.text, value) {
            (true, Value::Array(items)) => items
                .iter()
                .map(|item| scalar(item).map_or_else(|| item.clone(), Value::from))
                .collect(),
            (true, value) => scalar(&value).map_or(value, Value::from),
            (false, value) => value,
        })
    }

    fn number(&mut self, expression: &'a Expression) -> Result<u64, Fault> {
        let overflow = || Fault::refused("a calculation exceeds 64 bits");
        self.count(0)?;
        match expression {
            Expression::Number(number) => Ok(*number),
            Expression::Name(name) => {
                let value = self.name(name)?;
                value
                    .as_u64()
                    .ok_or_else(|| Fault::refused("is no number").of(name))
            }
            Expression::Sum(parts) => parts.iter().try_fold(0u64, |sum, part| {
                sum.checked_add(self.number(part)?).ok_or_else(overflow)
            }),
            Expression::Product(parts) => {
                parts.iter().try_fold(1u64, |product, (operator, part)| {
                    let part = self.number(part)?;
                    match operator {
                        ArithmeticOperator::Multiply => {
                            product.checked_mul(part).ok_or_else(overflow)
                        }
                        ArithmeticOperator::Divide => product
                            .checked_div(part)
                            .ok_or_else(|| Fault::refused("a division by zero")),
                    }
                })
            }
        }
    }

    /// The value of a name.
    fn name(&mut self, name: &str) -> Result<Value, Fault> {
        self.count(0)?;
        let value = self.name_here(name).map_err(|fault| fault.of(name))?;
        if !name.starts_with("value.") {
            self.count_all(&value)?;
        }
        Ok(value)
    }

    fn name_here(&mut self, name: &str) -> Result<Value, Fault> {
        let (table, key) = name.split_once('.').unwrap_or((name, ""));
        let bound = match name {
            "n" => self.each.last(),
            _ => self.each.iter().rev().find(|bound| bound.word == table),
        };
        match (bound, key) {
            (Some(bound), _) if name == "n" => return Ok(bound.number.into()),
            (Some(bound), "") => return Ok(bound.member.clone()),
            (Some(bound), key) => return self.values.part(&bound.member, key),
            (None, _) => {}
        }
        match table {
            "argument" => {
                let (argument, key) = key.split_once('.').unwrap_or((key, ""));
                let missing = || Fault::absent("the argument is not given");
                let member = self.arguments.get(argument).ok_or_else(missing)?;
                match key {
                    "" => Ok(member.clone()),
                    key => self.values.part(member, key),
                }
            }
            "value" => {
                let missing = || Fault::absent("there is no such value");
                let node = self.values.document.values.get(key).ok_or_else(missing)?;
                // A value has no members of an `each` around its use.
                let around = std::mem::take(&mut self.each);
                let value = self.node(node);
                self.each = around;
                value
            }
            _ => self.values.get(name),
        }
    }

    /// Counts a copied value with all of its members.
    fn count_all(&mut self, value: &Value) -> Result<(), Fault> {
        self.count(value.as_str().map_or(0, str::len))?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.count_all(item)),
            Value::Object(members) => members.values().try_for_each(|item| self.count_all(item)),
            _ => Ok(()),
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), Fault> {
        self.written += 1;
        self.bytes += bytes;
        if self.written > MAX_VALUES || self.bytes > MAX_BYTES {
            Err(Fault::refused("has too many values"))
        } else {
            Ok(())
        }
    }
}

/// Adds a part to a list, or the members of a part that is a list.
fn splice(list: &mut Vec<Value>, part: Value) {
    match part {
        Value::Array(items) => list.extend(items),
        item => list.push(item),
    }
}

/// A single learnt id stands for itself in a text.
fn only_id(placeholder: &Placeholder, value: &Value) -> Option<String> {
    let is_learnt =
        matches!(&placeholder.of, Expression::Name(name) if name.starts_with("learnt."));
    match value.as_array().map(Vec::as_slice) {
        Some([id]) if is_learnt => scalar(id),
        _ => None,
    }
}

/// The text of a value that is neither a list nor an object.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}
