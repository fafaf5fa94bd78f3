//! Error messages for fields, derived from their schemas.

use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

/// The rule of one field.
#[derive(Debug)]
pub struct Rule {
    kind: &'static str,
    range: Option<(Value, Value)>,
    length: (Option<u64>, Option<u64>),
    choices: Option<String>,
    form: Option<String>,
}

impl Rule {
    /// Reads the schema of a property. `root` is the document that `$ref` refers to.
    pub fn read(property: &Value, root: &Value) -> Self {
        let schema = property
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|r| root.pointer(r.trim_start_matches('#')))
            .unwrap_or(property);
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
            Some(kind) => kind.as_str(),
            None => None,
        };
        let choices = schema.get("enum").and_then(Value::as_array).map(|all| {
            let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
            all.join(", ")
        });
        Self {
            kind: match kind {
                Some("integer") => "an integer",
                Some("number") => "a number",
                Some("string") => "a string",
                Some("boolean") => "true or false",
                Some("array") => "an array",
                _ => "an object",
            },
            range: schema
                .get("minimum")
                .cloned()
                .zip(schema.get("maximum").cloned()),
            length: (
                schema.get("minLength").and_then(Value::as_u64),
                schema.get("maxLength").and_then(Value::as_u64),
            ),
            choices,
            form: schema
                .get("x-error-message")
                .and_then(Value::as_str)
                .map(str::to_owned),
        }
    }

    /// Returns the message for a failed check within an item of the field.
    pub fn message_for_items(&self, kind: &Kind) -> String {
        self.form.clone().unwrap_or_else(|| self.message(kind))
    }

    /// Returns the message for a failed check of a kind.
    pub fn message(&self, kind: &Kind) -> String {
        match (kind, &self.choices, &self.range, &self.form, self.length) {
            (Kind::Enum { .. } | Kind::Type { .. }, Some(choices), ..) => {
                format!("must be one of: {choices}")
            }
            (Kind::Type { .. }, ..) => format!("must be {}", self.kind),
            (Kind::Minimum { .. } | Kind::Maximum { .. }, _, Some((least, most)), ..) => {
                format!("must be between {least} and {most}")
            }
            (Kind::MinLength { limit: 1 }, ..) => "must not be empty".to_owned(),
            (
                Kind::MinLength { .. } | Kind::MaxLength { .. },
                _,
                _,
                _,
                (Some(least), Some(most)),
            ) if least > 1 => format!("must be {least} to {most} characters long"),
            (Kind::MaxLength { limit }, ..) => format!("must be at most {limit} characters long"),
            (_, _, _, Some(form), _) => form.clone(),
            _ => "is not valid".to_owned(),
        }
    }
}
