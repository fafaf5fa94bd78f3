//! `cargo xtask tidy`: rules of this project that neither cargo nor clippy checks.

use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A longer file holds more than one thing.
const MAX_LINES: usize = 500;
/// Words that have another meaning here, and what to write instead.
const WORDS: [(&str, &str); 2] = [
    ("host machine", "node"),
    ("agent", "driver, guest or reconciler"),
];
/// Names of other projects' things that contain such a word.
const NAMES: [&str; 4] = ["user-agent", "user_agent", "ssh-agent", "guest-agent"];
/// Where these words may be those of others.
const OTHERS: [&str; 3] = ["xtask/", "tests/", "CONTRIBUTING.md"];
/// The files that know HTTP statuses: one of the server, and one of the gateway.
const STATUSES: [&str; 2] = ["/respond.rs", "pages/src/answer.rs"];

/// Checks every text file that is, or is about to be, in version control.
pub fn run(root: &Path) -> Result<()> {
    let mut list = Command::new("git");
    list.current_dir(root);
    list.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let output = list.output()?;
    ensure!(output.status.success(), "git ls-files: {}", output.status);
    let mut findings = Vec::new();
    for path in String::from_utf8(output.stdout)?.lines() {
        // Deleted files and binary files have no text.
        if let Ok(text) = fs::read_to_string(root.join(path)) {
            findings.extend(check(path, &text));
        }
    }
    findings.iter().for_each(|finding| println!("{finding}"));
    ensure!(findings.is_empty(), "{} findings", findings.len());
    Ok(())
}

/// The findings in one file, `PATH:LINE: MESSAGE`.
fn check(path: &str, text: &str) -> Vec<String> {
    let extension = path.rsplit('.').next().unwrap_or_default();
    if !["md", "rs", "sh", "toml", "wit", "yaml"].contains(&extension) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if ["rs", "wit"].contains(&extension) && lines > MAX_LINES {
        findings.push(format!(
            "{path}:{MAX_LINES}: {lines} lines, not {MAX_LINES}"
        ));
    }
    let is_ours = !OTHERS.iter().any(|place| path.starts_with(place));
    let may_know_statuses = !path.starts_with("host/")
        || !path.contains("/src/")
        || STATUSES.iter().any(|file| path.ends_with(file));
    for (number, line) in (1..).zip(text.lines()) {
        for (word, instead) in WORDS {
            if is_ours && has_word(line, word) {
                findings.push(format!("{path}:{number}: write {instead}, not {word}"));
            }
        }
        if extension == "rs" && !may_know_statuses && line.contains("StatusCode") {
            findings.push(format!(
                "{path}:{number}: HTTP statuses are in {}",
                STATUSES.join(" and ")
            ));
        }
    }
    findings
}

/// Whether a line has the word, in singular or plural.
fn has_word(line: &str, word: &str) -> bool {
    let mut line = line.to_lowercase();
    for name in NAMES {
        line = line.replace(name, "");
    }
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, rest) = line.split_at(at);
        let after = rest.strip_prefix(word).unwrap_or_default();
        let after = after.strip_prefix('s').unwrap_or(after);
        !before.ends_with(is_letter) && !after.starts_with(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINES, check};

    #[test]
    fn a_file_has_at_most_the_limit_of_lines() {
        assert!(check("a.rs", &"//\n".repeat(MAX_LINES)).is_empty());
        assert_eq!(check("a.rs", &"//\n".repeat(MAX_LINES + 1)).len(), 1);
        assert!(check("a.md", &"x\n".repeat(MAX_LINES + 1)).is_empty());
    }

    #[test]
    fn words_with_another_meaning_are_found() {
        let text = "// the host machine\n// An agent.\n// two agents\n";
        assert_eq!(check("host/src/a.rs", text).len(), 3);
        assert!(check("xtask/src/a.rs", text).is_empty());
        assert!(check("host/src/a.rs", "// the User-Agent header, a reagent\n").is_empty());
    }

    #[test]
    fn statuses_are_in_one_file() {
        let text = "use http::StatusCode;\n";
        assert!(check("host/src/http/respond.rs", text).is_empty());
        assert!(check("host/pages/src/answer.rs", text).is_empty());
        assert_eq!(check("host/pages/src/gateway.rs", text).len(), 1);
        assert!(check("host/tests/fuzz.rs", text).is_empty());
        assert_eq!(check("host/src/http/router.rs", text).len(), 1);
    }
}
