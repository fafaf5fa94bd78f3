//! Validation of request bodies against their JSON Schemas. It reports all invalid fields at once,
//! with messages for people. The schemas are generated from `schemas/openapi.yaml`.

mod body;
mod nearest;
mod rule;

pub use body::Body;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind as Kind;
use nearest::nearest;
use rule::Rule;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use wharf_domain::error::FieldErrors;

/// Unknown fields of one request that get a suggestion.
const MAX_SUGGESTIONS: usize = 16;

/// The compiled schemas of all request bodies.
#[derive(Debug)]
pub struct Schemas {
    /// Schema of `POST /api/instance/`.
    pub create: RequestSchema,
    /// Schema of `PATCH /api/instance/{uuid}/`.
    pub update: RequestSchema,
    /// Schema of `add-port/` and `remove-port/`.
    pub port: RequestSchema,
    /// Schema of `POST /api/key/`.
    pub key: RequestSchema,
    /// Schema of `POST /api/ssh-key/`.
    pub ssh_key: RequestSchema,
    /// Schema of `PATCH /api/preferences/`.
    pub preferences: RequestSchema,
    /// Schema of `POST /api/webhook/`.
    pub webhook: RequestSchema,
    /// Schema of `POST /auth/invite/`.
    pub invite: RequestSchema,
    /// Schema of `POST /auth/invite/accept/`.
    pub accept: RequestSchema,
    /// Schema of `POST /auth/invite/passkey/`.
    pub accept_passkey: RequestSchema,
    /// Schema of `POST /auth/passkey/sign-in/`.
    pub passkey_sign_in: RequestSchema,
    /// Schema of `POST /auth/passkey/`.
    pub passkey: RequestSchema,
    /// Schema of `PATCH /auth/passkey/{id}/`.
    pub passkey_name: RequestSchema,
    /// Schema of `POST /auth/sign-in/`.
    pub sign_in: RequestSchema,
    /// Schema of `POST /auth/sign-out-everywhere/`.
    pub sign_out_everywhere: RequestSchema,
    /// Schema of `POST /auth/password/`.
    pub password: RequestSchema,
    /// Schema of `POST /auth/device/`.
    pub device: RequestSchema,
    /// Schema of `POST /auth/device/token/`.
    pub device_token: RequestSchema,
    /// Schema of `POST /auth/device/approve/`.
    pub device_approval: RequestSchema,
    /// Schema of `POST /auth/page/`.
    pub page_entry: RequestSchema,
    /// Schema of `POST /api/instance/{uuid}/share/`.
    pub share: RequestSchema,
    /// Schema of `PATCH /api/instance/{uuid}/share/{id}/`.
    pub share_update: RequestSchema,
    /// Schema of `POST /api/volume/`.
    pub volume: RequestSchema,
    /// Schema of `PATCH /api/volume/{id}/`.
    pub volume_update: RequestSchema,
    /// Schema of `POST /api/volume/{id}/share/`.
    pub volume_share: RequestSchema,
    /// Schema of `POST /api/instance/{uuid}/attach-volume/`.
    pub volume_mount: RequestSchema,
    /// Schema of `POST /api/instance/{uuid}/detach-volume/`.
    pub volume_detachment: RequestSchema,
    /// Schema of `POST /api/instance/{uuid}/snapshot/`.
    pub snapshot: RequestSchema,
    /// Schema of `PUT /api/instance/{uuid}/snapshot-plan/`.
    pub snapshot_plan: RequestSchema,
    /// Schema of `POST /api/snapshot/{id}/restore/`.
    pub restore: RequestSchema,
    /// Schema of `POST /api/snapshot/{id}/clone/`.
    pub clone: RequestSchema,
}

impl Schemas {
    /// Compiles the schemas. The server calls this once at start.
    pub fn compile() -> Result<Self, SchemaError> {
        let create = json(include_str!(
            "../../../../schemas/generated/create-request.json"
        ))?;
        let update = json(include_str!(
            "../../../../schemas/generated/update-request.json"
        ))?;
        let port = json(include_str!(
            "../../../../schemas/generated/port-request.json"
        ))?;
        let key = json(include_str!(
            "../../../../schemas/generated/key-request.json"
        ))?;
        let ssh_key = json(include_str!(
            "../../../../schemas/generated/ssh-key-request.json"
        ))?;
        let preferences = json(include_str!(
            "../../../../schemas/generated/preferences-request.json"
        ))?;
        let webhook = json(include_str!(
            "../../../../schemas/generated/webhook-request.json"
        ))?;
        let instance = json(include_str!("../../../../schemas/generated/instance.json"))?;
        let invite = json(include_str!(
            "../../../../schemas/generated/invite-request.json"
        ))?;
        let accept = json(include_str!(
            "../../../../schemas/generated/accept-request.json"
        ))?;
        let accept_passkey = json(include_str!(
            "../../../../schemas/generated/accept-passkey-request.json"
        ))?;
        let passkey_sign_in = json(include_str!(
            "../../../../schemas/generated/passkey-sign-in-request.json"
        ))?;
        let passkey = json(include_str!(
            "../../../../schemas/generated/passkey-request.json"
        ))?;
        let passkey_name = json(include_str!(
            "../../../../schemas/generated/passkey-name-request.json"
        ))?;
        let sign_in = json(include_str!(
            "../../../../schemas/generated/sign-in-request.json"
        ))?;
        let sign_out_everywhere = json(include_str!(
            "../../../../schemas/generated/sign-out-everywhere-request.json"
        ))?;
        let password = json(include_str!(
            "../../../../schemas/generated/password-request.json"
        ))?;
        let device = json(include_str!(
            "../../../../schemas/generated/device-request.json"
        ))?;
        let device_token = json(include_str!(
            "../../../../schemas/generated/device-token-request.json"
        ))?;
        let device_approval = json(include_str!(
            "../../../../schemas/generated/device-approval.json"
        ))?;
        let page_entry = json(include_str!(
            "../../../../schemas/generated/page-entry.json"
        ))?;
        let share = json(include_str!(
            "../../../../schemas/generated/share-request.json"
        ))?;
        let share_update = json(include_str!(
            "../../../../schemas/generated/share-update.json"
        ))?;
        let volume = json(include_str!(
            "../../../../schemas/generated/volume-request.json"
        ))?;
        let volume_update = json(include_str!(
            "../../../../schemas/generated/volume-update.json"
        ))?;
        let volume_share = json(include_str!(
            "../../../../schemas/generated/volume-share-request.json"
        ))?;
        let volume_mount = json(include_str!(
            "../../../../schemas/generated/volume-mount.json"
        ))?;
        let volume_detachment = json(include_str!(
            "../../../../schemas/generated/volume-detachment.json"
        ))?;
        let of_volume = property_names(&json(include_str!(
            "../../../../schemas/generated/volume.json"
        ))?);
        let snapshot = json(include_str!(
            "../../../../schemas/generated/snapshot-request.json"
        ))?;
        let snapshot_plan = json(include_str!(
            "../../../../schemas/generated/snapshot-plan-request.json"
        ))?;
        let restore = json(include_str!(
            "../../../../schemas/generated/restore-request.json"
        ))?;
        let clone = json(include_str!(
            "../../../../schemas/generated/clone-request.json"
        ))?;
        let of_snapshot = property_names(&json(include_str!(
            "../../../../schemas/generated/snapshot.json"
        ))?);
        // Fields of responses or of creation exist, but not every request can set them.
        let mut known = property_names(&instance);
        let parts = instance.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            let pointer = part.get("$ref").and_then(Value::as_str);
            let part =
                pointer.and_then(|pointer| instance.pointer(pointer.trim_start_matches('#')));
            known.extend(part.map(property_names).unwrap_or_default());
        }
        known.extend(property_names(&create));
        Ok(Self {
            create: RequestSchema::compile(&create, &known)?,
            update: RequestSchema::compile(&update, &known)?,
            port: RequestSchema::compile(&port, &known)?,
            key: RequestSchema::compile(&key, &BTreeSet::new())?,
            ssh_key: RequestSchema::compile(&ssh_key, &BTreeSet::new())?,
            preferences: RequestSchema::compile(&preferences, &BTreeSet::new())?,
            webhook: RequestSchema::compile(&webhook, &BTreeSet::new())?,
            invite: RequestSchema::compile(&invite, &BTreeSet::new())?,
            accept: RequestSchema::compile(&accept, &BTreeSet::new())?,
            accept_passkey: RequestSchema::compile(&accept_passkey, &BTreeSet::new())?,
            passkey_sign_in: RequestSchema::compile(&passkey_sign_in, &BTreeSet::new())?,
            passkey: RequestSchema::compile(&passkey, &BTreeSet::new())?,
            passkey_name: RequestSchema::compile(&passkey_name, &BTreeSet::new())?,
            sign_in: RequestSchema::compile(&sign_in, &BTreeSet::new())?,
            sign_out_everywhere: RequestSchema::compile(&sign_out_everywhere, &BTreeSet::new())?,
            password: RequestSchema::compile(&password, &BTreeSet::new())?,
            device: RequestSchema::compile(&device, &BTreeSet::new())?,
            device_token: RequestSchema::compile(&device_token, &BTreeSet::new())?,
            device_approval: RequestSchema::compile(&device_approval, &BTreeSet::new())?,
            page_entry: RequestSchema::compile(&page_entry, &BTreeSet::new())?,
            share: RequestSchema::compile(&share, &BTreeSet::new())?,
            share_update: RequestSchema::compile(&share_update, &BTreeSet::new())?,
            volume: RequestSchema::compile(&volume, &of_volume)?,
            volume_update: RequestSchema::compile(&volume_update, &of_volume)?,
            volume_share: RequestSchema::compile(&volume_share, &BTreeSet::new())?,
            volume_mount: RequestSchema::compile(&volume_mount, &BTreeSet::new())?,
            volume_detachment: RequestSchema::compile(&volume_detachment, &BTreeSet::new())?,
            snapshot: RequestSchema::compile(&snapshot, &of_snapshot)?,
            snapshot_plan: RequestSchema::compile(&snapshot_plan, &BTreeSet::new())?,
            restore: RequestSchema::compile(&restore, &BTreeSet::new())?,
            clone: RequestSchema::compile(&clone, &known)?,
        })
    }
}

/// An embedded schema does not compile.
#[derive(Debug, thiserror::Error)]
#[error("a request schema is invalid: {0}")]
pub struct SchemaError(String);

/// The schema of one request body.
#[derive(Debug)]
pub struct RequestSchema {
    validator: Validator,
    rules: BTreeMap<String, Rule>,
    read_only: BTreeSet<String>,
}

impl RequestSchema {
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

    /// Validates every field.
    pub fn check(&self, body: Body) -> CheckedBody {
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
            return CheckedBody::default();
        };
        CheckedBody { fields, errors }
    }

    fn describe(&self, error: &jsonschema::ValidationError<'_>, errors: &mut FieldErrors) {
        let mut add = |field: &str, message: String| {
            // The first message states the rule; a second message on the field would repeat it.
            if !errors.has(field) {
                errors.add(field, message);
            }
        };
        let path = error.instance_path().to_string();
        let mut parts = path.trim_start_matches('/').split('/');
        let field = parts.next().unwrap_or_default();
        match error.kind() {
            // An item of an array is reported on the array.
            kind if !field.is_empty() => {
                let rule = self.rules.get(field);
                let message = match parts.next() {
                    Some(_) => rule.map(|rule| rule.message_for_items(kind)),
                    None => rule.map(|rule| rule.message(kind)),
                };
                add(field, message.unwrap_or_else(|| "is not valid".to_owned()));
            }
            Kind::AdditionalProperties { unexpected } => {
                for (n, field) in unexpected.iter().enumerate() {
                    // A client decides the number of fields.
                    let likely = (n < MAX_SUGGESTIONS).then(|| nearest(field, self.rules.keys()));
                    let message = match likely.flatten() {
                        _ if self.read_only.contains(field) => "read-only".to_owned(),
                        Some(likely) => format!("unknown field; did you mean `{likely}`?"),
                        None => "unknown field".to_owned(),
                    };
                    add(field, message);
                }
            }
            Kind::Required { property } => {
                add(property.as_str().unwrap_or_default(), "required".to_owned());
            }
            _ => add("", "is not valid".to_owned()),
        }
    }
}

/// A validated body. Valid fields can be read; invalid fields are in `errors`.
#[derive(Debug, Default)]
pub struct CheckedBody {
    fields: serde_json::Map<String, Value>,
    /// Errors so far.
    pub errors: FieldErrors,
}

impl CheckedBody {
    /// Returns whether the field is present, valid or not. `null` counts as absent.
    pub fn given(&self, field: &str) -> bool {
        self.fields.get(field).is_some_and(|value| !value.is_null())
    }

    /// Returns whether the field is `null`.
    pub fn is_null(&self, field: &str) -> bool {
        self.fields.get(field).is_some_and(Value::is_null)
    }

    /// Returns a valid string field.
    pub fn text(&self, field: &str) -> Option<&str> {
        let value = self.fields.get(field).and_then(Value::as_str);
        value.filter(|_| !self.errors.has(field))
    }

    /// Returns a valid field of any kind.
    pub fn value(&self, field: &str) -> Option<&Value> {
        let value = self.fields.get(field);
        value.filter(|value| !value.is_null() && !self.errors.has(field))
    }

    /// Returns whether a boolean field is true.
    pub fn is_true(&self, field: &str) -> bool {
        self.fields.get(field) == Some(&Value::Bool(true))
    }

    /// Returns a valid array of strings.
    pub fn texts(&self, field: &str) -> Option<Vec<&str>> {
        let values = self.fields.get(field).and_then(Value::as_array);
        let values = values.filter(|_| !self.errors.has(field))?;
        Some(values.iter().filter_map(Value::as_str).collect())
    }

    /// Returns a valid integer field.
    pub fn integer(&self, field: &str) -> Option<u32> {
        let value = self.fields.get(field).filter(|_| !self.errors.has(field))?;
        match value.as_u64() {
            Some(n) => u32::try_from(n).ok(),
            // JSON Schema counts 4.0 as an integer.
            None => value
                .as_f64()
                .filter(|n| n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(n))
                .and_then(|n| format!("{n:.0}").parse().ok()),
        }
    }

    /// Parses a string field. The parser's message replaces the schema's, which is less precise.
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
