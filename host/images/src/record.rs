//! The file with the digests of sources that no file of sources pins.

use crate::Recipes;
use crate::rootfs::lock;
use crate::sources::is_digest;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;

/// The digest at the first use of a name or a URL.
pub(crate) fn digest_of(recipes: &Recipes, source: &str) -> Result<Option<String>> {
    Ok(read(recipes)?.remove(source))
}

/// Records a digest in place of an earlier one. A failure must end the work on the image, whose source could otherwise
/// change silently.
pub(crate) fn set(
    recipes: &Recipes,
    source: &str,
    earlier: Option<&str>,
    digest: &str,
) -> Result<()> {
    let file = &recipes.recorded;
    let write = || {
        let directory = file.parent().context("a file without a directory")?;
        let _lock = lock(directory)?;
        let mut all = read(recipes)?;
        let present = all.get(source).map(String::as_str);
        if present == Some(digest) {
            return Ok(());
        }
        ensure!(
            present == earlier,
            "another run has recorded {present:?}, not {digest}"
        );
        all.insert(source.to_owned(), digest.to_owned());
        let draft = file.with_extension("draft");
        fs::write(&draft, toml::to_string(&all)?)?;
        anyhow::Ok(fs::rename(&draft, file)?)
    };
    write().with_context(|| format!("cannot record {source} in {}", file.display()))
}

fn read(recipes: &Recipes) -> Result<BTreeMap<String, String>> {
    let file = &recipes.recorded;
    let parse = || {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let all: BTreeMap<_, String> = toml::from_str(&text)?;
        for (source, digest) in &all {
            ensure!(is_digest(digest), "{source}: {digest:?} is no digest");
        }
        Ok(all)
    };
    parse().with_context(|| format!("the record of sources, {}", file.display()))
}
