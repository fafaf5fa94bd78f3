//! The files of an installation.

use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use wharf_testkit::process::{output, run};
use wharf_testkit::workspace::{root, wharf_binary};

/// Scripts that complete commands: the shell, and the file below the prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/wharf"),
    ("zsh", "share/zsh/vendor-completions/_wharf"),
    ("fish", "share/fish/vendor_completions.d/wharf.fish"),
];

/// Writes the files below `staged`, for use below `prefix`: program, compiled plugins, recipes of images,
/// manual pages, completions, unit and documentation.
pub fn write(staged: &Path, prefix: &str) -> Result<()> {
    let program = staged.join("bin/wharf");
    copy(&wharf_binary(), &program, 0o755)?;
    run(Command::new("strip").arg(&program))?;
    run(Command::new(&program)
        .args(["plugin", "precompile"])
        .arg(staged.join("lib/wharf/plugins")))?;
    copy_tree(
        &root().join("plugins/flavors-standard/images"),
        &staged.join("share/wharf/images"),
    )?;
    let manual = staged.join("share/man/man1");
    run(Command::new(&program).arg("manual").arg(&manual))?;
    let mut pages: Vec<PathBuf> = fs::read_dir(&manual)?.flatten().map(|e| e.path()).collect();
    pages.sort();
    run(Command::new("gzip").args(["-9", "-n"]).args(&pages))?;
    for (shell, file) in COMPLETIONS {
        let script = output(Command::new(&program).args(["completions", shell]))?;
        let own = program.to_string_lossy().into_owned();
        put(
            &staged.join(file),
            &script.replace(&own, &format!("{prefix}/bin/wharf")),
        )?;
    }
    let unit = fs::read_to_string(root().join("docs/wharf.service"))?;
    let unit = unit.replace("/usr/local/bin/wharf", &format!("{prefix}/bin/wharf"));
    put(&staged.join("lib/systemd/system/wharf.service"), &unit)?;
    documentation(&staged.join("share/doc/wharf"))
}

/// The configuration of a new installation.
pub fn configuration() -> PathBuf {
    root().join("xtask/dist/debian/wharf.toml")
}

fn documentation(directory: &Path) -> Result<()> {
    for file in ["README.md", "SECURITY.md", "CHANGELOG.md"] {
        copy(&root().join(file), &directory.join(file), 0o644)?;
    }
    copy(&root().join("LICENSE"), &directory.join("copyright"), 0o644)?;
    copy_tree(&root().join("docs"), &directory.join("docs"))
}

/// Copies a directory with its modes.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let parent = to.parent().context("a directory without a parent")?;
    fs::create_dir_all(parent)?;
    run(Command::new("cp").arg("-r").arg(from).arg(to))
}

/// Copies a file and sets its mode.
pub fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let parent = to.parent().context("a file without a directory")?;
    fs::create_dir_all(parent)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

/// Writes a file that everyone can read.
pub fn put(path: &Path, text: &str) -> Result<()> {
    let parent = path.parent().context("a file without a directory")?;
    fs::create_dir_all(parent)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(fs::set_permissions(
        path,
        fs::Permissions::from_mode(0o644),
    )?)
}
