//! The cache of compiled components.
//!
//! A compiled component is native code. The cache reads only complete files that this host wrote for
//! this component and this engine. Their directory is one that only this user can write to.

use super::config::CacheUse;
use sha2::{Digest, Sha256};
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tracing::{debug, warn};
use wasmtime::Engine;
use wasmtime::component::Component;

/// Length of the digest at the start of a file, bytes.
const DIGEST: usize = 32;

/// The directory, if only this user can write to it.
#[derive(Debug)]
pub struct Cache {
    directory: Option<PathBuf>,
    keeps: bool,
}

impl Cache {
    /// Opens or makes the directory. If others can write to it, the cache is off, with a warning if it was
    /// to be kept.
    pub fn open(wanted: &CacheUse) -> Self {
        match wanted {
            CacheUse::Keep(directory) => {
                let trusted = trusted(directory);
                if let Err(error) = &trusted {
                    warn!(directory = %directory.display(), %error, "compiled plugins are not kept");
                }
                Self {
                    directory: trusted.is_ok().then(|| directory.clone()),
                    keeps: true,
                }
            }
            CacheUse::Read(directory) => Self {
                directory: is_own(directory).then(|| directory.clone()),
                keeps: false,
            },
        }
    }

    /// The compiled component, read from the directory or compiled and stored there.
    pub fn component(
        &self,
        engine: &Engine,
        name: &str,
        wasm: &[u8],
    ) -> wasmtime::Result<Component> {
        let Some(directory) = &self.directory else {
            return Component::from_binary(engine, wasm);
        };
        let path = directory.join(format!("{name}-{}.cwasm", key(engine, wasm)));
        if let Some(component) = read(engine, &path) {
            return Ok(component);
        }
        let component = Component::from_binary(engine, wasm)?;
        if !self.keeps {
            return Ok(component);
        }
        if let Err(error) = component.serialize().and_then(|code| {
            Ok(wharf_secure_fs::write(
                &path,
                &[&Sha256::digest(&code), &code],
            )?)
        }) {
            warn!(file = %path.display(), %error, "a compiled plugin cannot be kept");
        }
        forget_others(directory, name, &path);
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

fn read(engine: &Engine, path: &Path) -> Option<Component> {
    let file = fs::read(path).ok()?;
    let (digest, code) = file.split_at_checked(DIGEST)?;
    if Sha256::digest(code).as_slice() != digest {
        debug!(file = %path.display(), "a cached component is damaged and is compiled again");
        return None;
    }
    // SAFETY: the bytes come whole from a file that `component` wrote by `Component::serialize`. The
    // file's name has this engine's compatibility hash, and `trusted` or `is_own` found that only this
    // user and root can write to its directory.
    #[allow(
        unsafe_code,
        reason = "deserialising native code is the point of the cache; see SAFETY"
    )]
    let component = unsafe { Component::deserialize(engine, code) };
    component.ok()
}

/// Removes the files of the plugin's earlier versions.
fn forget_others(directory: &Path, name: &str, keep: &Path) {
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

/// The file name of a component that is compiled for an engine.
fn key(engine: &Engine, wasm: &[u8]) -> String {
    let mut digest = Digester(Sha256::new());
    digest.0.update(Sha256::digest(wasm));
    engine.precompile_compatibility_hash().hash(&mut digest);
    digest
        .0
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
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
