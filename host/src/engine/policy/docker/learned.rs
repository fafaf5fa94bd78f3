//! What is known by the engine's word. A call is for one instance, whose container has a name of
//! ours; but someone with access to the engine can rename it. What the engine lists with the labels
//! of the call's instance may be named by its id for the rest of the call. So may a program that the
//! engine has made ready to be run in that container.

use super::versioned;
use crate::engine::message::Response;
use crate::engine::policy::path::Target;
use crate::engine::scope::Scope;
use http::Method;
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

/// Reads an answer.
pub fn learn(scope: &mut Scope, method: &Method, target: &Target<'_>, answer: &Response) {
    match (method.as_str(), answer.status, versioned(target).1) {
        ("GET", 200, ["containers", "json"]) => containers(scope, answer),
        ("POST", 201, ["containers", _, "exec"]) => program(scope, answer),
        _ => {}
    }
}

/// The request was passed, so the program is one for the call's own container.
fn program(scope: &mut Scope, answer: &Response) {
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

fn containers(scope: &mut Scope, answer: &Response) {
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
