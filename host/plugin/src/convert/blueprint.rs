//! Conversion of blueprints.

use super::{clean, is_kebab, nonsense};
use crate::bindings::types as wit;
use std::collections::HashSet;
use wharf_domain::blueprint::{Blueprint, BlueprintFile, FileContent, Health, Image, SSH_PORT};
use wharf_domain::driver::PluginError;
use wharf_domain::flavor::BlueprintRequest;
use wharf_domain::instance::ResourceType;
use wharf_domain::secret::SecretKind;

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
            FileContent::Bytes(content) => bytes = bytes.saturating_add(content.len()),
            FileContent::Secret(kind) | FileContent::SecretCrypt(kind) if has(request, *kind) => {}
            FileContent::Secret(kind) | FileContent::SecretCrypt(kind) => {
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
    // Drivers send them by name, and the last one would hide the others.
    let files = blueprint.files.iter().map(|file| file.path.as_str());
    let variables = blueprint.environment.iter().map(|(name, _)| name.as_str());
    let twice = repeated(files)
        .map(|path| ("file", path))
        .or_else(|| repeated(variables).map(|name| ("environment variable", name)));
    if let Some((sort, name)) = twice {
        return Err(nonsense(format!("{sort} {:?} twice", clean(name, 100))));
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
    // `Flavor::ssh` is about containers: every VM has SSH. A flavor without it may have a private port.
    let needs_ssh = flavor.ssh || request.resource_type == ResourceType::Vm;
    if (needs_ssh && !blueprint.ssh)
        || blueprint.web_port.is_some() != flavor.web
        || blueprint.web_port == Some(0)
        || (blueprint.ssh && blueprint.web_port == Some(SSH_PORT))
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
        SecretKind::WebToken => request.flavor.web,
        SecretKind::S3EndpointUrl
        | SecretKind::S3AccessKeyId
        | SecretKind::S3SecretAccessKey
        | SecretKind::S3PrefillBucket => request.s3_prefill,
    }
}

fn repeated<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = HashSet::new();
    names.find(|name| !seen.insert(*name))
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
pub fn file_from_guest(file: wit::File) -> BlueprintFile {
    BlueprintFile {
        path: file.path,
        mode: file.mode,
        uid: file.uid,
        gid: file.gid,
        content: match file.content {
            wit::Content::Bytes(bytes) => FileContent::Bytes(bytes),
            wit::Content::Secret(kind) => FileContent::Secret(secret_from_guest(kind)),
            wit::Content::SecretCrypt(kind) => FileContent::SecretCrypt(secret_from_guest(kind)),
        },
    }
}

fn file_to_guest(file: &BlueprintFile) -> wit::File {
    wit::File {
        path: file.path.clone(),
        mode: file.mode,
        uid: file.uid,
        gid: file.gid,
        content: match &file.content {
            FileContent::Bytes(bytes) => wit::Content::Bytes(bytes.clone()),
            FileContent::Secret(kind) => wit::Content::Secret(secret_to_guest(*kind)),
            FileContent::SecretCrypt(kind) => wit::Content::SecretCrypt(secret_to_guest(*kind)),
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
        wit::Secret::WebToken => SecretKind::WebToken,
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
        SecretKind::WebToken => wit::Secret::WebToken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use wharf_domain::capacity::Size;
    use wharf_domain::flavor::{Flavor, WebAuth};

    fn request() -> BlueprintRequest {
        let size = Size {
            n_vcpus: 1,
            mem_gib: 1,
            disk_size_gib: 1,
        };
        BlueprintRequest {
            flavor: Arc::new(Flavor {
                name: "x".to_owned(),
                description: String::new(),
                resource_types: vec![ResourceType::Container],
                ssh: true,
                web: true,
                web_auth: WebAuth::None,
                s3_prefill: false,
                ai: false,
                gpu_aware: false,
                minimum: size,
            }),
            resource_type: ResourceType::Container,
            size,
            n_gpus: 0,
            login_user: "user".to_owned(),
            public_key: None,
            s3_prefill: false,
            ai: false,
            private_page: false,
        }
    }

    #[test]
    fn a_file_a_variable_and_a_port_are_there_once() {
        let given = |files: &[&str], variables: &[&str], web_port| {
            let file = |path: &&str| wit::File {
                path: (*path).to_owned(),
                mode: 0o644,
                uid: 0,
                gid: 0,
                content: wit::Content::Bytes(Vec::new()),
            };
            let variable = |name: &&str| ((*name).to_owned(), "x".to_owned());
            let blueprint = wit::Blueprint {
                images: Vec::new(),
                files: files.iter().map(file).collect(),
                environment: variables.iter().map(variable).collect(),
                command: Vec::new(),
                health: wit::Health::Ssh,
                ssh: true,
                web_port: Some(web_port),
            };
            from_guest(blueprint, &request())
        };
        assert!(given(&["/a", "/b"], &["A", "B"], 80).is_ok());
        for (wrong, words) in [
            (given(&["/a", "/b", "/a"], &[], 80), "file \"/a\" twice"),
            (
                given(&[], &["A", "A"], 80),
                "environment variable \"A\" twice",
            ),
            (given(&[], &[], 22), "web port Some(22)"),
        ] {
            let error = wrong.unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
