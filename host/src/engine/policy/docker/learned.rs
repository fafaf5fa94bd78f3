//! Containers known by the engine's word. A call is for one instance, whose container has a name of
//! ours; but someone with access to the engine can rename it. What the engine lists with the labels
//! of the call's instance may be named by its id for the rest of the call.

use super::versioned;
use crate::engine::message::Response;
use crate::engine::policy::path::Target;
use crate::engine::scope::Scope;
use serde::Deserialize;
use std::collections::HashMap;

/// One instance has one container; more than a few are not worth keeping.
const MAX_CONTAINERS: usize = 16;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    id: String,
    #[serde(default)]
    labels: Option<HashMap<String, String>>,
}

/// Reads an answer to a `GET`, if it is a list of containers.
pub fn learn(scope: &mut Scope, target: &Target<'_>, answer: &Response) {
    if answer.status != 200 || versioned(target).1 != ["containers", "json"] {
        return;
    }
    let Some(subject) = &mut scope.subject else {
        return;
    };
    let Ok(rows) = serde_json::from_slice::<Vec<Row>>(&answer.body) else {
        return;
    };
    let instance = subject.tag.instance.to_string();
    let own = rows.into_iter().filter(|row| {
        let label = |key: &str| row.labels.as_ref().and_then(|labels| labels.get(key));
        is_id(&row.id)
            && label("io.wharf.installation") == Some(&scope.installation)
            && label("io.wharf.instance") == Some(&instance)
    });
    let own = own.take(MAX_CONTAINERS);
    subject.containers = own.map(|row| row.id).collect();
}

fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}
