//! Policy files: what is refused in them, and what is said about them.

use super::SAMPLE;
use crate::policy::Policy;
use crate::policy::data::PolicyFile;
use crate::policy::data::document::Document;
use serde_json::{Value, json};

#[test]
fn settings_are_checked_with_the_node() {
    let file = PolicyFile::parse(SAMPLE).unwrap();
    let error = |settings: Value| Policy::new(&file, &settings).unwrap_err();
    assert_eq!(
        error(json!({})),
        "publish_address: required: The address of published ports."
    );
    let with = |key: &str, value: Value| {
        let mut settings = json!({ "publish_address": "::1" });
        settings[key] = value;
        error(settings)
    };
    assert!(with("publish_address", json!("here")).contains("not an IP address"));
    assert!(with("project", json!("a/b")).contains("pattern"));
    assert!(with("project", json!(1)).contains("must be text"));
    assert!(with("dns", json!([1])).contains("list of texts"));
    assert!(error(json!([])).contains("table"));
}

#[test]
fn a_wrong_file_is_refused_with_the_place() {
    let cases = [
        (
            "kind = \"sample\"",
            "kind = \"\"",
            "kind: must not be empty",
        ),
        ("[request.list]", "[request.list]\npaht = 1", "paht"),
        ("method = \"GET\"", "method = \"TRACE\"", "not one of GET"),
        (
            "path = \"/machines\"",
            "path = \"machines\"",
            "must begin with /",
        ),
        (
            "{installation.end}",
            "{installation.start}",
            "names.machine: ",
        ),
        ("{name.machine}", "{name.other}", "there is no {name.other}"),
        ("{size.vcpus:text}", "{size.vcpu}", "request.create.body: "),
        ("{size.vcpus:text}", "{size.vcpus", "closing"),
        (
            "{learnt.operation}",
            "{learnt.id}",
            "there is no {learnt.id}",
        ),
        ("{file.path}", "x{any}", "{any} stands only"),
        (
            "each = \"published\"",
            "each = \"images2\"",
            "is not a list",
        ),
        (
            "each = \"published\"",
            "each = \"images\"",
            "there is no {published.instance_port}",
        ),
        (
            "maxItems = 2",
            "maxItem = 2",
            "\"maxItem\" is not a keyword",
        ),
        ("maxItems = 2", "maxItems = \"x\"", "request.create.body: "),
        ("X-Mode", "Authorization", "must begin with \"X-\""),
        ("body = \"file\"", "body = \"tar\"", "\"archive\", \"file\""),
        ("body = \"file\"", "", "there is no {file.path}"),
        (
            "items = \"/rows\"",
            "items = \"rows\"",
            "not a JSON pointer",
        ),
        ("items = \"/rows\", ", "", "`where` needs `items`"),
        (
            "pattern = \"[a-z]+\"",
            "pattern = \"[a-z\"",
            "not a pattern",
        ),
        ("pattern = \"[a-z]+\"", "pattern = \"[0-9]+\"", "default: "),
        ("type = \"address\"", "", "needs a default or a type"),
    ];
    for (old, new, words) in cases {
        let text = SAMPLE.replacen(old, new, 1);
        assert_ne!(text, SAMPLE, "{old}");
        let error = PolicyFile::parse(&text).unwrap_err();
        assert!(error.contains(words), "{new}: {error}");
    }
}

#[test]
fn the_explanation_names_every_request_and_setting() {
    let file = PolicyFile::parse(SAMPLE).unwrap();
    let words = file.explain();
    let document = Document::parse(SAMPLE).unwrap();
    for (name, rule) in &document.request {
        assert!(
            words.contains(&format!("  {name}: {}", rule.about)),
            "{words}"
        );
    }
    for name in document.settings.keys() {
        assert!(words.contains(&format!("  {name}: ")), "{words}");
    }
}

#[test]
fn openings_are_found() {
    let file = PolicyFile::parse(SAMPLE).unwrap();
    assert_eq!(
        file.lint(),
        ["request.pull: nothing ties this change to the instance of the call"]
    );
    let cases = [
        ("path = \"/machines\"", "path = \"/{any}\"", "leaves a part"),
        ("\"page?\" = { max = 9 }", "page = \"{any}\"", "any value"),
        ("{ type = \"string\" }", "{}", "anything at /hint/color"),
        (
            "name = { const = \"{name.machine}\" }",
            "name = true",
            "anything at /name",
        ),
        (
            "where = { \"/owner\" = \"{installation}\", \"/instance\" = \"{instance}\" }, ",
            "",
            "every item",
        ),
        (
            "\"{settings.publish_address}:",
            "\"0.0.0.0:",
            "settings.publish_address: no request",
        ),
    ];
    for (old, new, words) in cases {
        let text = SAMPLE.replacen(old, new, 1);
        let findings = PolicyFile::parse(&text).unwrap().lint();
        assert!(
            findings.iter().any(|finding| finding.contains(words)),
            "{new}: {findings:?}"
        );
    }
}
