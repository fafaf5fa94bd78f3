//! Dependencies between the modules of `host/` point one way.

use super::paths::Use;
use super::{File, Finding};

/// A module and those it may use, beside itself.
const MAY_USE: [(&str, &[&str]); 14] = [
    ("log", &[]),
    ("private", &[]),
    ("domain", &[]),
    ("placement", &["domain"]),
    ("ledger", &["domain"]),
    ("config", &["domain"]),
    ("schema", &["domain"]),
    ("engine", &["domain"]),
    ("plugin", &["domain", "engine", "private"]),
    ("db", &["domain", "placement", "ledger", "private"]),
    (
        "app",
        &[
            "domain",
            "placement",
            "ledger",
            "plugin",
            "db",
            "config",
            "private",
        ],
    ),
    (
        "reconciler",
        &[
            "domain",
            "placement",
            "ledger",
            "plugin",
            "db",
            "app",
            "config",
        ],
    ),
    ("api", &["domain", "schema", "app"]),
    ("http", &["domain", "schema", "app", "api", "config"]),
];

/// What puts it all together.
const TOP: [&str; 3] = ["lib", "main", "server"];

pub(super) fn check(file: &File, uses: &[Use]) -> Vec<Finding> {
    let Some(module) = module(&file.path) else {
        return Vec::new();
    };
    let find = |line, message| Finding {
        path: file.path.clone(),
        line,
        message,
    };
    if TOP.contains(&module) {
        return Vec::new();
    }
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == module) else {
        return vec![find(
            1,
            format!("`{module}` has no place in the dependency direction yet"),
        )];
    };
    let modules = || MAY_USE.iter().map(|(name, _)| *name).chain(TOP);
    uses.iter()
        .filter(|path| path.segment(0) == "crate")
        .map(|path| (path.line, path.segment(1)))
        .filter(|(_, used)| *used != module && modules().any(|name| name == *used))
        .filter(|(_, used)| !allowed.contains(used))
        .map(|(line, used)| find(line, format!("`{module}` must not use `{used}`")))
        .collect()
}

/// The top-level module of `host/` that a file belongs to.
pub(super) fn module(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("host/src/")?;
    inside.split('/').next()?.split('.').next()
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
    fn only_downward_uses_pass() {
        assert_eq!(
            findings("host/src/app/a.rs", "use crate::{db::Db, domain::Name};"),
            0
        );
        assert_eq!(
            findings("host/src/domain/a.rs", "use crate::{db::Db, domain::Name};"),
            1
        );
        assert_eq!(
            findings("host/src/db/a.rs", "fn f() { crate::http::serve() }"),
            1
        );
        assert_eq!(findings("host/src/new.rs", ""), 1);
        assert_eq!(
            findings("host/src/server.rs", "use crate::http::Server;"),
            0
        );
        assert_eq!(findings("xtask/src/a.rs", "use crate::http::Client;"), 0);
    }
}
