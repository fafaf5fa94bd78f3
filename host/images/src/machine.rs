//! The disk of virtual machines, and their kernel: from Ubuntu's cloud image where that can be downloaded,
//! else from Debian's packages. The scripts `setup` and `make-disk` in the recipe's `machine/` serve both.

use super::apt_sources;
use super::recipe::Recipe;
use super::rootfs::{self, minimal};
use crate::packages::{self, Need};
use crate::process::{command, run, succeeds};
use crate::progress;
use anyhow::Result;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Their directory in the image.
const DIRECTORY: &str = "/usr/local/share/wharf-vm";
/// The release of Debian, where Ubuntu's image cannot be downloaded.
const DEBIAN: &str = "trixie";
const NEEDS: [Need; 3] = [
    Need {
        program: "curl",
        package: "curl",
        why: "downloads Ubuntu's cloud image",
    },
    Need {
        program: "qemu-img",
        package: "qemu-utils",
        why: "writes disks of virtual machines",
    },
    Need {
        program: "mke2fs",
        package: "e2fsprogs",
        why: "makes their file systems",
    },
];

/// The hooks that copy the disk into a new root file system, if the recipe has a disk.
pub(crate) fn hooks(recipe: &Recipe) -> Result<Vec<String>> {
    if !recipe.has_machine() {
        return Ok(Vec::new());
    }
    let made = ensure(recipe)?;
    let mut files: Vec<_> = fs::read_dir(&made)?.flatten().map(|e| e.path()).collect();
    files.sort();
    let files: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
    Ok(vec![
        format!("--customize-hook=mkdir -p \"$1{DIRECTORY}\""),
        format!("--customize-hook=copy-in {} {DIRECTORY}", files.join(" ")),
    ])
}

/// The directory with disk, kernel and initial RAM disk, made once for each version of the recipe.
fn ensure(recipe: &Recipe) -> Result<PathBuf> {
    let name = format!("{}-machine-{}", recipe.name(), recipe.hash_of("machine")?);
    let made = recipe.cache().join(name);
    if made.is_dir() {
        progress::note(&format!("Reusing {}.", made.display()));
        return Ok(made);
    }
    packages::ensure(&[NEEDS.as_slice(), &rootfs::NEEDS].concat())?;
    let draft = made.with_extension("draft");
    let _ = fs::remove_dir_all(&draft);
    fs::create_dir_all(&draft)?;
    let overlay = draft.with_extension("files.tar");
    recipe.tar("machine/files", None, File::create(&overlay)?)?;
    let ubuntu = recipe.file("machine/ubuntu");
    if succeeds(command(&ubuntu.to_string_lossy()).arg("offered")) {
        progress::note("Making the disk of virtual machines from Ubuntu's cloud image.");
        run(command(&ubuntu.to_string_lossy())
            .arg("make")
            .args([&overlay, &draft]))?;
    } else {
        progress::note(&format!(
            "Cannot download Ubuntu's cloud image: virtual machines get Debian {DEBIAN} from packages."
        ));
        run(&mut from_packages(recipe, &overlay, &draft)?)?;
    }
    fs::remove_file(&overlay)?;
    fs::rename(&draft, &made)?;
    Ok(made)
}

fn from_packages(recipe: &Recipe, overlay: &Path, out: &Path) -> Result<std::process::Command> {
    let wanted = recipe.packages("machine/packages")?;
    let mut command = minimal(&wanted, overlay, &[recipe.file("machine/setup")]);
    let make_disk = recipe.file("machine/make-disk");
    command
        .arg("--format=null")
        .arg(format!(
            "--customize-hook={} \"$1\" {}",
            make_disk.display(),
            out.display()
        ))
        .args([DEBIAN, "-"])
        .args(apt_sources::of_release(DEBIAN));
    Ok(command)
}
