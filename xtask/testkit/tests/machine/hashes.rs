//! Every package that a recipe installs from a registry has a hash. apt checks the signatures of
//! Debian's packages.

use std::fs;
use std::path::{Path, PathBuf};
use wharf_testkit::workspace::root;

/// All files of the recipes.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// The requirements of a list without a hash.
fn unhashed(list: &str) -> Vec<String> {
    let joined = list.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter(|line| !line.contains("--hash=sha256:"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_package_of_the_images_has_a_hash() {
    let all = files(&root().join("plugins/flavors-standard/images"));
    let mut lists = 0;
    for path in &all {
        let Ok(text) = fs::read_to_string(path) else {
            continue;
        };
        let is_list = text
            .lines()
            .any(|line| line.contains("==") && !line.contains(' '))
            || text.contains("--hash=sha256:");
        let is_text = path.extension().is_some_and(|extension| extension == "txt");
        if is_list && is_text {
            lists += 1;
            let left = unhashed(&text);
            assert!(left.is_empty(), "{}: {left:?}", path.display());
        }
        // Installations name a list that has hashes. Texts for users of an instance install nothing.
        for command in text
            .replace("\\\n", " ")
            .lines()
            .filter(|line| !line.trim().starts_with('#'))
        {
            if command.contains("pip install") && !is_text {
                let place = path.display();
                assert!(command.contains("--require-hashes"), "{place}: {command}");
            }
        }
    }
    assert!(lists >= 10, "{lists} lists of packages");
}

#[test]
fn a_list_without_a_hash_is_found() {
    let list = "a==1 \\\n    --hash=sha256:00\n# b\nc==2 ; python_version < '3'\n";
    assert_eq!(unhashed(list), ["c==2 ; python_version < '3'"]);
}
