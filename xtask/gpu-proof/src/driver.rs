//! The GPUs of the machine: device nodes, and the files of NVIDIA's driver.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use wharf_testkit::process::{command, find, output};

/// The library that every driver has.
const CUDA: &str = "libcuda.so.1";
/// The beginnings of the names of the libraries that compute needs.
const LIBRARIES: [&str; 7] = [
    "libcuda.so.",
    "libcudadebugger.so.",
    "libnvidia-cfg.so.",
    "libnvidia-gpucomp.so.",
    "libnvidia-ml.so.",
    "libnvidia-nvvm",
    "libnvidia-ptxjitcompiler.so.",
];
/// Directories of drivers that ldconfig may not know.
const DIRECTORIES: [&str; 3] = [
    "/usr/local/nvidia/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
];
/// The program of a driver in a directory that PATH may not name.
const SMI: &str = "/usr/local/nvidia/bin/nvidia-smi";
/// Device nodes that all GPUs share.
const SHARED: [&str; 3] = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"];
/// The device of `/dev/null`.
const HARMLESS: [&str; 3] = ["c", "1", "3"];
/// The model of the harmless device, and the program that lists it.
const FAKE: &str = "A100";
const FAKE_SMI: &str = "#!/bin/sh\necho 'GPU 0: A100 (UUID: none)'\n";
/// The path of the program inside.
const SMI_INSIDE: &str = "/usr/bin/nvidia-smi";

/// A GPU, and what a container needs to use it.
pub(crate) struct Gpu {
    /// The model as in Wharf's configuration.
    pub model: String,
    /// The version of the driver, if there is one.
    pub driver: Option<String>,
    /// The device node of this GPU.
    pub node: PathBuf,
    /// The device nodes that it shares with others.
    pub shared: Vec<PathBuf>,
    /// Files of the driver by their paths inside.
    pub files: BTreeMap<PathBuf, PathBuf>,
    /// Whether the device node is one of [`Self::fake`].
    is_fake: bool,
}

impl Gpu {
    /// The first GPU of the machine. `scratch` is a new directory.
    pub fn first(scratch: &Path) -> Result<Self> {
        let dev = Path::new("/dev");
        let node = dev.join("nvidia0");
        ensure!(is_device(&node), "there is no /dev/nvidia0");
        let libraries = libraries().context("the driver's libraries are not found")?;
        let smi = find("nvidia-smi").unwrap_or_else(|| PathBuf::from(SMI));
        let mut query = command(&smi.to_string_lossy());
        query.args(["--query-gpu=name,driver_version", "--format=csv,noheader"]);
        // Other libraries of that directory may be of another release than this program's.
        fs::create_dir(scratch)?;
        for (name, file) in &libraries {
            symlink(file, scratch.join(name))?;
        }
        query.env("LD_LIBRARY_PATH", scratch);
        let table = output(&mut query)?;
        let (name, driver) = table
            .lines()
            .next()
            .and_then(|line| line.split_once(", "))
            .with_context(|| format!("nvidia-smi answers {table:?}"))?;
        let inside = PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH));
        let mut files: BTreeMap<_, _> = libraries
            .into_iter()
            .map(|(name, file)| (inside.join(name), file))
            .collect();
        files.insert(SMI_INSIDE.into(), smi.canonicalize()?);
        Ok(Self {
            model: model(name),
            driver: Some(driver.trim().to_owned()),
            node,
            shared: SHARED.map(|name| dev.join(name)).into(),
            files,
            is_fake: false,
        })
    }

    /// A device node like `/dev/null`, with a program in place of the driver's.
    pub fn fake(scratch: &Path) -> Result<Self> {
        fs::create_dir(scratch)?;
        let smi = scratch.join("nvidia-smi");
        fs::write(&smi, FAKE_SMI)?;
        fs::set_permissions(&smi, Permissions::from_mode(0o755))?;
        let node = PathBuf::from(format!("/dev/wharf-gpu-proof-{}", std::process::id()));
        let mut mknod = command("mknod");
        output(mknod.arg("--mode=666").arg(&node).args(HARMLESS))?;
        Ok(Self {
            model: FAKE.to_owned(),
            driver: None,
            node,
            shared: Vec::new(),
            files: BTreeMap::from([(SMI_INSIDE.into(), smi)]),
            is_fake: true,
        })
    }

    /// The device nodes that exist.
    pub fn nodes(&self) -> Vec<&Path> {
        let all = self.shared.iter().chain([&self.node]);
        let mut nodes: Vec<_> = all.map(PathBuf::as_path).collect();
        nodes.retain(|node| is_device(node));
        nodes.sort_unstable();
        nodes
    }

    /// The device nodes with their numbers and modes, for people.
    pub fn describe(&self) -> String {
        let describe = |node: &&Path| {
            let found = fs::metadata(node).ok()?;
            let (number, mode) = (found.rdev(), found.mode() & 0o777);
            Some(format!(
                "{} ({}:{}, {mode:o})",
                node.display(),
                (number >> 8) & 0xfff,
                number & 0xff
            ))
        };
        let nodes: Vec<_> = self.nodes().iter().filter_map(describe).collect();
        nodes.join(", ")
    }

    /// Copies the files of the driver, for an engine whose root is another one.
    pub fn copy_files(&mut self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory)?;
        for file in self.files.values_mut() {
            let copy = directory.join(file.file_name().context("a file without a name")?);
            if !copy.exists() {
                fs::copy(&*file, &copy)?;
            }
            *file = copy;
        }
        Ok(())
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if self.is_fake {
            let _ = fs::remove_file(&self.node);
        }
    }
}

fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_char_device())
}

/// The libraries by their names, links included.
fn libraries() -> Option<BTreeMap<String, PathBuf>> {
    let known = output(command("ldconfig").arg("-p")).unwrap_or_default();
    let of_ldconfig = known
        .lines()
        .filter(|line| line.trim().starts_with(CUDA) && !line.contains("(libc6)"))
        .filter_map(|line| Some(PathBuf::from(line.split(" => ").nth(1)?.trim())));
    let well_known = DIRECTORIES.map(|directory| Path::new(directory).join(CUDA));
    let library = of_ldconfig
        .chain(well_known)
        .find_map(|path| path.canonicalize().ok())?;
    let entries = fs::read_dir(library.parent()?).ok()?;
    let named = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let wanted = LIBRARIES.iter().any(|start| name.starts_with(start));
        let file = entry.path().canonicalize().ok()?;
        (wanted && name.contains(".so.")).then_some((name, file))
    });
    Some(named.collect())
}

/// The model that an operator would write: "H100" of "NVIDIA H100 80GB HBM3".
fn model(name: &str) -> String {
    let vendors = ["NVIDIA", "Tesla", "GeForce"];
    let mut words = name
        .split([' ', '-'])
        .filter(|word| !vendors.contains(word));
    let first = words.next().unwrap_or(name);
    match (first, words.next()) {
        ("RTX", Some(number)) => format!("RTX {number}"),
        _ => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::model;

    #[test]
    fn the_model_is_the_first_word_of_the_name() {
        assert_eq!(model("NVIDIA H200"), "H200");
        assert_eq!(model("NVIDIA H100 80GB HBM3"), "H100");
        assert_eq!(model("NVIDIA A100-SXM4-80GB"), "A100");
        assert_eq!(model("Tesla T4"), "T4");
        assert_eq!(model("NVIDIA RTX A6000"), "RTX A6000");
        assert_eq!(model("NVIDIA GeForce RTX 4090"), "RTX 4090");
    }
}
