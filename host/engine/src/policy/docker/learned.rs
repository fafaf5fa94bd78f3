//! Facts that the engine has told in a call. A call may give a container its earlier limits back, and its
//! disk the room that the image takes. It may omit the disk limit if the engine cannot limit disks.

use super::Docker;
use crate::message::Response;
use serde::Deserialize;
use wharf_requests::{CallScope, Limits};

/// The facts that the policy file has noted from answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// The limits of the container before the call changed any.
    Limits,
    /// The size of the image.
    ImageSize,
    /// The engine cannot limit disks.
    NoDiskLimit,
}

impl Docker {
    /// Notes a fact from an answer to a request that the policy has checked.
    pub fn note(note: Note, scope: &mut CallScope, answer: &Response) {
        match (note, answer.status) {
            (Note::Limits, 200) => limits(scope, answer),
            (Note::ImageSize, 200) => image(scope, answer),
            (Note::NoDiskLimit, 400 | 500) => disk_limit(scope, answer),
            _ => {}
        }
    }
}

/// The policy has checked the request, so it is the call's own container. Only its first report counts:
/// an update of this call may have changed later ones.
fn limits(scope: &mut CallScope, answer: &Response) {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Details {
        host_config: HostConfig,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct HostConfig {
        memory: u64,
        cpu_period: u64,
        cpu_quota: u64,
    }
    if let Some(subject) = &mut scope.subject
        && subject.limits_before.is_none()
        && let Ok(Details { host_config }) = serde_json::from_slice(&answer.body)
    {
        let HostConfig {
            memory,
            cpu_period,
            cpu_quota,
        } = host_config;
        // Zero means that there is no limit.
        subject.limits_before = (memory > 0 && cpu_period > 0 && cpu_quota > 0).then_some(Limits {
            memory,
            cpu_period,
            cpu_quota,
        });
    }
}

/// The policy has checked the request, so it is the blueprint's image.
fn image(scope: &mut CallScope, answer: &Response) {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Layer {
        #[serde(default)]
        size: i64,
    }
    if let Some(subject) = &mut scope.subject
        && let Ok(layers) = serde_json::from_slice::<Vec<Layer>>(&answer.body)
    {
        let sizes = layers
            .iter()
            .filter_map(|layer| u64::try_from(layer.size).ok());
        subject.image_bytes = sizes.fold(0, u64::saturating_add);
    }
}

/// A driver cannot bring about such an error: the policy has checked the limit.
fn disk_limit(scope: &mut CallScope, answer: &Response) {
    const WORDS: [&str; 5] = [
        "storage-opt",
        "storage option",
        "project quota",
        "quota not supported",
        "btrfs quota",
    ];
    let error = String::from_utf8_lossy(&answer.body).to_ascii_lowercase();
    if let Some(subject) = &mut scope.subject
        && WORDS.iter().any(|words| error.contains(words))
    {
        subject.no_disk_limit = true;
    }
}
