//! The description of the GPU in the Container Device Interface.

use super::driver::Gpu;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The directories of the machine's own descriptions.
const DIRECTORIES: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];
/// The kind of device.
const KIND: &str = "nvidia.com/gpu";
/// The name of the first GPU, in ours and in those of `nvidia-ctk`.
pub(crate) const DEVICE: &str = "nvidia.com/gpu=0";

/// The machine's own description, if it has one.
pub(crate) fn of_machine() -> Option<PathBuf> {
    let entries = DIRECTORIES.iter().filter_map(|dir| fs::read_dir(dir).ok());
    let mut files = entries.flatten().flatten().map(|entry| entry.path());
    files.find(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(KIND)))
}

/// Puts a description into an engine's directory: the machine's own, or a new one. Returns which.
pub(crate) fn provide(gpu: &Gpu, own: Option<&Path>, directory: &Path) -> Result<String> {
    fs::create_dir_all(directory)?;
    if let Some(own) = own {
        let name = own.file_name().context("a file without a name")?;
        fs::copy(own, directory.join(name))?;
        return Ok(format!("the machine's own, {}", own.display()));
    }
    let text = description(gpu);
    fs::write(directory.join("nvidia.json"), text.to_string())?;
    Ok(format!(
        "a new one with {} and {} files of the driver",
        gpu.describe(),
        gpu.files.len()
    ))
}

/// The libraries are mounted where the loader of a container looks without a cache, so that no hook has
/// to update one.
fn description(gpu: &Gpu) -> Value {
    let nodes =
        |of: &[&Path]| -> Vec<_> { of.iter().map(|path| json!({ "path": path })).collect() };
    let mut shared = gpu.nodes();
    shared.retain(|node| *node != gpu.node);
    let mounts: Vec<_> = gpu
        .files
        .iter()
        .map(|(inside, file)| {
            json!({
                "hostPath": file, "containerPath": inside,
                "options": ["ro", "nosuid", "nodev", "bind"],
            })
        })
        .collect();
    json!({
        "cdiVersion": "0.5.0",
        "kind": KIND,
        "devices": [{ "name": "0", "containerEdits": { "deviceNodes": nodes(&[&gpu.node]) } }],
        "containerEdits": { "deviceNodes": nodes(&shared), "mounts": mounts },
    })
}
