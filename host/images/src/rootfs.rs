//! Images without a registry: a root file system from the distribution's packages, imported.

use super::build_output::follow;
use super::recipe::Recipe;
use super::settings::{MACHINE, Settings};
use super::{apt_sources, machine};
use crate::http::{Body, HttpClient, Request};
use crate::packages::{self, Need};
use crate::process::{command, output, run};
use crate::progress;
use anyhow::{Context, Result};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(crate) const NEEDS: [Need; 1] = [Need {
    program: "mmdebstrap",
    package: "mmdebstrap",
    why: "makes images from the distribution's packages",
}];
const IMPORT_LIMIT: Duration = Duration::from_secs(600);
/// The files that slim images leave out.
const LEFT_OUT: [&str; 4] = [
    "/usr/share/man/*",
    "/usr/share/doc/*",
    "/usr/share/locale/*",
    "/usr/share/info/*",
];

/// The manual pages in English, for images with a program that shows them.
const MANUALS: &str = "/usr/share/man/man[1-9]/*";

/// Locks the cache until the file is dropped, so that of two processes that need a file only one makes it.
/// The lock is on the directory, which leaves no file.
pub(crate) fn lock(cache: &Path) -> Result<File> {
    fs::create_dir_all(cache)?;
    let lock = File::open(cache)?;
    lock.lock()?;
    Ok(lock)
}

/// The root file system as a tar file, made once for each version of the recipe.
pub(crate) fn tarball(recipe: &Recipe) -> Result<PathBuf> {
    let directory = recipe.cache();
    let platform = recipe.platform()?;
    let name = format!("{}-{platform}-{}.tar", recipe.name(), recipe.hash());
    let path = directory.join(name);
    let _lock = lock(directory)?;
    if path.is_file() {
        progress::note(&format!("Reusing {}.", path.display()));
        return Ok(path);
    }
    packages::ensure(&NEEDS)?;
    let overlay = directory.join(format!("{}-files.tar", recipe.name()));
    recipe.tar("files", None, File::create(&overlay)?)?;
    let draft = path.with_extension("draft.tar");
    progress::note("Installing packages into a new root file system; this takes about a minute.");
    let settings = Settings::read()?;
    let mut inputs = vec![recipe.file("setup"), settings.directory().join(MACHINE)];
    inputs.extend(Some(recipe.file("uv.txt")).filter(|list| list.is_file()));
    run(&mut mmdebstrap(
        recipe, &platform, &overlay, &inputs, &draft,
    )?)?;
    fs::rename(&draft, &path)?;
    fs::remove_file(&overlay)?;
    Ok(path)
}

fn mmdebstrap(
    recipe: &Recipe,
    platform: &str,
    overlay: &Path,
    inputs: &[PathBuf],
    tarball: &Path,
) -> Result<Command> {
    let suite = platform
        .split('-')
        .next()
        .context("a platform without a suite")?;
    let mut wanted = recipe.packages("packages")?;
    if recipe.file("packages.debian").is_file() {
        wanted.extend(recipe.packages("packages.debian")?);
    }
    let mut command = minimal(&wanted, overlay, inputs);
    command
        .args(machine::hooks(recipe)?)
        .args([suite, &tarball.to_string_lossy()])
        .args(if recipe.release()?.is_some() {
            apt_sources::of_release(suite)
        } else {
            apt_sources::of_machine(suite)?
        });
    Ok(command)
}

/// The command that makes a root file system of few packages and the files of `overlay`, and runs the
/// script `setup` of `inputs`.
pub(crate) fn minimal(wanted: &[String], overlay: &Path, inputs: &[PathBuf]) -> Command {
    let inputs: Vec<_> = inputs.iter().map(|path| path.to_string_lossy()).collect();
    let mut command = command("mmdebstrap");
    command
        .args(["--quiet", "--variant=minbase"])
        .arg(format!("--include={}", wanted.join(",")))
        .arg("--aptopt=APT::Install-Recommends \"false\"")
        .arg("--aptopt=Acquire::Languages \"none\"")
        .args(apt_options())
        .args(LEFT_OUT.map(|path| format!("--dpkgopt=path-exclude={path}")));
    if wanted.iter().any(|package| package == "man-db") {
        command.arg(format!("--dpkgopt=path-include={MANUALS}"));
    }
    command
        .arg(format!("--customize-hook=tar-in {} /", overlay.display()))
        .arg("--customize-hook=mkdir \"$1/tmp/wharf\"")
        .arg(format!(
            "--customize-hook=copy-in {} /tmp/wharf",
            inputs.join(" ")
        ))
        .arg("--customize-hook=chroot \"$1\" sh /tmp/wharf/setup && rm -r \"$1/tmp/wharf\"");
    command
}

/// Options of the machine's apt for its mirror, as arguments of mmdebstrap, which would ignore them.
pub fn apt_options() -> Vec<String> {
    const TAKEN_OVER: [&str; 4] = [
        "Acquire::http::Proxy",
        "Acquire::https::Proxy",
        "Acquire::Check-Valid-Until",
        "Acquire::Check-Date",
    ];
    let settings = output(command("apt-config").arg("dump")).unwrap_or_default();
    settings
        .lines()
        .filter(|line| {
            TAKEN_OVER
                .iter()
                .any(|name| line.starts_with(&format!("{name} ")))
        })
        .map(|setting| format!("--aptopt={setting}"))
        .collect()
}

/// Imports the tar file into the engine as an image with labels.
pub(crate) fn import(
    engine: &HttpClient,
    recipe: &Recipe,
    tarball: &Path,
    labels: &Map<String, Value>,
) -> Result<()> {
    // The tag is in the name of the repository, because Podman reads it only there.
    let repository = percent_encode(&recipe.reference());
    let mut path = format!("/images/create?fromSrc=-&repo={repository}");
    let labels = labels
        .iter()
        .filter_map(|(name, value)| match value.as_str()? {
            "" => None,
            // JSON's quotes are those of an instruction.
            text if text.contains(' ') => Some(format!("LABEL {name}={value}")),
            text => Some(format!("LABEL {name}={text}")),
        });
    let changes = recipe.describing().into_iter().map(str::to_owned);
    for change in changes.chain(labels) {
        write!(path, "&changes={}", percent_encode(&change))?;
    }
    let body = Body::TarFile(tarball.to_owned());
    follow(
        engine,
        Request::new("POST", &path).body(body).timeout(IMPORT_LIMIT),
    )
}

/// Encodes a value of a query.
pub(crate) fn percent_encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::percent_encode;

    #[test]
    fn reserved_characters_are_encoded() {
        assert_eq!(
            percent_encode("ENV A=\"b c\"&é"),
            "ENV%20A%3D%22b%20c%22%26%C3%A9"
        );
    }
}
