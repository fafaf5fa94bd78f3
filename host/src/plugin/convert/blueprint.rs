//! Conversion of blueprints.

use super::nonsense;
use super::text::{clean, is_kebab};
use crate::domain::blueprint::{Blueprint, Content, File, Health, Image};
use crate::domain::driver::PluginError;
use crate::domain::flavor::BlueprintRequest;
use crate::domain::instance::ResourceType;
use crate::domain::secret::SecretKind;
use crate::plugin::bindings::types as wit;

/// Most images, files, variables, and words of a command.
const MAX_ITEMS: usize = 128;
/// Most bytes of all files of a blueprint: the database keeps it with its instance.
const MAX_FILES: usize = 1 << 20;
/// Longest path, reference, variable, or word, bytes.
const MAX_LENGTH: usize = 4096;

/// From a guest, as the answer to `request`.
pub fn from_guest(
    given: wit::Blueprint,
    request: &BlueprintRequest,
) -> Result<Blueprint, PluginError> {
    let lengths = [
        given.images.len(),
        given.files.len(),
        given.environment.len(),
        given.command.len(),
    ];
    if lengths.iter().any(|length| *length > MAX_ITEMS) {
        return Err(nonsense(format!(
            "a blueprint with more than {MAX_ITEMS} parts of one sort"
        )));
    }
    let blueprint = Blueprint {
        images: given
            .images
            .into_iter()
            .map(|image| Image {
                engine_kind: image.engine_kind,
                reference: image.reference,
            })
            .collect(),
        files: given.files.into_iter().map(file_from_guest).collect(),
        environment: given.environment,
        command: given.command,
        health: match given.health {
            wit::Health::Ssh => Health::Ssh,
            wit::Health::Http(path) => Health::Http(path),
        },
        ssh: given.ssh,
        web_port: given.web_port,
    };
    check(&blueprint, request)?;
    Ok(blueprint)
}

fn check(blueprint: &Blueprint, request: &BlueprintRequest) -> Result<(), PluginError> {
    for image in &blueprint.images {
        let plain = image
            .reference
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._:/@".contains(&b));
        if !is_kebab(&image.engine_kind, 32)
            || !plain
            || image.reference.is_empty()
            || too_long(&image.reference)
        {
            return Err(nonsense(format!(
                "image {:?}",
                clean(&image.reference, 100)
            )));
        }
    }
    let mut bytes = 0_usize;
    for file in &blueprint.files {
        if !is_normal(&file.path) || file.mode > 0o7777 {
            return Err(nonsense(format!(
                "file {:?} with mode {:o}",
                clean(&file.path, 100),
                file.mode
            )));
        }
        match &file.content {
            Content::Bytes(content) => bytes = bytes.saturating_add(content.len()),
            Content::Secret(kind) | Content::SecretCrypt(kind) if has(request, *kind) => {}
            Content::Secret(kind) | Content::SecretCrypt(kind) => {
                return Err(nonsense(format!(
                    "file {:?} holds {kind:?}, which was not given",
                    file.path
                )));
            }
        }
    }
    if bytes > MAX_FILES {
        return Err(nonsense(format!(
            "files of {bytes} bytes; at most {MAX_FILES}"
        )));
    }
    for (name, value) in &blueprint.environment {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit());
        if !plain || too_long(value) || value.contains('\0') {
            return Err(nonsense(format!(
                "environment variable {:?}",
                clean(name, 100)
            )));
        }
    }
    if blueprint
        .command
        .iter()
        .any(|word| too_long(word) || word.contains('\0'))
    {
        return Err(nonsense("the command"));
    }
    check_reachable(blueprint, request)
}

/// Checks that the instance is reachable as its flavor promises, and that its health can be probed.
fn check_reachable(blueprint: &Blueprint, request: &BlueprintRequest) -> Result<(), PluginError> {
    let flavor = &request.flavor;
    // `Flavor::ssh` is about containers: every VM has SSH.
    let ssh = flavor.ssh || request.resource_type == ResourceType::Vm;
    if blueprint.ssh != ssh
        || blueprint.web_port.is_some() != flavor.web
        || blueprint.web_port == Some(0)
    {
        return Err(nonsense(format!(
            "ssh {}, web port {:?}, for flavor {}",
            blueprint.ssh, blueprint.web_port, flavor.name
        )));
    }
    let fits = match &blueprint.health {
        Health::Ssh => blueprint.ssh,
        Health::Http(path) => {
            let plain =
                path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
            blueprint.web_port.is_some() && plain && !too_long(path)
        }
    };
    if fits {
        Ok(())
    } else {
        Err(nonsense("a health check that can't be made"))
    }
}

fn has(request: &BlueprintRequest, kind: SecretKind) -> bool {
    match kind {
        SecretKind::Password => true,
        SecretKind::AiProviderApiKey => request.ai,
        SecretKind::S3EndpointUrl
        | SecretKind::S3AccessKeyId
        | SecretKind::S3SecretAccessKey
        | SecretKind::S3PrefillBucket => request.s3_prefill,
    }
}

fn too_long(text: &str) -> bool {
    text.len() > MAX_LENGTH
}

/// Whether a path is absolute, without empty, `.` and `..` parts.
fn is_normal(path: &str) -> bool {
    !too_long(path)
        && !path.contains('\0')
        && path
            .strip_prefix('/')
            .is_some_and(|rest| rest.split('/').all(|part| !matches!(part, "" | "." | "..")))
}

/// To the guest of a driver.
pub fn to_guest(blueprint: &Blueprint) -> wit::Blueprint {
    wit::Blueprint {
        images: blueprint
            .images
            .iter()
            .map(|image| wit::Image {
                engine_kind: image.engine_kind.clone(),
                reference: image.reference.clone(),
            })
            .collect(),
        files: blueprint.files.iter().map(file_to_guest).collect(),
        environment: blueprint.environment.clone(),
        command: blueprint.command.clone(),
        health: match &blueprint.health {
            Health::Ssh => wit::Health::Ssh,
            Health::Http(path) => wit::Health::Http(path.clone()),
        },
        ssh: blueprint.ssh,
        web_port: blueprint.web_port,
    }
}

/// A file of a blueprint or of an archive; the archive's builder checks the path again.
pub fn file_from_guest(file: wit::File) -> File {
    File {
        path: file.path,
        mode: file.mode,
        uid: file.uid,
        gid: file.gid,
        content: match file.content {
            wit::Content::Bytes(bytes) => Content::Bytes(bytes),
            wit::Content::Secret(kind) => Content::Secret(secret_from_guest(kind)),
            wit::Content::SecretCrypt(kind) => Content::SecretCrypt(secret_from_guest(kind)),
        },
    }
}

fn file_to_guest(file: &File) -> wit::File {
    wit::File {
        path: file.path.clone(),
        mode: file.mode,
        uid: file.uid,
        gid: file.gid,
        content: match &file.content {
            Content::Bytes(bytes) => wit::Content::Bytes(bytes.clone()),
            Content::Secret(kind) => wit::Content::Secret(secret_to_guest(*kind)),
            Content::SecretCrypt(kind) => wit::Content::SecretCrypt(secret_to_guest(*kind)),
        },
    }
}

fn secret_from_guest(kind: wit::Secret) -> SecretKind {
    match kind {
        wit::Secret::Password => SecretKind::Password,
        wit::Secret::S3EndpointUrl => SecretKind::S3EndpointUrl,
        wit::Secret::S3AccessKeyId => SecretKind::S3AccessKeyId,
        wit::Secret::S3SecretAccessKey => SecretKind::S3SecretAccessKey,
        wit::Secret::S3PrefillBucket => SecretKind::S3PrefillBucket,
        wit::Secret::AiProviderApiKey => SecretKind::AiProviderApiKey,
    }
}

fn secret_to_guest(kind: SecretKind) -> wit::Secret {
    match kind {
        SecretKind::Password => wit::Secret::Password,
        SecretKind::S3EndpointUrl => wit::Secret::S3EndpointUrl,
        SecretKind::S3AccessKeyId => wit::Secret::S3AccessKeyId,
        SecretKind::S3SecretAccessKey => wit::Secret::S3SecretAccessKey,
        SecretKind::S3PrefillBucket => wit::Secret::S3PrefillBucket,
        SecretKind::AiProviderApiKey => wit::Secret::AiProviderApiKey,
    }
}
