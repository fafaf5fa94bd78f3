//! The compilation of the embedded plugins for packages of the program.

use super::cache;
use super::config::CallLimits;
use super::embedded::EMBEDDED;
use super::error::LoadError;
use super::runtime;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use wasmtime::component::Component;

const DIRECTORY: u32 = 0o755;
const FILE: u32 = 0o644;

/// Compiles the embedded plugins into a directory, for every machine of this architecture. Valid files
/// stay, and those of earlier versions are removed.
pub fn precompile(directory: &Path) -> Result<(), LoadError> {
    let unwritable = |source: io::Error| LoadError::Read {
        path: directory.to_owned(),
        source,
    };
    let engine = runtime::engine(&CallLimits::default())?;
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY)
        .create(directory)
        .map_err(unwritable)?;
    for (name, wasm) in EMBEDDED {
        let path = directory.join(cache::file_name(&engine, name, wasm));
        if cache::code(&path).is_none() {
            let code = Component::from_binary(&engine, wasm)
                .and_then(|component| component.serialize())
                .map_err(|error| LoadError::Component {
                    plugin: (*name).to_owned(),
                    why: error.root_cause().to_string(),
                })?;
            cache::write(&path, &code)
                .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(FILE)))
                .map_err(unwritable)?;
        }
        cache::forget_others(directory, name, &path);
    }
    Ok(())
}
