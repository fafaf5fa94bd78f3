//! `cargo xtask tidy`: the rules of the house that a compiler does not know.

mod direction;
mod length;
mod ownership;
mod paths;
mod words;

use crate::process::output;
use crate::{say, workspace};
use anyhow::{Context, Result, bail};
use std::fmt;
use std::process::Command;

/// A text file of the workspace.
#[derive(Debug)]
pub struct File {
    /// Relative to the workspace.
    pub path: String,
    /// Its content.
    pub text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// Something that is against a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file's path.
    pub path: String,
    /// From 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Checks the workspace; an error if there are findings.
pub fn run() -> Result<()> {
    let files = files()?;
    let findings = check(&files)?;
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} findings", findings.len());
    }
    say::step(&format!("{} files are tidy.", files.len()));
    Ok(())
}

/// The findings in these files.
pub fn check(files: &[File]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(length::check(file));
        findings.extend(words::check(file));
        if file.is_rust() {
            let uses = paths::of(file).with_context(|| file.path.clone())?;
            findings.extend(direction::check(file, &uses));
            findings.extend(ownership::check(file, &uses));
        }
    }
    Ok(findings)
}

/// What is, or is about to be, in version control.
fn files() -> Result<Vec<File>> {
    const KINDS: [&str; 6] = ["md", "rs", "sh", "toml", "wit", "yaml"];
    let mut list = Command::new("git");
    list.current_dir(workspace::root());
    list.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let paths = output(&mut list)?;
    let wanted = |path: &&str| {
        path.rsplit('.')
            .next()
            .is_some_and(|kind| KINDS.contains(&kind))
    };
    let mut files = Vec::new();
    for path in paths.lines().filter(wanted) {
        // Deleted and not yet committed: nothing to check.
        if let Ok(text) = std::fs::read_to_string(workspace::root().join(path)) {
            files.push(File {
                path: path.to_owned(),
                text,
            });
        }
    }
    Ok(files)
}
