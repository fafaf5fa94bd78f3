//! The memory that a large answer takes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use wharf_requests::{CallScope, RequestFile, Requests};

const FILE: &str = r#"
kind = "sample"
about = "An engine of the tests."

[request.list]
about = "Lists machines."
method = "GET"
path = "/machines"
learn.first = { status = 200, pointer = "/id", number = "first" }
learn.machine = { status = 200, items = "/rows", pointer = "/id", pattern = "[0-9]+" }
"#;

/// The most memory that this process has had, MiB.
fn most() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        >> 10
}

#[test]
fn an_answer_of_8_mib_takes_little_memory() {
    let file = RequestFile::parse(FILE).unwrap();
    let requests = Requests::new(&file, &serde_json::Value::Null).unwrap();
    for item in [r#"{"":0},"#, r#"{"id":"1"},"#] {
        let items = item.repeat((8 << 20) / item.len());
        let body = format!(r#"{{"rows":[{items}{{}}],"id":1}}"#);
        let (mut scope, before) = (CallScope::node("home"), most());
        requests.learn(&mut scope, "list", &[], 200, body.as_bytes());
        assert_eq!(scope.numbers.len(), 1);
        assert!(most() < before + 32, "{} MiB of {item}", most() - before);
    }
}
