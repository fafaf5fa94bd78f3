//! The files that decide what is in the images, and the hash of those that passed last.

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use wharf_testkit::workspace::root;

/// Recipes and the flavors' plugin, the program that makes the images, and these tests.
const SUBJECTS: [&str; 3] = ["plugins/flavors-standard", "host/images", "tests/flavors"];
/// The committed file with the hash of the last pass.
const PASSED: &str = "tests/flavors/passed.sha256";

/// The hash of all files that the tests of flavors depend on.
pub fn current() -> Result<String> {
    let mut files = Vec::new();
    for subject in SUBJECTS {
        list(&root().join(subject), &mut files)?;
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files.iter().filter(|file| **file != root().join(PASSED)) {
        let content = fs::read(file).with_context(|| format!("{}", file.display()))?;
        let is_program = fs::metadata(file)?.permissions().mode() & 0o100 != 0;
        let name = file.strip_prefix(root())?.display();
        hash.update(format!("{name} {is_program} {}\n", content.len()));
        hash.update(content);
    }
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("{}", directory.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Whether these files have passed.
pub fn has_passed(hash: &str) -> bool {
    fs::read_to_string(root().join(PASSED)).is_ok_and(|passed| passed.trim() == hash)
}

/// Notes that these files have passed, for the next commit.
pub fn note(hash: &str) -> Result<()> {
    fs::write(root().join(PASSED), format!("{hash}\n"))?;
    eprintln!("{PASSED} has the hash of this pass; commit it with the change.");
    Ok(())
}
