//! Requests after validation: a value of these types only comes out of a parse.

use super::capacity::{CpuTier, Size};
use super::error::FieldErrors;
use super::instance::ResourceType;
use super::name::Name;
use super::secret::Secrets;

/// What `POST /api/instance/` asks for.
#[derive(Debug, Clone)]
pub struct CreateRequest {
    /// Generated when absent.
    pub name: Option<Name>,
    /// VM or container.
    pub resource_type: ResourceType,
    /// Size.
    pub size: Size,
    /// Tier.
    pub cpu_tier: CpuTier,
    /// Flavor name; known and fitting, checked by [`CreateRequest::check_flavor`].
    pub flavor: String,
    /// GPU model; given means one GPU.
    pub gpu_model: Option<String>,
    /// One OpenSSH public key line.
    pub public_key: Option<String>,
    /// The S3 and AI secrets that were given.
    pub secrets: Secrets,
}

/// What `PATCH` asks for; absent means unchanged.
#[derive(Debug, Clone, Default)]
pub struct UpdateRequest {
    /// New name.
    pub name: Option<Name>,
    /// New vCPUs.
    pub n_vcpus: Option<u32>,
    /// New RAM, GiB.
    pub mem_gib: Option<u32>,
    /// New disk, GiB.
    pub disk_size_gib: Option<u32>,
}

impl UpdateRequest {
    /// The sizes it names, over the present one.
    pub fn size_over(&self, present: Size) -> Size {
        Size {
            n_vcpus: self.n_vcpus.unwrap_or(present.n_vcpus),
            mem_gib: self.mem_gib.unwrap_or(present.mem_gib),
            disk_size_gib: self.disk_size_gib.unwrap_or(present.disk_size_gib),
        }
    }
}

/// Field names of the `s3_*` group, with the secret each one is.
pub const S3_FIELDS: [(&str, super::secret::SecretKind); 4] = [
    ("s3_endpoint_url", super::secret::SecretKind::S3EndpointUrl),
    ("s3_access_key_id", super::secret::SecretKind::S3AccessKeyId),
    (
        "s3_secret_access_key",
        super::secret::SecretKind::S3SecretAccessKey,
    ),
    (
        "s3_prefill_bucket",
        super::secret::SecretKind::S3PrefillBucket,
    ),
];

impl CreateRequest {
    /// The rules that tie flavor, resource type, GPU and S3 fields together. `flavor` is what the
    /// providers say of the flavor asked for, `known` all names, `gpu_models` what the nodes have.
    pub fn check_flavor(
        &self,
        flavor: Option<&super::flavor::Flavor>,
        known: &[&str],
        gpu_models: &[&str],
        errors: &mut FieldErrors,
    ) {
        let given: Vec<&str> = S3_FIELDS
            .iter()
            .filter(|(_, kind)| self.secrets.get(*kind).is_some())
            .map(|(field, _)| *field)
            .collect();
        match flavor {
            None => errors.add("flavor", format!("must be one of: {}", known.join(", "))),
            Some(flavor) => {
                if !flavor.resource_types.contains(&self.resource_type) {
                    errors.add(
                        "flavor",
                        format!(
                            "{} is not available for resource_type {}",
                            flavor.name,
                            self.resource_type.as_str()
                        ),
                    );
                }
                if flavor.s3_prefill {
                    if !given.is_empty() {
                        for (field, _) in S3_FIELDS.iter().filter(|(f, _)| !given.contains(f)) {
                            errors.add(field, "required when any s3_* field is given");
                        }
                    }
                } else {
                    for field in given {
                        errors.add(
                            field,
                            format!("S3 prefill is not supported by flavor {}", flavor.name),
                        );
                    }
                }
                for (field, asked, least) in [
                    ("n_vcpus", self.size.n_vcpus, flavor.minimum.n_vcpus),
                    ("mem_gib", self.size.mem_gib, flavor.minimum.mem_gib),
                    (
                        "disk_size_gib",
                        self.size.disk_size_gib,
                        flavor.minimum.disk_size_gib,
                    ),
                ] {
                    if asked < least {
                        errors.add(
                            field,
                            format!("must be at least {least} for flavor {}", flavor.name),
                        );
                    }
                }
            }
        }
        if let Some(model) = &self.gpu_model {
            if self.resource_type == ResourceType::Vm {
                errors.add("gpu_model", "GPUs are available for containers only");
            } else if !gpu_models.contains(&model.as_str()) {
                let models = if gpu_models.is_empty() {
                    "no node has a GPU".to_owned()
                } else {
                    format!("must be one of: {}", gpu_models.join(", "))
                };
                errors.add("gpu_model", models);
            }
        }
    }
}
