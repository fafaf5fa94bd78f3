//! Validation of request bodies against their JSON Schemas. It reports all invalid fields at once,
//! with messages for people. The schemas are those of the OpenAPI document.

mod body;
mod document;
mod nearest;
mod rule;

pub use body::Body;
pub use document::ApiDocument;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind as Kind;
use nearest::nearest;
use rule::Rule;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use wharf_domain::error::FieldErrors;

/// Unknown fields of one request that get a suggestion.
const MAX_SUGGESTIONS: usize = 16;

/// Declares a schema for each request body: its component in the document, and those whose fields exist, but
/// cannot be set by this request.
macro_rules! schemas {
    ($($(#[$doc:meta])* $field:ident: $body:literal $(beside $($known:literal)+)?,)*) => {
        /// The compiled schemas of all request bodies.
        #[derive(Debug)]
        pub struct Schemas {
            $($(#[$doc])* pub $field: RequestSchema,)*
        }

        impl Schemas {
            /// Compiles the schemas. The server calls this once at start.
            pub fn compile() -> Result<Self, SchemaError> {
                let document = ApiDocument::read()?;
                Ok(Self {
                    $($field: RequestSchema::compile(&document, $body, &[$($($known),+)?])?,)*
                })
            }
        }
    };
}

schemas! {
    /// `POST /api/instance/`.
    create: "CreateRequest" beside "Instance" "CreateRequest",
    /// `PATCH /api/instance/{uuid}/`.
    update: "UpdateRequest" beside "Instance" "CreateRequest",
    /// `add-port/` and `remove-port/`.
    port: "PortRequest" beside "Instance" "CreateRequest",
    /// `POST /api/key/`.
    key: "KeyRequest",
    /// `POST /api/ssh-key/`.
    ssh_key: "SshKeyRequest",
    /// `PATCH /api/preferences/`.
    preferences: "PreferencesRequest",
    /// `POST /api/webhook/`.
    webhook: "WebhookRequest",
    /// `POST /auth/invite/`.
    invite: "InviteRequest",
    /// `POST /auth/invite/accept/`.
    accept: "AcceptRequest",
    /// `POST /auth/invite/passkey/`.
    accept_passkey: "AcceptPasskeyRequest",
    /// `POST /auth/passkey/sign-in/`.
    passkey_sign_in: "PasskeySignInRequest",
    /// `POST /auth/passkey/`.
    passkey: "PasskeyRequest",
    /// `PATCH /auth/passkey/{id}/`.
    passkey_name: "PasskeyNameRequest",
    /// `POST /auth/sign-in/`.
    sign_in: "SignInRequest",
    /// `POST /auth/sign-out-everywhere/`.
    sign_out_everywhere: "SignOutEverywhereRequest",
    /// `POST /auth/password/`.
    password: "PasswordRequest",
    /// `POST /auth/device/`.
    device: "DeviceRequest",
    /// `POST /auth/device/token/`.
    device_token: "DeviceTokenRequest",
    /// `POST /auth/device/approve/`.
    device_approval: "DeviceApproval",
    /// `POST /auth/page/`.
    page_entry: "PageEntry",
    /// `POST /api/instance/{uuid}/share/`.
    share: "ShareRequest",
    /// `PATCH /api/instance/{uuid}/share/{id}/`.
    share_update: "ShareUpdate",
    /// `POST /api/volume/`.
    volume: "VolumeRequest" beside "Volume",
    /// `PATCH /api/volume/{id}/`.
    volume_update: "VolumeUpdate" beside "Volume",
    /// `POST /api/volume/{id}/share/`.
    volume_share: "VolumeShareRequest",
    /// `POST /api/instance/{uuid}/attach-volume/`.
    volume_mount: "VolumeMount",
    /// `POST /api/instance/{uuid}/detach-volume/`.
    volume_detachment: "VolumeDetachment",
    /// `POST /api/instance/{uuid}/snapshot/`.
    snapshot: "SnapshotRequest" beside "Snapshot",
    /// `PUT /api/instance/{uuid}/snapshot-plan/`.
    snapshot_plan: "SnapshotPlanRequest",
    /// `POST /api/snapshot/{id}/restore/`.
    restore: "RestoreRequest",
    /// `POST /api/snapshot/{id}/clone/`.
    clone: "CloneRequest" beside "Instance" "CreateRequest",
    /// `POST /api/bucket/`.
    bucket: "BucketRequest" beside "Bucket",
    /// `POST /api/instance/{uuid}/backup/`.
    backup: "BackupRequest" beside "Backup",
    /// `PUT /api/instance/{uuid}/backup-plan/`.
    backup_plan: "BackupPlanRequest",
    /// `POST /api/instance/{uuid}/recreate/`.
    recreate: "RecreateRequest",
    /// `POST /api/backup/{id}/restore/`.
    recovery: "RecoveryRequest" beside "Instance" "CreateRequest",
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
    fn compile(document: &ApiDocument, body: &str, known: &[&str]) -> Result<Self, SchemaError> {
        let schema = document.schema(body)?;
        let validator = jsonschema::draft202012::new(&schema)
            .map_err(|error| SchemaError(error.to_string()))?;
        let properties = schema.get("properties").and_then(Value::as_object);
        let rules: BTreeMap<String, Rule> = properties
            .into_iter()
            .flatten()
            .map(|(name, property)| (name.clone(), Rule::read(property, &schema)))
            .collect();
        let mut read_only = BTreeSet::new();
        for component in known {
            read_only.append(&mut document.fields(component)?);
        }
        read_only.retain(|name| !rules.contains_key(name));
        Ok(Self {
            validator,
            rules,
            read_only,
        })
    }

    /// Validates every field. The error is that of a body that cannot be read at all.
    pub fn check(&self, body: &[u8]) -> Result<CheckedBody, FieldErrors> {
        Body::parse(body).map(|body| self.check_fields(body))
    }

    fn check_fields(&self, body: Body) -> CheckedBody {
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

#[cfg(test)]
mod tests;
