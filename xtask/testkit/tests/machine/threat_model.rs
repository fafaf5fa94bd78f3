//! The threat model names tests that exist, and the systemd unit keeps its hardening.

use std::fs;
use std::path::Path;
use std::process::Command;
use wharf_testkit::process::find;
use wharf_testkit::workspace::root;

/// Appends the text of all Rust files below a directory.
fn sources(dir: &Path, text: &mut String) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// The names of tests in the last column of the tables.
fn named(page: &str) -> Vec<&str> {
    let is_name = |word: &&str| {
        word.contains('_') && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .filter(is_name)
        .collect()
}

#[test]
fn the_tests_of_the_threat_model_exist() {
    let page = fs::read_to_string(root().join("docs/threat-model.md")).unwrap();
    let names = named(&page);
    assert!(names.len() > 25, "{names:?}");
    let mut code = String::new();
    for dir in ["host", "plugins", "tests", "xtask"] {
        sources(&root().join(dir), &mut code);
    }
    let exists =
        |name: &str| code.contains(&format!("fn {name}(")) || code.contains(&format!("\"{name}\""));
    let missing: Vec<_> = names.iter().filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
    let security = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    assert!(security.contains("(docs/threat-model.md)"));
}

#[test]
fn the_unit_is_valid_and_confines_the_process() {
    let unit = fs::read_to_string(root().join("docs/wharf.service")).unwrap();
    for line in [
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "ProtectSystem=strict",
    ] {
        assert!(unit.lines().any(|own| own == line), "{line}");
    }
    if find("systemd-analyze").is_none() {
        println!("SKIPPED: needs systemd-analyze");
        return;
    }
    // A program that exists.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wharf.service");
    fs::write(&path, unit.replace("/usr/local/bin/wharf", "/bin/true")).unwrap();
    let analyze = |words: &[&str]| {
        let output = Command::new("systemd-analyze")
            .args(words)
            .arg(&path)
            .output();
        let output = output.unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text.into_owned())
    };
    let (is_valid, text) = analyze(&["verify", "--man=no"]);
    assert!(is_valid && text.is_empty(), "{text}");
    // 2.0 on systemd's scale, where 10 is a unit without any wall.
    let (is_confined, text) =
        analyze(&["security", "--offline=yes", "--threshold=20", "--no-pager"]);
    assert!(is_confined, "{text}");
}
