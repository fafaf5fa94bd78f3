//! schemathesis with all checks and phases, two users and the links.

use crate::{python, source};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use wharf_tests::lanes::is_whole_run;
use wharf_tests::succeed;

/// The number of cases for each operation and phase: in a plain run, and in a whole one.
const EXAMPLES: [&str; 2] = ["25", "100"];

#[test]
fn schemathesis_finds_nothing() {
    let python = python();
    let server = crate::start();
    let (ann, bob) = (
        server.user("ann@example.com").unwrap(),
        server.user("bob@example.com").unwrap(),
    );
    let dir = tempfile::tempdir().unwrap();
    let users = dir.path().join("users.json");
    let user = |name: &str, key: &str| {
        serde_json::json!({ "name": name, "fixedHeaders": [
            { "name": "Authorization", "value": format!("Bearer {key}") },
        ]})
    };
    let content = serde_json::json!({ "auth": [user("ann", ann.key()), user("bob", bob.key())] });
    let file = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&users);
    file.unwrap()
        .write_all(content.to_string().as_bytes())
        .unwrap();
    let said = succeed(
        python
            .program("schemathesis")
            .current_dir(dir.path())
            .env("WHARF_USERS", &users)
            .env("WHARF_HOOKS", source("hooks.py"))
            .arg("--config-file")
            .arg(source("schemathesis.toml"))
            .args(["run", "--no-color", "--max-examples"])
            .arg(EXAMPLES[usize::from(is_whole_run())])
            .arg(format!("{}/api/openapi.json", server.base_url())),
    );
    let said = said.unwrap_or_else(|error| panic!("{error:#}"));
    assert!(!said.contains(ann.key()) && !said.contains(bob.key()));
    println!("{said}");
    server.finish().unwrap();
}
