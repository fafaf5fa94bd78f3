//! The files of compiled components.
//!
//! A compiled component is native code. Only complete files for this component and this engine are
//! read, from directories that only this user and root can write to: a cache of this server's own, and
//! the files that came with the program.

use super::config::CacheUse;
use sha2::{Digest, Sha256};
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracing::{info, warn};
use wasmtime::Engine;
use wasmtime::component::Component;
use wharf_secure_fs::{Untrusted, check_own};

/// Length of the digest at the start of a file, bytes.
const DIGEST: usize = 32;
/// Directories of an installation that are checked: `plugins`, `wharf` and `lib`. The program is below
/// their parent, so an account that can change that one can replace the program.
const CHECKED: usize = 3;

/// The directories that can be trusted.
#[derive(Debug)]
pub struct Cache {
    /// The directories to read.
    sources: Vec<PathBuf>,
    /// The directory for newly compiled components.
    kept: Option<PathBuf>,
}

impl Cache {
    /// Opens or makes the cache, and opens the directory of the program's own files. A directory that
    /// others can write to is not used, with a warning.
    pub fn open(wanted: &CacheUse, shipped: Option<&Path>) -> Self {
        let mut cache = Self {
            sources: Vec::new(),
            kept: None,
        };
        match wanted {
            CacheUse::Keep(directory) => match trusted(directory) {
                Ok(()) => {
                    cache.sources.push(directory.clone());
                    cache.kept = Some(directory.clone());
                }
                Err(error) => {
                    warn!(directory = %directory.display(), %error, "compiled plugins are not kept");
                }
            },
            CacheUse::Read(directory) if is_own(directory) => cache.sources.push(directory.clone()),
            CacheUse::Read(_) => {}
        }
        if let Some(directory) = shipped.filter(|directory| directory.exists()) {
            match directory.ancestors().take(CHECKED).try_for_each(check_own) {
                Ok(()) => cache.sources.push(directory.to_owned()),
                Err(error) => warn!(%error, "the compiled plugins of the program are not used"),
            }
        }
        cache
    }

    /// Whether files are read from a directory.
    #[cfg(test)]
    pub fn has_source(&self, directory: &Path) -> bool {
        self.sources.iter().any(|source| source == directory)
    }

    /// The compiled component, from a file or compiled now.
    pub fn component(
        &self,
        engine: &Engine,
        name: &str,
        wasm: &[u8],
    ) -> wasmtime::Result<Component> {
        let file = file_name(engine, name, wasm);
        let mut files = self.sources.iter().map(|source| source.join(&file));
        let component = match files.find_map(|path| read(engine, &path)) {
            Some(component) => component,
            None => self.compile(engine, name, wasm, &file)?,
        };
        if let Some(kept) = &self.kept {
            forget_others(kept, name, &kept.join(&file));
        }
        Ok(component)
    }

    fn compile(
        &self,
        engine: &Engine,
        name: &str,
        wasm: &[u8],
        file: &str,
    ) -> wasmtime::Result<Component> {
        let begin = Instant::now();
        let component = Component::from_binary(engine, wasm)?;
        let ms = begin.elapsed().as_millis() as u64;
        info!(plugin = name, ms, "a plugin was compiled");
        if let Some(kept) = &self.kept {
            let path = kept.join(file);
            let written = component
                .serialize()
                .and_then(|code| Ok(write(&path, &code)?));
            if let Err(error) = written {
                warn!(file = %path.display(), %error, "a compiled plugin cannot be kept");
            }
        }
        Ok(component)
    }
}

/// Makes the directory if it is missing, and checks that only this user can write to it.
fn trusted(directory: &Path) -> io::Result<()> {
    wharf_secure_fs::make_dir(directory)?;
    let metadata = fs::symlink_metadata(directory)?;
    // A new file has the owner of this process, which std has no other way to ask for.
    let probe = directory.join(format!(".probe-{}", std::process::id()));
    let user = wharf_secure_fs::open(&probe)?.metadata()?.uid();
    fs::remove_file(&probe)?;
    if !metadata.is_dir() || metadata.uid() != user {
        return Err(io::Error::other("not a directory of this user's own"));
    }
    if metadata.mode() & 0o077 != 0 {
        if fs::read_dir(directory)?.next().is_some() {
            return Err(io::Error::other(
                "others have access to it; empty it, or chmod it to 0700 if its files are yours",
            ));
        }
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Whether a directory exists that only this user can write to. An account that can rename it could put
/// another one in its place, so the parent is checked too.
fn is_own(directory: &Path) -> bool {
    let is_dir = fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir());
    let parent = directory.parent().map(wharf_secure_fs::check_own);
    is_dir
        && parent.is_some_and(|checked| checked.is_ok())
        && wharf_secure_fs::check_secret(directory).is_ok()
}

/// Reads a component from a directory that `Cache::open` passed.
fn read(engine: &Engine, path: &Path) -> Option<Component> {
    let code = code(path)?;
    // SAFETY: the bytes are whole, and only this user and root can have written them: `code` checked
    // the file, and `Cache::open` its directory. They are trusted to place only files that `write`
    // made from the output of `Component::serialize`. The file's name has the hash of the component
    // and the compatibility hash of this engine.
    #[allow(
        unsafe_code,
        reason = "deserialising native code is the point of these files; see SAFETY"
    )]
    let component = unsafe { Component::deserialize(engine, code) };
    component.ok()
}

/// The content of a complete file that only this user and root can change.
pub fn code(path: &Path) -> Option<Vec<u8>> {
    match check_own(path) {
        Ok(()) => {}
        Err(Untrusted::Unknown { source, .. }) if source.kind() == ErrorKind::NotFound => {
            return None;
        }
        Err(error) => {
            warn!(%error, "a compiled plugin is not used");
            return None;
        }
    }
    let mut digest = fs::read(path).ok()?;
    let code = digest.split_off(DIGEST.min(digest.len()));
    if Sha256::digest(&code).as_slice() != digest {
        warn!(file = %path.display(), "a compiled plugin is damaged");
        return None;
    }
    Some(code)
}

/// Writes a file for [`code`], atomically.
pub fn write(path: &Path, code: &[u8]) -> io::Result<()> {
    wharf_secure_fs::write(path, &[&Sha256::digest(code), code])
}

/// Removes the files of the plugin's earlier versions.
pub fn forget_others(directory: &Path, name: &str, keep: &Path) {
    let prefix = format!("{name}-");
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|file| {
            file.strip_prefix(&prefix)
                .is_some_and(|rest| rest.len() == 64 + ".cwasm".len() && rest.ends_with(".cwasm"))
        });
        if ours && entry.path() != keep {
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// The name of the file of a component that is compiled for an engine.
pub fn file_name(engine: &Engine, name: &str, wasm: &[u8]) -> String {
    let mut digest = Digester(Sha256::new());
    digest.0.update(Sha256::digest(wasm));
    engine.precompile_compatibility_hash().hash(&mut digest);
    let digest = digest.0.finalize();
    let key: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name}-{key}.cwasm")
}

/// A hasher that feeds SHA-256: 64 bits are too few to trust code by.
struct Digester(Sha256);

impl Hasher for Digester {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest
            .iter()
            .take(8)
            .fold(0, |value, byte| (value << 8) | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::Cache;
    use crate::CacheUse;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    #[test]
    fn compiled_plugins_of_the_program_are_in_directories_that_others_cannot_change() {
        let scratch = std::env::temp_dir().join(format!("wharf-cache-{}", std::process::id()));
        let plugins = scratch.join("lib/wharf/plugins");
        std::fs::create_dir_all(&plugins).unwrap();
        let none = CacheUse::Read(scratch.join("none"));
        let set_mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let checked = || plugins.ancestors().take(3);
        checked().for_each(|path| set_mode(path, 0o755));
        assert!(Cache::open(&none, Some(&plugins)).has_source(&plugins));
        for path in checked() {
            set_mode(path, 0o775);
            assert!(!Cache::open(&none, Some(&plugins)).has_source(&plugins));
            set_mode(path, 0o755);
        }
        std::fs::remove_dir_all(scratch).unwrap();
    }
}
