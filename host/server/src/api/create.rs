//! `POST /api/instance/`.

use super::{Api, EndpointReply, EndpointResult, Sight, public_key, s3_url, wire};
use crate::schema::{CheckedBody, Schemas};
use serde_json::Value;
use wharf_domain::capacity::CpuTier;
use wharf_domain::draft::{CreateDraft, DraftChoices, Field, S3_FIELDS};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::instance::{Instance, ResourceType};
use wharf_domain::name::Name;
use wharf_domain::request::CreateRequest;
use wharf_domain::secret::SecretText;
use wharf_domain::volume::{MountPath, MountRequest};
use wharf_ground::caller::Caller;
use wharf_instances::IdempotencyKey;
use wharf_instances::idempotency::IdempotentRow;

/// Creates an instance. A retry with the idempotency key of an earlier request gets its answer.
pub async fn run(api: &Api, caller: &Caller, body: &[u8], key: Option<&str>) -> EndpointResult {
    let key = key.map(|key| IdempotencyKey::new(key, body));
    instance(api, caller, key, || request(api, body)).await
}

/// Creates the requested instance, unless an earlier request with the key created one.
pub(super) async fn instance(
    api: &Api,
    caller: &Caller,
    key: Option<IdempotencyKey>,
    request: impl FnOnce() -> Result<CreateRequest, Error>,
) -> EndpointResult {
    let created = async { api.app.create(caller, request()?, key).await };
    let view = once::<Instance>(api, caller, key, created).await?;
    let sight = Sight::of(caller.scopes);
    Ok(EndpointReply::Created(wire::instance(&view, sight)?, sight))
}

/// Creates a row, unless an earlier request with the key created one.
pub(super) async fn once<T: IdempotentRow>(
    api: &Api,
    caller: &Caller,
    key: Option<IdempotencyKey>,
    create: impl Future<Output = Result<T::View, Error>>,
) -> Result<T::View, Error> {
    let Some(key) = key else {
        return create.await;
    };
    let _held = api.app.hold_key(caller, &key)?;
    match api.app.created_earlier::<T>(caller, &key)? {
        Some(earlier) => Ok(earlier),
        None => create.await,
    }
}

/// Reads a valid request, or names all wrong fields.
pub(super) fn request(api: &Api, body: &[u8]) -> Result<CreateRequest, Error> {
    finish(api, read(&api.schemas, body)?)
}

/// Checks the rules across fields.
pub(super) fn finish(api: &Api, mut draft: CreateDraft) -> Result<CreateRequest, Error> {
    if let Field::Right(name) = &draft.name
        && api.app.name_taken(name)?
    {
        draft.errors.add("name", "is already taken");
    }
    let gpu_models = api.app.gpu_models();
    Ok(draft.finish(DraftChoices {
        flavors: api.app.flavors(),
        gpu_models: &gpu_models,
    })?)
}

/// Reads the fields that are right; the others are named in the draft's errors.
pub fn read(schemas: &Schemas, body: &[u8]) -> Result<CreateDraft, FieldErrors> {
    Ok(draft(schemas.create.check(body)?))
}

pub(super) fn draft(mut checked: CheckedBody) -> CreateDraft {
    let name = checked.parse("name", |text| Name::parse(text).map_err(str::to_owned));
    let public_key = checked.parse("public_key", public_key::parse);
    // Only the URL is parsed further; its text goes on as it is.
    checked.parse(S3_FIELDS[0].0, s3_url::check);
    let volumes = volumes(&mut checked);
    let volumes = field(&checked, "volumes", volumes);
    let c = &checked;
    let secret = |name| field(c, name, c.text(name).map(SecretText::new));
    CreateDraft {
        name: field(c, "name", name),
        resource_type: c.text("resource_type").and_then(|text| {
            let mut all = ResourceType::ALL.into_iter();
            all.find(|r| r.as_str() == text)
        }),
        n_vcpus: c.integer("n_vcpus"),
        mem_gib: c.integer("mem_gib"),
        disk_size_gib: c.integer("disk_size_gib"),
        cpu_tier: field(
            c,
            "cpu_tier",
            c.text("cpu_tier").and_then(|text| {
                let mut all = CpuTier::ALL.into_iter();
                all.find(|tier| tier.as_str() == text)
            }),
        ),
        flavor: field(c, "flavor", c.text("flavor").map(str::to_owned)),
        gpu_model: field(c, "gpu_model", c.text("gpu_model").map(str::to_owned)),
        public_key: field(c, "public_key", public_key),
        s3: S3_FIELDS.map(|(name, _)| secret(name)),
        ai_provider_api_key: secret("ai_provider_api_key"),
        volumes,
        errors: checked.errors,
    }
}

/// Reads the volumes to attach. The schema has checked their form.
fn volumes(checked: &mut CheckedBody) -> Option<Vec<MountRequest>> {
    let given = checked.value("volumes")?.as_array()?.clone();
    let mut mounts = Vec::with_capacity(given.len());
    for item in &given {
        let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        match MountPath::parse(text("path")) {
            Ok(path) => mounts.push(MountRequest {
                volume: text("volume").to_owned(),
                path,
                read_only: item.get("read_only").and_then(Value::as_bool),
            }),
            Err(message) => {
                let message = format!("{} {message}", text("path"));
                checked.errors.add("volumes", message);
            }
        }
    }
    (!checked.errors.has("volumes")).then_some(mounts)
}

fn field<T>(checked: &CheckedBody, name: &str, right: Option<T>) -> Field<T> {
    match right {
        Some(value) => Field::Right(value),
        None if checked.given(name) => Field::Wrong,
        None => Field::Absent,
    }
}

#[cfg(test)]
mod tests {
    use crate::schema::Schemas;
    use serde_json::{Value, json};
    use wharf_domain::draft::Field;

    fn read(body: &Value) -> wharf_domain::draft::CreateDraft {
        let schemas = Schemas::compile().unwrap();
        super::read(&schemas, body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn right_fields_are_read() {
        let d = read(&json!({
            "resource_type": "container", "n_vcpus": 2.0, "mem_gib": 4, "disk_size_gib": 20,
            "name": "box-1", "cpu_tier": "high-performance", "flavor": null,
            "s3_endpoint_url": "https://s3.example.org", "ai_provider_api_key": "k",
        }));
        assert!(d.errors.0.is_empty(), "{:?}", d.errors);
        assert_eq!((d.n_vcpus, d.flavor), (Some(2), Field::Absent));
        assert!(matches!(d.name, Field::Right(name) if name.as_str() == "box-1"));
        assert!(matches!(&d.s3[0], Field::Right(url) if url.expose() == "https://s3.example.org"));
        assert_eq!(d.s3[1], Field::Absent);
    }

    #[test]
    fn parsers_of_their_own_say_what_is_wrong() {
        let d = read(&json!({
            "resource_type": "container", "n_vcpus": 2, "mem_gib": 4, "disk_size_gib": 20,
            "name": "-x", "public_key": "hello", "s3_endpoint_url": "ftp://x", "cpu_tier": 3,
        }));
        assert_eq!(d.errors.0["name"], ["must not start or end with a hyphen"]);
        assert!(d.errors.0["public_key"][0].starts_with("must be one OpenSSH public key line"));
        assert!(d.errors.0["s3_endpoint_url"][0].starts_with("must be an http or https URL"));
        assert_eq!(
            (d.name, d.public_key, d.cpu_tier),
            (Field::Wrong, Field::Wrong, Field::Wrong)
        );
        assert_eq!(d.s3[0], Field::Wrong);
    }
}
