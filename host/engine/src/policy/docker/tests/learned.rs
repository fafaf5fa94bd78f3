//! A container under another name.

use super::{ID, OTHER, ask, policy, scope};
use crate::{Body, Response};
use serde_json::{Value, json};

const LIST: &str = "/v1.41/containers/json?all=true&filters=%7B%22label%22%3A%5B%22io.wharf.installation%3Dhome%22%5D%7D";

fn row(id: char, installation: &str, instance: &str) -> Value {
    json!({
        "Id": id.to_string().repeat(64),
        "Names": ["/pets"],
        "Labels": { "io.wharf.installation": installation, "io.wharf.instance": instance },
    })
}

#[test]
fn only_what_the_engine_lists_with_the_calls_labels_may_be_named_by_its_id() {
    let mut scope = scope();
    let id = |c: char| format!("/containers/{}/json", c.to_string().repeat(64));
    assert!(ask(&scope, "GET", &id('a'), Body::Empty).is_err());
    let rows = json!([
        row('a', "home", ID),
        row('b', "home", OTHER),
        row('c', "elsewhere", ID),
        { "Id": "d".repeat(64), "Labels": null },
        { "Id": "postgres", "Labels": { "io.wharf.installation": "home", "io.wharf.instance": ID } },
    ]);
    let answer = |status, body: &Value| Response {
        status,
        headers: Vec::new(),
        body: body.to_string().into(),
    };
    let learn = |scope: &mut _, rule: &str, status| {
        policy().learn(scope, rule, &answer(status, &rows));
    };
    let list = ask(&scope, "GET", LIST, Body::Empty).unwrap().rule;
    learn(&mut scope, &list, 500);
    learn(&mut scope, "list-networks", 200);
    assert!(ask(&scope, "GET", &id('a'), Body::Empty).is_err());
    learn(&mut scope, &list, 200);
    assert!(ask(&scope, "GET", &id('a'), Body::Empty).is_ok());
    for other in ['b', 'c', 'd'] {
        assert!(
            ask(&scope, "GET", &id(other), Body::Empty).is_err(),
            "{other}"
        );
    }
    assert!(ask(&scope, "GET", "/containers/postgres/json", Body::Empty).is_err());
    // Containers are created only under their own name.
    let create = format!("/containers/create?name={}", "a".repeat(64));
    let body = Body::Json(super::creation().to_string());
    assert!(ask(&scope, "POST", &create, body).is_err());
}
