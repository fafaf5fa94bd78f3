//! Validation across the fields of a create request. The rules run on the fields that are right by
//! themselves, so that one answer names all wrong fields.

use super::capacity::{CpuTier, Size};
use super::error::FieldErrors;
use super::flavor::Flavor;
use super::instance::ResourceType;
use super::name::Name;
use super::request::CreateRequest;
use super::secret::{InstanceSecrets, SecretKind, SecretText};
use super::volume::{MountRequest, check_paths};
use std::sync::Arc;

/// The flavor of a request that names none.
pub const DEFAULT_FLAVOR: &str = "base";

/// Names of the `s3_*` fields and the kinds of their secrets.
pub const S3_FIELDS: [(&str, SecretKind); 4] = [
    ("s3_endpoint_url", SecretKind::S3EndpointUrl),
    ("s3_access_key_id", SecretKind::S3AccessKeyId),
    ("s3_secret_access_key", SecretKind::S3SecretAccessKey),
    ("s3_prefill_bucket", SecretKind::S3PrefillBucket),
];

/// The flavors and GPU models of this installation.
#[derive(Debug, Clone, Copy)]
pub struct DraftChoices<'a> {
    /// All flavors.
    pub flavors: &'a [Arc<Flavor>],
    /// Models of all GPUs of all nodes.
    pub gpu_models: &'a [String],
}

/// One field of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field<T> {
    /// Absent from the request.
    Absent,
    /// Given and wrong; the draft's errors say why.
    Wrong,
    /// Given and right by itself.
    Right(T),
}

impl<T> Field<T> {
    fn given(&self) -> bool {
        !matches!(self, Self::Absent)
    }

    fn right(self) -> Option<T> {
        match self {
            Self::Right(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    fn as_right(&self) -> Option<&T> {
        match self {
            Self::Right(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }
}

/// A create request, field by field. A required field is `None` if it is missing or wrong.
#[derive(Debug)]
pub struct CreateDraft {
    /// `name`.
    pub name: Field<Name>,
    /// `resource_type`.
    pub resource_type: Option<ResourceType>,
    /// `n_vcpus`.
    pub n_vcpus: Option<u32>,
    /// `mem_gib`.
    pub mem_gib: Option<u32>,
    /// `disk_size_gib`.
    pub disk_size_gib: Option<u32>,
    /// `cpu_tier`.
    pub cpu_tier: Field<CpuTier>,
    /// `flavor`.
    pub flavor: Field<String>,
    /// `gpu_model`.
    pub gpu_model: Field<String>,
    /// `public_key`.
    pub public_key: Field<String>,
    /// In the order of [`S3_FIELDS`].
    pub s3: [Field<SecretText>; 4],
    /// `ai_provider_api_key`.
    pub ai_provider_api_key: Field<SecretText>,
    /// `volumes`.
    pub volumes: Field<Vec<MountRequest>>,
    /// Errors of single fields.
    pub errors: FieldErrors,
}

impl CreateDraft {
    /// Checks the rules across fields.
    pub fn finish(mut self, choices: DraftChoices<'_>) -> Result<CreateRequest, FieldErrors> {
        let flavor = self.check_flavor(choices.flavors);
        self.check_gpu(choices.gpu_models);
        self.check_volumes();
        self.errors.into_result()?;
        let secrets = S3_FIELDS
            .into_iter()
            .map(|(_, kind)| kind)
            .zip(self.s3)
            .chain([(SecretKind::AiProviderApiKey, self.ai_provider_api_key)])
            .filter_map(|(kind, field)| Some((kind, field.right()?)))
            .collect();
        let required = "required";
        Ok(CreateRequest {
            name: self.name.right(),
            resource_type: self
                .resource_type
                .ok_or_else(|| FieldErrors::one("resource_type", required))?,
            size: Size {
                n_vcpus: self
                    .n_vcpus
                    .ok_or_else(|| FieldErrors::one("n_vcpus", required))?,
                mem_gib: self
                    .mem_gib
                    .ok_or_else(|| FieldErrors::one("mem_gib", required))?,
                disk_size_gib: self
                    .disk_size_gib
                    .ok_or_else(|| FieldErrors::one("disk_size_gib", required))?,
            },
            cpu_tier: self.cpu_tier.right().unwrap_or(CpuTier::GeneralPurpose),
            flavor: flavor.ok_or_else(|| FieldErrors::one("flavor", required))?,
            gpu_model: self.gpu_model.right(),
            public_key: self.public_key.right(),
            secrets: InstanceSecrets(secrets),
            volumes: self.volumes.right().unwrap_or_default(),
            source: None,
            content: None,
        })
    }

    /// Finds the flavor and checks that it allows the other fields.
    fn check_flavor(&mut self, flavors: &[Arc<Flavor>]) -> Option<Arc<Flavor>> {
        let name = match &self.flavor {
            Field::Absent => DEFAULT_FLAVOR,
            Field::Wrong => return None,
            Field::Right(name) => name.as_str(),
        };
        let Some(flavor) = flavors.iter().find(|f| f.name == name) else {
            let known: Vec<&str> = flavors.iter().map(|f| f.name.as_str()).collect();
            let message = format!("must be one of: {}", known.join(", "));
            self.errors.add("flavor", message);
            return None;
        };
        let errors = &mut self.errors;
        if let Some(asked) = self.resource_type
            && !flavor.resource_types.contains(&asked)
        {
            let asked = asked.as_str();
            errors.add(
                "flavor",
                format!("{name} is not available for resource_type {asked}"),
            );
        }
        let some_s3 = self.s3.iter().any(Field::given);
        for ((field, _), value) in S3_FIELDS.iter().zip(&self.s3) {
            if value.given() && !flavor.s3_prefill {
                errors.add(
                    field,
                    format!("S3 prefill is not supported by flavor {name}"),
                );
            } else if some_s3 && !value.given() && flavor.s3_prefill {
                errors.add(field, "required when any s3_* field is given");
            }
        }
        let least = flavor.minimum;
        for (field, asked, least) in [
            ("n_vcpus", self.n_vcpus, least.n_vcpus),
            ("mem_gib", self.mem_gib, least.mem_gib),
            ("disk_size_gib", self.disk_size_gib, least.disk_size_gib),
        ] {
            if asked.is_some_and(|asked| asked < least) {
                errors.add(field, format!("must be at least {least} for flavor {name}"));
            }
        }
        Some(Arc::clone(flavor))
    }

    fn check_volumes(&mut self) {
        let Some(volumes) = self.volumes.as_right().filter(|all| !all.is_empty()) else {
            return;
        };
        if self.resource_type == Some(ResourceType::Vm) {
            let message = "volumes are available for containers only";
            self.errors.add("volumes", message);
        } else if let Err(message) = check_paths(volumes.iter().map(|mount| &mount.path)) {
            self.errors.add("volumes", message);
        }
    }

    fn check_gpu(&mut self, models: &[String]) {
        if self.gpu_model.given() && self.resource_type == Some(ResourceType::Vm) {
            self.errors
                .add("gpu_model", "GPUs are available for containers only");
        } else if self
            .gpu_model
            .as_right()
            .is_some_and(|model| !models.contains(model))
        {
            let message = if models.is_empty() {
                "no node has a GPU".to_owned()
            } else {
                format!("must be one of: {}", models.join(", "))
            };
            self.errors.add("gpu_model", message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CreateDraft, DraftChoices, Field};
    use crate::capacity::{CpuTier, Size};
    use crate::error::FieldErrors;
    use crate::flavor::{Flavor, WebAuth};
    use crate::instance::ResourceType::{Container, Vm};
    use crate::secret::{SecretKind, SecretText};
    use std::sync::Arc;

    fn flavor(name: &str, vm: bool, s3_prefill: bool) -> Arc<Flavor> {
        Arc::new(Flavor {
            name: name.to_owned(),
            description: String::new(),
            resource_types: if vm {
                vec![Vm, Container]
            } else {
                vec![Container]
            },
            ssh: true,
            web: false,
            web_auth: WebAuth::None,
            s3_prefill,
            ai: false,
            gpu_aware: false,
            minimum: Size {
                n_vcpus: 1,
                mem_gib: 2,
                disk_size_gib: 10,
            },
        })
    }

    fn draft() -> CreateDraft {
        CreateDraft {
            name: Field::Absent,
            resource_type: Some(Container),
            n_vcpus: Some(2),
            mem_gib: Some(4),
            disk_size_gib: Some(20),
            cpu_tier: Field::Absent,
            flavor: Field::Absent,
            gpu_model: Field::Absent,
            public_key: Field::Absent,
            s3: [Field::Absent, Field::Absent, Field::Absent, Field::Absent],
            ai_provider_api_key: Field::Absent,
            volumes: Field::Absent,
            errors: FieldErrors::default(),
        }
    }

    fn wrong(draft: CreateDraft) -> Vec<String> {
        let flavors = [flavor("base", true, false), flavor("marimo", false, true)];
        let gpu_models = ["H100".to_owned()];
        let choices = DraftChoices {
            flavors: &flavors,
            gpu_models: &gpu_models,
        };
        match draft.finish(choices) {
            Ok(_) => Vec::new(),
            Err(errors) => errors
                .0
                .into_iter()
                .map(|(f, m)| format!("{f}: {}", m.join("; ")))
                .collect(),
        }
    }

    #[test]
    fn defaults() {
        let flavors = [flavor("base", true, false)];
        let request = draft()
            .finish(DraftChoices {
                flavors: &flavors,
                gpu_models: &[],
            })
            .unwrap();
        assert_eq!(
            (request.flavor.name.as_str(), request.cpu_tier),
            ("base", CpuTier::GeneralPurpose)
        );
        assert!(
            request.name.is_none() && request.gpu_model.is_none() && request.secrets.0.is_empty()
        );
    }

    #[test]
    fn flavor_and_gpu() {
        let mut d = draft();
        d.resource_type = Some(Vm);
        d.flavor = Field::Right("marimo".to_owned());
        d.gpu_model = Field::Right("H100".to_owned());
        d.mem_gib = Some(1);
        assert_eq!(
            wrong(d),
            [
                "flavor: marimo is not available for resource_type vm",
                "gpu_model: GPUs are available for containers only",
                "mem_gib: must be at least 2 for flavor marimo",
            ]
        );
        let mut d = draft();
        d.flavor = Field::Right("windows".to_owned());
        d.gpu_model = Field::Right("A0".to_owned());
        assert_eq!(
            wrong(d),
            [
                "flavor: must be one of: base, marimo",
                "gpu_model: must be one of: H100"
            ]
        );
        let mut d = draft();
        d.gpu_model = Field::Right("H100".to_owned());
        assert!(wrong(d).is_empty());
    }

    #[test]
    fn s3_fields_come_together_and_where_supported() {
        let secret = || Field::Right(SecretText::new("x"));
        let mut d = draft();
        d.s3 = [secret(), Field::Absent, Field::Absent, secret()];
        assert_eq!(
            wrong(d),
            [
                "s3_endpoint_url: S3 prefill is not supported by flavor base",
                "s3_prefill_bucket: S3 prefill is not supported by flavor base",
            ]
        );
        let mut d = draft();
        d.flavor = Field::Right("marimo".to_owned());
        // A wrong field counts as given.
        d.s3 = [Field::Wrong, Field::Absent, secret(), secret()];
        assert_eq!(
            wrong(d),
            ["s3_access_key_id: required when any s3_* field is given"]
        );
        let mut d = draft();
        d.flavor = Field::Right("marimo".to_owned());
        d.s3 = [secret(), secret(), secret(), secret()];
        d.ai_provider_api_key = secret();
        let flavors = [flavor("marimo", false, true)];
        let request = d
            .finish(DraftChoices {
                flavors: &flavors,
                gpu_models: &[],
            })
            .unwrap();
        assert_eq!(request.secrets.0.len(), 5);
        assert!(request.secrets.get(SecretKind::AiProviderApiKey).is_some());
    }
}
