//! Ids that the engine has reported in a call. An operator can rename the container of an instance, so a
//! call may use the ids of containers that the engine has listed with the instance's labels. It may
//! also use the id of a program that the engine has created in that container. It may give a container
//! the limits back that it had before, and its disk the room that the image takes, or no limit if the
//! engine cannot limit disks.

use super::versioned;
use crate::message::Response;
use crate::policy::path::Target;
use crate::scope::{CallScope, Limits};
use http::Method;
use serde::Deserialize;
use std::collections::HashMap;

/// Most ids kept; one instance has one container.
const MAX_CONTAINERS: usize = 16;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    id: String,
    #[serde(default)]
    labels: Option<HashMap<String, String>>,
}

/// Learns the ids in an answer.
pub fn learn(scope: &mut CallScope, method: &Method, target: &Target<'_>, answer: &Response) {
    match (method.as_str(), answer.status, versioned(target).1) {
        ("GET", 200, ["containers", "json"]) => containers(scope, answer),
        ("POST", 201, ["containers", _, "exec"]) => program(scope, answer),
        ("GET", 200, ["containers", _, "json"]) => limits(scope, answer),
        ("GET", 200, ["images", .., "history"]) => image(scope, answer),
        ("POST", 400 | 500, ["containers", "create"] | ["libpod", "containers", "create"]) => {
            disk_limit(scope, answer);
        }
        _ => {}
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

/// The policy has checked the request, so the program is in the call's own container.
fn program(scope: &mut CallScope, answer: &Response) {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Made {
        id: String,
    }
    if let Some(subject) = &mut scope.subject
        && let Ok(made) = serde_json::from_slice::<Made>(&answer.body)
        && is_id(&made.id)
        && subject.programs.len() < MAX_CONTAINERS
    {
        subject.programs.push(made.id);
    }
}

fn containers(scope: &mut CallScope, answer: &Response) {
    let Ok(rows) = serde_json::from_slice::<Vec<Row>>(&answer.body) else {
        return;
    };
    let instance = scope.subject.as_ref().map(|s| s.tag.instance.to_string());
    let own = rows.into_iter().filter(|row| {
        let label = |key: &str| row.labels.as_ref().and_then(|labels| labels.get(key));
        is_id(&row.id)
            && label("io.wharf.installation") == Some(&scope.installation)
            && instance
                .as_ref()
                .is_none_or(|id| label("io.wharf.instance") == Some(id))
    });
    let own = own.take(MAX_CONTAINERS).map(|row| row.id).collect();
    match &mut scope.subject {
        Some(subject) => subject.containers = own,
        None => scope.listed = own,
    }
}

fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}
