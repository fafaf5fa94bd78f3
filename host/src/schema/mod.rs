//! Request bodies against their JSON Schemas: every wrong field at once, in words a person can
//! act on. The schemas are generated from `schemas/openapi.yaml`.

mod body;
mod rule;

pub use body::Body;

use crate::domain::error::FieldErrors;
use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind as Kind;
use rule::Rule;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The schemas of all request bodies, compiled.
#[derive(Debug)]
pub struct Schemas {
    /// Of `POST /api/instance/`.
    pub create: Schema,
    /// Of `PATCH /api/instance/{uuid}/`.
    pub update: Schema,
    /// Of add-port and remove-port.
    pub port: Schema,
}

impl Schemas {
    /// Compiles them; done once, when the service starts.
    pub fn compile() -> Result<Self, SchemaError> {
        let create = json(include_str!(
            "../../../schemas/generated/create-request.json"
        ))?;
        let update = json(include_str!(
            "../../../schemas/generated/update-request.json"
        ))?;
        let port = json(include_str!("../../../schemas/generated/port-request.json"))?;
        let instance = json(include_str!("../../../schemas/generated/instance.json"))?;
        // Known from answers, or from creation: they exist, and cannot be set here.
        let mut known = property_names(&instance);
        for definition in instance
            .get("$defs")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            known.extend(property_names(definition.1));
        }
        known.extend(property_names(&create));
        Ok(Self {
            create: Schema::compile(&create, &known)?,
            update: Schema::compile(&update, &known)?,
            port: Schema::compile(&port, &known)?,
        })
    }
}

/// A schema that comes with the program does not compile.
#[derive(Debug, thiserror::Error)]
#[error("a request schema is broken: {0}")]
pub struct SchemaError(String);

/// The schema of one request body.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    rules: BTreeMap<String, Rule>,
    read_only: BTreeSet<String>,
}

impl Schema {
    fn compile(schema: &Value, known: &BTreeSet<String>) -> Result<Self, SchemaError> {
        let validator =
            jsonschema::draft202012::new(schema).map_err(|error| SchemaError(error.to_string()))?;
        let rules: BTreeMap<String, Rule> = schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, property)| (name.clone(), Rule::read(property, schema)))
            .collect();
        let read_only = known
            .iter()
            .filter(|name| !rules.contains_key(*name))
            .cloned()
            .collect();
        Ok(Self {
            validator,
            rules,
            read_only,
        })
    }

    /// Checks every field.
    pub fn check(&self, body: Body) -> Checked {
        let mut errors = FieldErrors::default();
        for field in body.repeated {
            errors.add(&field, "given more than once");
        }
        let value = Value::Object(body.fields);
        if !self.validator.is_valid(&value) {
            for error in self.validator.iter_errors(&value) {
                self.describe(&error, &mut errors);
            }
        }
        let Value::Object(fields) = value else {
            return Checked::default();
        };
        Checked { fields, errors }
    }

    fn describe(&self, error: &jsonschema::ValidationError<'_>, errors: &mut FieldErrors) {
        let mut add = |field: &str, message: String| {
            // One message says what is right; a second one on the field would only repeat it.
            if !errors.has(field) {
                errors.add(field, message);
            }
        };
        match error.kind() {
            Kind::AdditionalProperties { unexpected } => {
                for field in unexpected {
                    let read_only = self.read_only.contains(field);
                    add(
                        field,
                        if read_only {
                            "read-only"
                        } else {
                            "unknown field"
                        }
                        .to_owned(),
                    );
                }
            }
            Kind::Required { property } => {
                add(property.as_str().unwrap_or_default(), "required".to_owned());
            }
            kind => {
                let path = error.instance_path().to_string();
                let field = path.trim_start_matches('/');
                let message = self.rules.get(field).map(|rule| rule.message(kind));
                add(field, message.unwrap_or_else(|| "is not valid".to_owned()));
            }
        }
    }
}

/// A body after the check: right fields can be read, wrong ones are in `errors`.
#[derive(Debug, Default)]
pub struct Checked {
    fields: serde_json::Map<String, Value>,
    /// What is wrong so far.
    pub errors: FieldErrors,
}

impl Checked {
    /// Whether the field was given, right or wrong; `null` counts as not given.
    pub fn given(&self, field: &str) -> bool {
        self.fields.get(field).is_some_and(|value| !value.is_null())
    }

    /// A text that is right.
    pub fn text(&self, field: &str) -> Option<&str> {
        let value = self.fields.get(field).and_then(Value::as_str);
        value.filter(|_| !self.errors.has(field))
    }

    /// A whole number that is right.
    pub fn integer(&self, field: &str) -> Option<u32> {
        let value = self.fields.get(field).filter(|_| !self.errors.has(field))?;
        match value.as_u64() {
            Some(n) => u32::try_from(n).ok(),
            // 4.0 is an integer too, says JSON Schema.
            None => value
                .as_f64()
                .filter(|n| n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(n))
                .and_then(|n| format!("{n:.0}").parse().ok()),
        }
    }

    /// A text read by a parser of its own, whose message says more than the schema's.
    pub fn parse<T>(
        &mut self,
        field: &str,
        parser: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.fields.get(field).and_then(Value::as_str)?;
        match parser(text) {
            Ok(value) => (!self.errors.has(field)).then_some(value),
            Err(message) => {
                self.errors.0.insert(field.to_owned(), vec![message]);
                None
            }
        }
    }
}

fn json(text: &str) -> Result<Value, SchemaError> {
    serde_json::from_str(text).map_err(|error| SchemaError(error.to_string()))
}

fn property_names(schema: &Value) -> BTreeSet<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect()
}

#[cfg(test)]
mod tests;
