//! The bounds of a file and of a request.

use super::{body_of, container, file};
use serde_json::json;

#[test]
fn a_file_has_at_most_64_kib() {
    let of = |length: usize| file(&format!("# {}", "x".repeat(length)));
    assert!(of((64 << 10) - 40).is_ok());
    assert!(of(64 << 10).unwrap_err().contains("has more than 64 KiB"));
}

#[test]
fn trees_and_values_of_values_are_not_deep() {
    let nested =
        |depth: usize| format!("[values]\na = {}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(file(&nested(32)).is_ok());
    for depth in [33, 30_000] {
        assert!(file(&nested(depth)).is_err(), "{depth}");
    }
    let dotted = format!("[values]\na{} = 1", ".b".repeat(30_000));
    assert!(file(&dotted).is_err());
    let header = format!("[values{}]\na = 1", ".b".repeat(30_000));
    assert!(file(&header).is_err());
    let chain = |length: usize| {
        let links = (0..length).map(|n| format!("v{n} = \"{{value.v{}}}\"\n", n + 1));
        format!("[values]\n{}v{length} = 1", links.collect::<String>())
    };
    assert!(file(&chain(31)).is_ok());
    let error = file(&chain(33)).unwrap_err();
    assert!(
        error.contains("values of values are deeper than 32"),
        "{error}"
    );
    // Each value alone is not deep, but a request with all of them is.
    let mut tables = format!("[values]\nv0 = {}\n", "[".repeat(20) + &"]".repeat(20));
    tables += "v1 = [[[[[[[[[[[[[[[[[[[[\"{value.v0}\"]]]]]]]]]]]]]]]]]]]]\n";
    let refusal = body_of(&tables, "a = \"{value.v1}\"", &container(), &[]).unwrap_err();
    assert!(refusal.contains("is deeper than 32"), "{refusal}");
}

/// Values, each of which has the next one twice.
fn doubled(count: usize, value: &str, last: &str) -> String {
    let links =
        (0..count).map(|n| format!("v{n} = {}\n", value.replace('#', &(n + 1).to_string())));
    format!("[values]\n{}v{count} = {last}\n", links.collect::<String>())
}

#[test]
fn a_request_has_at_most_20_000_values_and_1_mib() {
    let list = |count| doubled(count, "[\"{value.v#}\", \"{value.v#}\"]", "[1]");
    let write = |tables: &str| body_of(tables, "a = \"{value.v0}\"", &container(), &[]);
    let written = write(&list(10)).unwrap();
    assert_eq!(written["a"].as_array().unwrap().len(), 1024);
    let text = |count, last: &str| doubled(count, "\"{value.v#}{value.v#}\"", last);
    let long = |length: usize| format!("\"{}\"", "x".repeat(length));
    for (tables, words) in [
        (list(13), "has too many values"),
        (list(31), "is deeper than 32"),
        (text(29, &long(1)), "has too many values"),
        (text(9, &long(8000)), "has too many values"),
        (
            doubled(29, "{ when = [\"value.v#\", \"value.v#\"], is = 1 }", "1"),
            "has too many values",
        ),
        (
            doubled(29, "\"{value.v# + value.v#}\"", "1"),
            "has too many values",
        ),
    ] {
        let refusal = write(&tables).unwrap_err();
        assert!(refusal.contains(words), "{refusal}");
    }
    let variable = format!("A={}", "x".repeat(4096));
    let call = |count: usize| json!({ "environment": vec![variable.clone(); count] });
    let body = "a = { each = \"environment\", item = \"{variable.value}\" }";
    assert!(body_of("", body, &call(250), &[]).is_ok());
    let refusal = body_of("", body, &call(257), &[]).unwrap_err();
    assert!(refusal.contains("body: has more than 1 MiB"), "{refusal}");
}
