//! Engines of killed runs. Each engine notes its options below `/run`, so that a later run of any
//! directory can end it.

use super::kind::Kind;
use super::layout::Layout;
use super::private::Options;
use super::rules::Allowed;
use anyhow::Result;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The note's file, in the directory of the run.
const NOTE: &str = "options.json";

/// Notes the options of an engine that is about to start.
pub(super) fn note(layout: &Layout, options: &Options) -> Result<()> {
    let note = json!({
        "kind": options.kind.name(),
        "dir": layout.dir,
        "disk_gib": options.disk_gib,
        "disposable": options.disposable,
        "owner": std::process::id(),
    });
    Ok(fs::write(layout.run.join(NOTE), note.to_string())?)
}

/// Lists the engines whose runs have ended without removing them, except that of the directory `own`.
pub(super) fn list(own: Option<&Path>) -> Vec<(PathBuf, Options)> {
    let own = own.and_then(|dir| dir.canonicalize().ok());
    let entries = fs::read_dir("/run").into_iter().flatten().flatten();
    let runs = entries.map(|entry| entry.path());
    let all = runs.filter_map(|run| Some((run.clone(), abandoned(&run)?)));
    all.filter(|(_, options)| Some(&options.dir) != own.as_ref())
        .collect()
}

fn abandoned(run: &Path) -> Option<Options> {
    let name = run.file_name()?.to_str()?;
    name.strip_prefix("wharf-")?;
    let note: Value = serde_json::from_str(&fs::read_to_string(run.join(NOTE)).ok()?).ok()?;
    let dir = PathBuf::from(note.get("dir")?.as_str()?);
    // Without its directory an engine has no lock, and its data are lost.
    let is_lost = !dir.is_dir();
    let owner = note.get("owner").and_then(Value::as_u64);
    let lives = |owner: u64| Path::new("/proc").join(owner.to_string()).exists();
    if is_lost && owner.is_none_or(lives) {
        return None;
    }
    // A living run holds the lock.
    drop(Layout::at(&dir).ok()?.lock().ok()?);
    let kind = note.get("kind")?.as_str()?;
    Some(Options {
        kind: Kind::ALL.into_iter().find(|known| known.name() == kind)?,
        dir,
        disk_gib: note.get("disk_gib").and_then(Value::as_u64),
        disposable: is_lost || note.get("disposable")?.as_bool()?,
        allowed: Allowed::default(),
        tls: None,
    })
}
