//! The machine's package sources, as lines for another apt.

use anyhow::{Result, bail};
use std::fs;
use std::path::PathBuf;

/// The sources of binary packages of a suite, its updates and its security fixes.
pub(crate) fn of_machine(suite: &str) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let listed = fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<_> = listed.map(|entry| entry.path()).collect();
    files.push(PathBuf::from("/etc/apt/sources.list"));
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => lines.extend(one_line(&text, suite)),
            Some("sources") => lines.extend(stanzas(&text, suite)),
            _ => {}
        }
    }
    if lines.is_empty() {
        bail!("no package source of {suite} in /etc/apt");
    }
    Ok(lines)
}

/// The sources of another release of Debian, on the mirrors of Debian that the machine uses. Without such
/// mirrors there are none, and mmdebstrap uses its defaults.
pub fn of_release(suite: &str) -> Vec<String> {
    let own = super::platform().unwrap_or_default();
    let own = own.split('-').next().unwrap_or_default();
    let mut lines = Vec::new();
    for line in of_machine(own).unwrap_or_default() {
        let line = release(&line, own, suite);
        lines.extend(line.filter(|line| !lines.contains(line)));
    }
    lines
}

/// Converts the line of a release of Debian, or of its security fixes, for another release.
fn release(line: &str, own: &str, wanted: &str) -> Option<String> {
    let rest = line.strip_prefix("deb ")?;
    ["", "-security"].into_iter().find_map(|part| {
        let (mirror, _) = rest.split_once(&format!(" {own}{part} "))?;
        let debian = format!("/debian{part}");
        let is_debian = mirror.trim_end_matches('/').ends_with(&debian);
        is_debian.then(|| format!("deb {mirror} {wanted}{part} main"))
    })
}

/// `deb [options] URI suite components…`.
fn one_line(text: &str, suite: &str) -> Vec<String> {
    let entries = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("deb "));
    entries
        .filter(|line| line.split_whitespace().any(|word| belongs(word, suite)))
        .map(str::to_owned)
        .collect()
}

/// The deb822 form: `Key: value` in paragraphs.
fn stanzas(text: &str, suite: &str) -> Vec<String> {
    text.split("\n\n")
        .flat_map(|stanza| stanza_lines(stanza, suite))
        .collect()
}

fn stanza_lines(stanza: &str, suite: &str) -> Vec<String> {
    let field = |name: &str| {
        stanza
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map_or("", |(_, value)| value.trim())
    };
    let binary = field("Types").split_whitespace().any(|kind| kind == "deb");
    if !binary || field("Enabled").eq_ignore_ascii_case("no") {
        return Vec::new();
    }
    // A line can only name the file of a key, not contain the key.
    let key = field("Signed-By");
    let options = if key.starts_with('/') {
        format!("[signed-by={key}] ")
    } else {
        String::new()
    };
    let mut lines = Vec::new();
    for uri in field("URIs").split_whitespace() {
        for suite in field("Suites")
            .split_whitespace()
            .filter(|word| belongs(word, suite))
        {
            lines.push(format!(
                "deb {options}{uri} {suite} {}",
                field("Components")
            ));
        }
    }
    lines
}

/// Whether a word names the suite. Backports are excluded: they would replace its packages.
fn belongs(word: &str, suite: &str) -> bool {
    let rest = word.trim_end_matches('/').strip_prefix(suite);
    matches!(rest, Some("" | "-updates" | "-security" | "/updates"))
}

#[cfg(test)]
mod tests {
    use super::{one_line, release, stanzas};

    #[test]
    fn a_mirror_of_debian_serves_every_release() {
        let of_next = |line: &str| release(line, "suite", "next");
        assert_eq!(
            of_next("deb [signed-by=/k.gpg] http://mirror.example/debian suite main").as_deref(),
            Some("deb [signed-by=/k.gpg] http://mirror.example/debian next main")
        );
        assert_eq!(
            of_next("deb http://mirror.example/debian-security/ suite-security main x").as_deref(),
            Some("deb http://mirror.example/debian-security/ next-security main")
        );
        assert_eq!(of_next("deb http://mirror.example/ubuntu suite main"), None);
        assert_eq!(
            of_next("deb http://mirror.example/debian suite-updates main"),
            None
        );
    }

    #[test]
    fn both_forms_give_the_same_lines() {
        let list = "# a comment\ndeb [signed-by=/k.gpg] http://mirror.example/debian suite main\n\
                    deb-src http://mirror.example/debian suite main\n\
                    deb http://mirror.example/debian suite-backports main\n";
        let sources = "Types: deb deb-src\n# a comment\nURIs: http://mirror.example/debian\n\
                       Suites: suite suite-backports\nComponents: main\nSigned-By: /k.gpg\n\n\
                       Types: deb\nEnabled: no\nURIs: http://other.example\nSuites: suite\nComponents: x\n";
        let expected = ["deb [signed-by=/k.gpg] http://mirror.example/debian suite main"];
        assert_eq!(one_line(list, "suite"), expected);
        assert_eq!(stanzas(sources, "suite"), expected);
    }
}
