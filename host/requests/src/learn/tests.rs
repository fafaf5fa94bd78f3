use super::*;
use serde_json::{Value, json};

fn entries(text: &str) -> BTreeMap<String, Learn> {
    toml::from_str(text).unwrap()
}

/// The scope of a call after these answers.
fn after(text: &str, answers: &[(u16, Value)]) -> CallScope {
    let mut scope = CallScope::node("home");
    let name = |template: &Template| Some(template.as_str().replace("{installation}", "home"));
    for (status, body) in answers {
        let body = body.to_string();
        let found = find(&entries(text), *status, body.as_bytes(), &name);
        keep(&mut scope, found);
    }
    scope
}

const LIST: &str = r#"
    machine = { status = 200, items = "/rows", where = { "/owner" = "{installation}", "/n" = "3" }, pointer = "/id", pattern = "[0-9a-f/]{8}" }
"#;

#[test]
fn ids_of_a_list_fit_its_conditions_and_its_pattern() {
    let rows = json!({ "rows": [
        { "owner": "home", "n": 3, "id": "0000000a" },
        { "owner": "home", "n": "3", "id": "0000000a" },
        { "owner": "home", "n": 3, "id": "0000000b" },
        { "owner": "other", "n": 3, "id": "0000000c" },
        { "owner": "home", "id": "0000000d" },
        { "owner": "home", "n": 3, "id": "0000000e0" },
        { "owner": "home", "n": 3, "id": "000/000f" },
        { "owner": "home", "n": 3, "id": 5 },
        "none",
    ]});
    let scope = after(LIST, &[(200, rows.clone()), (200, json!("?")), (404, rows)]);
    let ids = scope.learnt.get("machine").unwrap();
    assert_eq!(ids, &["0000000a", "0000000b"]);
}

#[test]
fn a_call_keeps_a_bounded_number_of_ids() {
    let rows: Vec<_> = (0..MAX_IDS + 10)
        .map(|n| json!({ "owner": "home", "n": 3, "id": format!("{n:08}") }))
        .collect();
    let scope = after(LIST, &[(200, json!({ "rows": rows }))]);
    assert_eq!(scope.learnt.get("machine").unwrap().len(), MAX_IDS);
}

#[test]
fn an_id_may_be_a_group_of_its_pattern() {
    let text = r#"operation = { status = 202, pointer = "/operation", pattern = "/1\\.0/operations/([0-9a-f-]{4,36})(\\?.*)?" }"#;
    for (given, wanted) in [
        ("/1.0/operations/01-ab?project=x", Some("01-ab")),
        ("/1.0/operations/01-ab/cancel", None),
        ("/2.0/operations/01-ab", None),
    ] {
        let scope = after(text, &[(202, json!({ "operation": given }))]);
        let ids = scope.learnt.get("operation").unwrap();
        assert_eq!(ids.first().map(String::as_str), wanted);
    }
}

#[test]
fn the_first_number_above_zero_counts() {
    let text = r#"memory = { status = 200, pointer = "/HostConfig/Memory", number = "first" }"#;
    let of = |memory: Value| (200, json!({ "HostConfig": { "Memory": memory } }));
    let answers = [
        of(json!(0)),
        of(json!("five")),
        of(json!(-1)),
        of(json!("7")),
        of(json!(9)),
    ];
    let scope = after(text, &answers);
    assert_eq!(scope.numbers.get("memory"), Some(&7));
    assert!(after(text, &answers[..3]).numbers.is_empty());
}

#[test]
fn first_numbers_are_of_one_answer() {
    let text = r#"
        memory = { status = 200, pointer = "/Memory", number = "first" }
        quota = { status = 200, pointer = "/Quota", number = "first" }
    "#;
    let of = |memory: u64, quota: u64| (200, json!({ "Memory": memory, "Quota": quota }));
    let scope = after(
        text,
        &[of(1, 0), (200, json!({ "Quota": 2 })), of(3, 4), of(5, 6)],
    );
    let numbers: Vec<_> = scope.numbers.into_iter().collect();
    assert_eq!(numbers, [("memory".to_owned(), 3), ("quota".to_owned(), 4)]);
}

#[test]
fn a_line_of_a_text_tells_an_id_and_a_pointer_a_directory() {
    let text = r#"layer = { status = 200, line = '.* /s/([0-9a-f]{8}) / .*' }"#;
    let body = b"\x01\0\0\x9c1 2 /s/0000000a / rw\r\n3 4 /s/0000000b /dev rw\nx /s/0000000 / rw\n";
    let found = find(&entries(text), 200, body, &|_| None);
    let mut scope = CallScope::node("home");
    keep(&mut scope, found);
    assert_eq!(scope.learnt.get("layer").unwrap(), &["0000000a"]);
    let text = r#"root = { status = 200, pointer = "/Root", directory = true }"#;
    for (given, known) in [
        ("/var/lib/x", 1),
        ("var", 0),
        ("/a/../b", 0),
        ("/a\n/b", 0),
        ("/a/", 0),
    ] {
        let scope = after(text, &[(200, json!({ "Root": given }))]);
        assert_eq!(scope.learnt.get("root").unwrap().len(), known, "{given}");
    }
}

#[test]
fn an_id_has_at_most_256_bytes() {
    let text = r#"id = { status = 200, pointer = "/a~1b/1", pattern = "a*" }"#;
    for (length, known) in [(0, 0), (256, 1), (257, 0)] {
        let answer = json!({ "a": 1, "a/b": ["x", "a".repeat(length)] });
        let scope = after(text, &[(200, answer)]);
        assert_eq!(scope.learnt.get("id").unwrap().len(), known, "{length}");
    }
}

#[test]
fn an_incomplete_answer_tells_nothing() {
    let rows = br#"{ "rows": [{ "owner": "home", "n": 3, "id": "0000000a" }]"#;
    let name = |_: &Template| Some("home".to_owned());
    assert!(find(&entries(LIST), 200, rows, &name).is_empty());
}

#[test]
fn a_list_under_two_equal_keys_tells_nothing() {
    let row = r#"[{ "owner": "home", "n": 3, "id": "0000000a" }]"#;
    let name = |_: &Template| Some("home".to_owned());
    let text = LIST.replace(r#", "/n" = "3""#, "");
    for other in [row, "[]", "5"] {
        let rows = format!(r#"{{ "rows": {row}, "a": 1, "rows": {other} }}"#);
        assert!(find(&entries(&text), 200, rows.as_bytes(), &name).is_empty());
    }
}

#[test]
fn a_sum_is_of_the_positive_numbers_of_the_last_list() {
    let text = r#"image = { status = 200, items = "", sum = "/Size" }"#;
    let sizes = json!([{ "Size": 5 }, { "Size": -1 }, {}, { "Size": 7 }]);
    let scope = after(
        text,
        &[
            (200, json!([{ "Size": 1 }])),
            (200, sizes),
            (200, json!({})),
        ],
    );
    assert_eq!(scope.numbers.get("image"), Some(&12));
    let most = json!([{ "Size": u64::MAX }, { "Size": 1 }]);
    assert_eq!(
        after(text, &[(200, most)]).numbers.get("image"),
        Some(&u64::MAX)
    );
}

#[test]
fn words_of_an_answer_are_a_fact() {
    let text = r#"no-limit = { status = [400, 500], says = ["Project Quota", "storage-opt"] }"#;
    for (status, body, said) in [
        (400, "use a PROJECT quota", true),
        (500, "--storage-opt is not supported", true),
        (201, "storage-opt", false),
        (500, "no space", false),
    ] {
        let scope = after(text, &[(status, json!({ "message": body }))]);
        assert_eq!(scope.facts.contains("no-limit"), said, "{body}");
    }
}

#[test]
fn an_entry_has_one_kind_of_value_and_json_pointers() {
    for (entry, words) in [
        ("status = 200", "`says` for a fact"),
        (r#"status = 200, pointer = "/a""#, "`says` for a fact"),
        (
            r#"status = 200, pointer = "/a", pattern = "x", number = "first""#,
            "`says` for a fact",
        ),
        (r#"status = 200, sum = "/a""#, "`says` for a fact"),
        ("status = 200, says = []", "`says` for a fact"),
        (
            r#"status = 200, pointer = "a", pattern = "x""#,
            "\"a\" is not a JSON pointer",
        ),
        (
            r#"status = 200, pointer = "/a", pattern = "(""#,
            "not a pattern",
        ),
        (
            r#"status = 200, items = "/rows/0/ids", pointer = "", pattern = "x""#,
            "items: \"/rows/0/ids\" has a number",
        ),
        (
            r#"status = 200, pointer = "/a", pattern = "x", where = { "/b" = "c" }"#,
            "`where` needs `items`",
        ),
        (r#"status = 200, pointer = "/a", number = "last""#, "last"),
        (r#"status = "200", says = ["a"]"#, "a status, or a list"),
        (r#"status = 200, says = ["a"], more = 1"#, "more"),
    ] {
        let text = format!("x = {{ {entry} }}");
        let error = toml::from_str::<BTreeMap<String, Learn>>(&text)
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{entry}: {error}");
    }
}
