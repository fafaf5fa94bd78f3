//! One word, one meaning (ARCHITECTURE.md): the part of it that a program can see.

use super::{File, Finding};

/// What is not written, and what to write instead.
const WORDS: [(&str, &str); 3] = [
    ("host machine", "a machine that runs instances is a node"),
    ("agent", "say driver, guest or reconciler, whichever it is"),
    ("agents", "say driver, guest or reconciler, whichever it is"),
];
/// Where these words are ours; elsewhere they may be a library's.
const OURS: [&str; 6] = [
    "host/",
    "plugins/",
    "schemas/",
    "wit/",
    "README.md",
    "ARCHITECTURE.md",
];
/// `Store` is the WebAssembly runtime's; persistence is the db.
const STORE: &str = "a guest store belongs in plugin/; persistence is called db";

/// Names of other people's things.
const PROPER_NAMES: [&str; 4] = ["user-agent", "user_agent", "ssh-agent", "guest-agent"];

pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ours = OURS.iter().any(|place| file.path.starts_with(place));
    for (number, line) in file.text.lines().enumerate() {
        let mut find = |message: String| {
            findings.push(Finding {
                path: file.path.clone(),
                line: number + 1,
                message,
            });
        };
        let mut text = line.to_lowercase();
        for name in PROPER_NAMES {
            text = text.replace(name, "");
        }
        for (word, instead) in WORDS {
            if ours && has_word(&text, word) {
                find(format!("{word:?}: {instead}"));
            }
        }
        let db_file =
            file.path.starts_with("host/src/") && !file.path.starts_with("host/src/plugin/");
        if db_file
            && line
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(names_store)
        {
            find(STORE.to_owned());
        }
    }
    findings
}

/// Identifiers only: as a verb in a sentence the word is fine.
fn names_store(word: &str) -> bool {
    word.ends_with("Store") || word.ends_with("_store") || word.starts_with("store_")
}

fn has_word(text: &str, word: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (text.get(..at), text.get(at + word.len()..));
        !is_letter(before.and_then(|text| text.chars().next_back()))
            && !is_letter(after.and_then(|text| text.chars().next()))
    })
}

#[cfg(test)]
mod tests {
    use super::{File, check};

    fn findings(path: &str, text: &str) -> usize {
        check(&File {
            path: path.to_owned(),
            text: text.to_owned(),
        })
        .len()
    }

    #[test]
    fn words_with_another_meaning_are_found() {
        assert_eq!(
            findings("host/src/a.rs", "// the host machine\n// an agent\n"),
            2
        );
        assert_eq!(
            findings("host/src/a.rs", "// the User-Agent header, a reagent\n"),
            0
        );
        assert_eq!(findings("host/src/db/a.rs", "struct RowStore;"), 1);
        assert_eq!(findings("host/src/plugin/a.rs", "use wasmtime::Store;"), 0);
    }
}
