//! Which part of `host/` alone knows a library, and what the pure parts must not know at all.

use super::direction::module;
use super::paths::Use;
use super::{File, Finding};

/// A path's beginning, the files it belongs to, and why.
const OWNERS: [(&str, &[&str], &str); 9] = [
    (
        "wasmtime",
        &["plugin"],
        "only plugin/ knows the WebAssembly runtime",
    ),
    (
        "wasmtime_wasi",
        &["plugin"],
        "only plugin/ knows the WebAssembly runtime",
    ),
    ("redb", &["db"], "only db/ knows the database"),
    (
        "hyper",
        &["http", "engine"],
        "only http/ serves HTTP, and engine/ is its client",
    ),
    (
        "hyper_util",
        &["http", "engine"],
        "only http/ serves HTTP, and engine/ is its client",
    ),
    ("hyper::server", &["http"], "only http/ serves HTTP"),
    ("hyper_util::server", &["http"], "only http/ serves HTTP"),
    ("anyhow", &["main"], "errors of the library have types"),
    ("clap", &["main"], "only main.rs knows the command line"),
];

/// Modules that only compute.
const PURE: [&str; 3] = ["domain", "placement", "ledger"];
/// What a computation does not do: I/O, waiting, time, chance.
const IMPURE: [&str; 14] = [
    "tokio",
    "tracing",
    "getrandom",
    "std::env",
    "std::fs",
    "std::io",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
];
const CLOCKS: [&str; 4] = ["Utc::now", "Local::now", "Uuid::new_v4", "Uuid::now_v7"];

const STATUSES: &str = "host/src/http/respond.rs";

pub(super) fn check(file: &File, uses: &[Use]) -> Vec<Finding> {
    let Some(module) = module(&file.path) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for path in uses {
        let mut find = |message: String| {
            findings.push(Finding {
                path: file.path.clone(),
                line: path.line,
                message,
            });
        };
        for (library, owners, why) in OWNERS {
            if begins(path, library) && !owners.contains(&module) {
                find(format!("`{library}`: {why}"));
            }
        }
        if PURE.contains(&module) && is_impure(path) {
            find(format!(
                "`{}`: {module}/ does no I/O; time and chance are handed in",
                path.segments.join("::")
            ));
        }
        if path.segments.iter().any(|segment| segment == "StatusCode") && file.path != STATUSES {
            find(format!("HTTP statuses are in {STATUSES} alone"));
        }
    }
    findings
}

fn is_impure(path: &Use) -> bool {
    let text = path.segments.join("::");
    IMPURE.iter().any(|prefix| begins(path, prefix))
        || CLOCKS.iter().any(|clock| text.ends_with(clock))
}

fn begins(path: &Use, prefix: &str) -> bool {
    prefix
        .split("::")
        .enumerate()
        .all(|(index, segment)| path.segment(index) == segment)
}

#[cfg(test)]
mod tests {
    use super::super::{File, paths};

    fn findings(path: &str, text: &str) -> usize {
        let file = File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        super::check(&file, &paths::of(&file).unwrap()).len()
    }

    #[test]
    fn libraries_stay_with_their_owners() {
        assert_eq!(findings("host/src/db/a.rs", "use redb::Database;"), 0);
        assert_eq!(findings("host/src/app/a.rs", "use redb::Database;"), 1);
        assert_eq!(findings("host/src/engine/a.rs", "use hyper::Uri;"), 0);
        assert_eq!(
            findings("host/src/engine/a.rs", "use hyper::server::conn;"),
            1
        );
        assert_eq!(
            findings(
                "host/src/app/a.rs",
                "fn f() -> anyhow::Result<()> { Ok(()) }"
            ),
            1
        );
    }

    #[test]
    fn pure_modules_ask_nobody_for_time_or_files() {
        assert_eq!(findings("host/src/domain/a.rs", "use std::fs::File;"), 1);
        assert_eq!(
            findings("host/src/ledger/a.rs", "fn f() { chrono::Utc::now(); }"),
            1
        );
        assert_eq!(
            findings("host/src/ledger/a.rs", "use std::time::Duration;"),
            0
        );
    }

    #[test]
    fn statuses_are_in_one_file() {
        assert_eq!(
            findings("host/src/http/respond.rs", "use http::StatusCode;"),
            0
        );
        assert_eq!(
            findings("host/src/http/router.rs", "use http::StatusCode;"),
            1
        );
    }
}
