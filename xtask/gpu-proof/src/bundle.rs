//! The bundle: all that the proof needs on a machine that has a driver and no network.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use wharf_images::Recipes;
use wharf_testkit::packages::{self, Need};
use wharf_testkit::process::{command, is_root, output, run, succeeds};
use wharf_testkit::{progress, workspace};

/// The release whose Podman the proof uses.
const SUITE: &str = "trixie";
const NEEDS: [Need; 2] = [
    Need {
        program: "mmdebstrap",
        package: "mmdebstrap",
        why: "makes root file systems",
    },
    Need {
        program: "xz",
        package: "xz-utils",
        why: "compresses them",
    },
];
/// Packages of the root file system: the programs that a private engine calls, and SSH's client.
const PACKAGES: &str = "btrfs-progs,iproute2,iptables,lxcfs,mount,netavark,\
                        nftables,openssh-client,passwd,podman,procps,runc,util-linux";
/// Packages of the instances' image: those of `base` that the proof uses.
const IMAGE_PACKAGES: &str = "ca-certificates\ncron\niproute2\niputils-ping\nless\nnetbase\n\
                              openssh-server\nprocps\npython3\nsudo\ntini\n";
/// Scripts that make root file systems smaller.
const SLIM: &str = include_str!("slim.sh");
const SLIM_IMAGE: &str = include_str!("slim-image.sh");
const SLIM_ROOT: &str = include_str!("slim-root.sh");
/// The checkout in the root file system.
const CHECKOUT: &str = "opt/wharf";
const RECIPES: &str = "plugins/flavors-standard/images";
/// Images repeat files of the root; a dictionary of this size finds them.
const COMPRESSION: [&str; 2] = ["--x86", "--lzma2=preset=9e,dict=256MiB"];

/// Makes the bundle in a new directory.
pub(crate) fn make(directory: &Path) -> Result<()> {
    ensure!(is_root(), "a root file system needs root");
    packages::ensure(&NEEDS)?;
    let is_bundle = directory.join("run.sh").is_file();
    if directory.exists() && !is_bundle {
        ensure!(
            fs::read_dir(directory)?.next().is_none(),
            "{} is neither empty nor a bundle",
            directory.display()
        );
    }
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory)?;
    let draft = tempfile::tempdir_in(workspace::target())?;
    let root = draft.path().join("root");
    make_root(&root)?;
    slim(&root, SLIM_ROOT)?;
    fs::write(root.join("etc/resolv.conf"), "")?;
    fs::write(root.join("etc/hosts"), "127.0.0.1 localhost\n")?;
    let checkout = root.join(CHECKOUT);
    add_image(&checkout, &draft.path().join("image"))?;
    pack(&root, ".", &directory.join("root.tar.xz"))?;

    let programs = draft.path().join("programs");
    add_programs(&programs.join(CHECKOUT).join("target/release"))?;
    pack(&programs, CHECKOUT, &directory.join("wharf.tar.xz"))?;
    fs::write(directory.join("run.sh"), include_str!("run.sh"))?;
    for entry in fs::read_dir(directory)?.flatten() {
        let mib = entry.metadata()?.len() as f64 / f64::from(1 << 20);
        progress::note(&format!("{}: {mib:.1} MiB", entry.path().display()));
    }
    Ok(())
}

fn make_root(root: &Path) -> Result<()> {
    progress::timed("Making a root file system with Podman", || {
        run(command("mmdebstrap")
            .args(["--quiet", "--variant=minbase", "--format=directory"])
            .arg(format!("--include={PACKAGES}"))
            .arg("--aptopt=APT::Install-Recommends \"false\"")
            .args(wharf_images::apt_options())
            .arg(SUITE)
            .arg(root)
            .args(wharf_images::apt_sources(SUITE)))
    })
}

fn slim(root: &Path, unused: &str) -> Result<()> {
    let script = format!("cd \"$1\"\n{unused}{SLIM}");
    run(command("sh").args(["-euc", &script, "sh"]).arg(root))
}

/// Adds a smaller recipe of `base`, and its image where the recipes' cache is.
fn add_image(checkout: &Path, draft: &Path) -> Result<()> {
    let recipes = checkout.join(RECIPES);
    let base = recipes.join("base");
    fs::create_dir_all(&recipes)?;
    let own = workspace::root().join(RECIPES).join("base");
    run(command("cp").arg("-r").arg(own).arg(&base))?;
    fs::write(base.join("packages"), IMAGE_PACKAGES)?;
    fs::write(base.join("release"), SUITE)?;
    fs::remove_file(base.join("packages.debian"))?;
    fs::remove_file(base.join("uv.txt"))?;
    edit(&base.join("Containerfile"), |text| {
        let lines = text.lines().filter(|line| !line.starts_with("ARG BASE="));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    edit(&base.join("setup"), |text| {
        let parts = text.split("\n\n").filter(|part| !part.starts_with("# uv,"));
        parts.collect::<Vec<_>>().join("\n\n")
    })?;
    let image = Recipes::new(recipes, workspace::target().join("images"));
    let made = progress::timed("Making a small image of the flavor `base`", || {
        image.root_file_system("base")
    })?;
    let name = made
        .tarball
        .file_name()
        .context("an image without a name")?;
    let cache = checkout.join("target/images");
    fs::create_dir_all(&cache)?;
    fs::create_dir(draft)?;
    let tar = |option: &str, file: &Path| {
        let mut tar = command("tar");
        tar.args(["--numeric-owner", "--sort=name", "--preserve-permissions"]);
        output(
            tar.args([option, "--exclude=./dev/*", "-f"])
                .arg(file)
                .arg("-C")
                .arg(draft)
                .arg("."),
        )
    };
    tar("-x", &made.tarball)?;
    slim(draft, SLIM_IMAGE)?;
    tar("-c", &cache.join(name)).map(drop)
}

fn edit(file: &Path, change: impl FnOnce(&str) -> String) -> Result<()> {
    let text = fs::read_to_string(file)?;
    Ok(fs::write(file, change(&text))?)
}

fn add_programs(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)?;
    let programs: [(PathBuf, &str); 2] = [
        (workspace::wharf_binary(), "wharf"),
        (std::env::current_exe()?, "wharf-gpu-proof"),
    ];
    for (program, name) in programs {
        let copy = directory.join(name);
        fs::copy(&program, &copy).with_context(|| format!("{}", program.display()))?;
        // Without symbols it is smaller.
        succeeds(command("strip").arg(&copy));
    }
    Ok(())
}

fn pack(root: &Path, what: &str, archive: &Path) -> Result<()> {
    progress::timed(&format!("Packing {}", archive.display()), || {
        let tar = archive.with_extension("");
        output(
            command("tar")
                .args([
                    "--create",
                    "--sort=name",
                    "--numeric-owner",
                    "--exclude=./dev/*",
                ])
                .arg("--file")
                .arg(&tar)
                .arg("--directory")
                .args([root, Path::new(what)]),
        )?;
        run(command("xz").args(COMPRESSION).arg(&tar))
    })
}
