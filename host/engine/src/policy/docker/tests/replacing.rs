//! The container that replaces another.

use super::{ID, OTHER, ask, creation, policy, scope};
use crate::{Body, Transfer};
use wharf_requests::CallScope;

fn named(suffix: &str) -> String {
    format!("wharf-{ID}{suffix}")
}

fn transfer(scope: &CallScope, read: &str, changes: &str, write: &str) -> bool {
    let transfer = Transfer {
        read: read.into(),
        changes: changes.into(),
        write: write.into(),
    };
    policy().check_transfer(scope, &transfer).is_ok()
}

#[test]
fn content_goes_from_the_instances_container_to_its_replacement_only() {
    let mut scope = scope();
    let id = "a".repeat(64);
    scope.learnt.insert("container".into(), vec![id.clone()]);
    let own = named("");
    let part = format!("/containers/{}/archive?path=%2F", named("-part"));
    let changes = format!("/v1.41/containers/{own}/changes");
    for read in [
        format!("/containers/{own}/export"),
        format!("/v1.41/containers/{id}/export"),
    ] {
        assert!(transfer(&scope, &read, &changes, &part), "{read}");
    }
    let read = format!("/containers/{own}/export");
    for other in [
        format!("/containers/wharf-{OTHER}/export"),
        format!("/containers/{}/export", "b".repeat(64)),
        format!("/containers/{}/export", named("-part")),
        format!("/containers/{own}/archive?path=%2F"),
        format!("/containers/{own}/archive"),
        format!("/containers/{own}/export?x=1"),
        format!("/containers/{own}/logs"),
        "/images/x/export".to_owned(),
        "/volumes".to_owned(),
    ] {
        assert!(!transfer(&scope, &other, &changes, &part), "{other}");
    }
    for other in [
        format!("/containers/wharf-{OTHER}-part/archive?path=%2F"),
        format!("/containers/{own}/archive?path=%2F"),
        format!("/containers/{}/archive?path=%2F", named("-whole")),
        format!("/containers/{}/archive?path=%2Fetc", named("-part")),
        format!("/containers/{}/archive", named("-part")),
        format!("{part}&noOverwriteDirNonDir=true"),
        "/images/load".to_owned(),
    ] {
        assert!(!transfer(&scope, &read, &changes, &other), "{other}");
    }
    let foreign = format!("/containers/wharf-{OTHER}/changes");
    assert!(!transfer(&scope, &read, &foreign, &part));
    // Only calls that create the replacement may do this.
    if let Some(subject) = &mut scope.subject {
        subject.creation = None;
    }
    assert!(!transfer(&scope, &read, &changes, &part));
}

#[test]
fn a_replacement_is_made_named_and_removed_in_its_own_order() {
    let scope = scope();
    let make = |name: &str| {
        let path = format!("/containers/create?name={name}");
        ask(&scope, "POST", &path, Body::Json(creation().to_string())).is_ok()
    };
    assert!(make(&named("")) && make(&named("-part")));
    assert!(!make(&named("-whole")) && !make(&format!("wharf-{OTHER}-part")));
    let rename = |from: &str, to: &str| {
        let path = format!("/containers/{from}/rename?name={to}");
        ask(&scope, "POST", &path, Body::Empty).is_ok()
    };
    assert!(rename(&named("-part"), &named("-whole")));
    assert!(rename(&named("-whole"), &named("")));
    for (from, to) in [
        (named("-part"), named("")),
        (named(""), named("-whole")),
        (named("-whole"), format!("wharf-{OTHER}")),
        (format!("wharf-{OTHER}-whole"), named("")),
        ("postgres".to_owned(), named("-whole")),
    ] {
        assert!(!rename(&from, &to), "{from} {to}");
    }
    let remove = |name: &str| {
        let path = format!("/containers/{name}?force=true&v=true");
        ask(&scope, "DELETE", &path, Body::Empty).is_ok()
    };
    assert!(remove(&named("-part")) && remove(&named("-whole")));
    assert!(!remove(&format!("wharf-{OTHER}-part")));
    // Only a container with the instance's name is started.
    let start = format!("/containers/{}/start", named("-part"));
    assert!(ask(&scope, "POST", &start, Body::Empty).is_err());
}
