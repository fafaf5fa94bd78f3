//! The archive and the Debian package.

use crate::tree;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wharf_testkit::process::{output, run};
use wharf_testkit::workspace::{root, wharf_binary};

/// Scripts of the package.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Makes the archive: one directory, to be unpacked at `/usr/local` or elsewhere.
pub fn archive(out: &Path) -> Result<PathBuf> {
    let name = format!("wharf-{}-{}", version()?, architecture()?);
    let staged = fresh(&out.join(&name))?;
    tree::write(&staged, "/usr/local")?;
    tree::copy(
        &tree::configuration(),
        &staged.join("etc/wharf/wharf.toml"),
        0o644,
    )?;
    let path = out.join(format!("{name}.tar.gz"));
    run(Command::new("tar")
        .args([
            "--create",
            "--gzip",
            "--owner=0",
            "--group=0",
            "--sort=name",
        ])
        .arg("--file")
        .arg(&path)
        .arg("--directory")
        .args([out, Path::new(&name)]))?;
    fs::remove_dir_all(&staged)?;
    Ok(path)
}

/// Makes the Debian package.
pub fn debian(out: &Path) -> Result<PathBuf> {
    let (version, architecture) = (version()?, architecture()?);
    let staged = fresh(&out.join("debian"))?;
    tree::write(&staged.join("usr"), "/usr")?;
    tree::copy(
        &tree::configuration(),
        &staged.join("etc/wharf/wharf.toml"),
        0o644,
    )?;
    for script in SCRIPTS {
        let from = root().join("xtask/dist/debian").join(script);
        tree::copy(&from, &staged.join("DEBIAN").join(script), 0o755)?;
    }
    tree::put(&staged.join("DEBIAN/conffiles"), "/etc/wharf/wharf.toml\n")?;
    let control = control(&version, &architecture, &staged)?;
    tree::put(&staged.join("DEBIAN/control"), &control)?;
    let path = out.join(format!("wharf_{version}_{architecture}.deb"));
    output(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zgzip", "--build"])
            .args([&staged, &path]),
    )?;
    fs::remove_dir_all(&staged)?;
    Ok(path)
}

fn control(version: &str, architecture: &str, staged: &Path) -> Result<String> {
    let size = output(Command::new("du").args(["-sk"]).arg(staged))?;
    let size = size.split_whitespace().next().unwrap_or("0").to_owned();
    let libc = output(Command::new("dpkg-query").args(["-W", "-f=${Version}", "libc6"]))?;
    // The upstream part: a revision of the distribution changes no interface.
    let libc = libc.split(['-', '+']).next().unwrap_or_default().to_owned();
    Ok(format!(
        "Package: wharf\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: The Wharf developers <wharf@localhost>\n\
         Installed-Size: {size}\n\
         Depends: libc6 (>= {libc}), libgcc-s1\n\
         Recommends: ca-certificates, openssh-client\n\
         Suggests: docker.io | podman, mmdebstrap, nftables\n\
         Section: admin\n\
         Priority: optional\n\
         Description: instance provisioning service\n \
         Wharf creates, resizes, stops and deletes containers and virtual machines over\n \
         a REST interface, a console in the browser and a command line, billed per hour.\n \
         The package has the server and the command line in one program.\n"
    ))
}

/// An empty directory.
fn fresh(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        fs::remove_dir_all(path)?;
    }
    fs::create_dir_all(path).with_context(|| format!("cannot write to {}", path.display()))?;
    Ok(path.to_owned())
}

/// The version that the program itself prints.
fn version() -> Result<String> {
    let printed = output(Command::new(wharf_binary()).arg("--version"))?;
    let version = printed.split_whitespace().last();
    Ok(version
        .context("wharf --version prints nothing")?
        .to_owned())
}

fn architecture() -> Result<String> {
    let printed = output(Command::new("dpkg").arg("--print-architecture"))?;
    Ok(printed.trim().to_owned())
}
