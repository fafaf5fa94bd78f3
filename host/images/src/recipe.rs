//! A recipe of an image: a directory with a Containerfile.

use super::{Accounts, Recipes, containerfile};
use crate::process::output;
use crate::sources::Sources;
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The label with the hash of an image's recipe.
pub(crate) const INPUTS_LABEL: &str = "io.wharf.image.inputs";

/// The prefix of images in blueprints.
const PREFIX: &str = "localhost/wharf/";
const TAG: &str = ":1";
/// A recipe on top of another image: `datascience-cuda` is this recipe on `datascience`.
pub(crate) const CUDA: &str = "cuda";

/// The recipe of an image.
#[derive(Clone)]
pub(crate) struct Recipe {
    recipes: Recipes,
    name: String,
    directory: PathBuf,
    containerfile: String,
    /// The base instead of the Containerfile's own.
    over: Option<String>,
    hash: String,
}

impl Recipe {
    /// The recipe of an image that a user names.
    pub fn read(recipes: &Recipes, sources: &Sources, name: &str) -> Result<Self> {
        let recipe = Self::of(recipes, name).ok();
        let Some(recipe) = recipe.filter(|_| !sources.is_part(name)) else {
            bail!(
                "no image {name:?}; there are: {}",
                names(recipes, sources)?.join(", ")
            );
        };
        Ok(recipe)
    }

    fn of(recipes: &Recipes, name: &str) -> Result<Self> {
        let over = name.strip_suffix(CUDA).and_then(|n| n.strip_suffix('-'));
        let directory = over.map_or(name, |_| CUDA);
        Self::in_directory(recipes, name, directory, over.map(reference))
    }

    fn in_directory(
        recipes: &Recipes,
        name: &str,
        directory: &str,
        over: Option<String>,
    ) -> Result<Self> {
        let directory = recipes.directory.join(directory);
        let file = directory.join("Containerfile");
        let containerfile =
            fs::read_to_string(&file).with_context(|| format!("{}", file.display()))?;
        Ok(Self {
            recipes: recipes.clone(),
            name: name.to_owned(),
            hash: hash(&directory)?,
            directory,
            containerfile,
            over,
        })
    }

    /// The recipe of another directory for this image, if one is named.
    pub fn by(&self, directory: Option<&str>) -> Result<Self> {
        directory.map_or_else(
            || Ok(self.clone()),
            |directory| Self::in_directory(&self.recipes, &self.name, directory, None),
        )
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the image in blueprints.
    pub fn reference(&self) -> String {
        reference(&self.name)
    }

    /// The name of the image of a recipe below this one, during its build.
    pub fn reference_below(&self, recipe: &str) -> String {
        // Another process may build the image too.
        reference(&format!("{}.{recipe}.{}", self.name, std::process::id()))
    }

    /// The base image, if there is one: a public image, or that of another recipe.
    pub fn base(&self) -> Option<&str> {
        let own = || containerfile::base(&self.containerfile);
        self.over.as_deref().or_else(own)
    }

    /// The recipe of the base image, if it has one.
    pub fn parent(&self) -> Result<Option<Self>> {
        let name = self
            .base()
            .and_then(|base| base.strip_prefix(PREFIX)?.strip_suffix(TAG));
        name.map(|name| Self::of(&self.recipes, name)).transpose()
    }

    /// The directory for root file systems and disks of virtual machines.
    pub fn cache(&self) -> &Path {
        &self.recipes.cache
    }

    /// The operator's accounts at registries.
    pub fn accounts(&self) -> &Accounts {
        &self.recipes.accounts
    }

    pub fn describing(&self) -> Vec<&str> {
        containerfile::describing(&self.containerfile)
    }

    /// The variables of its first process, as NAME=VALUE.
    pub fn environment(&self) -> Vec<String> {
        containerfile::environment(&self.containerfile)
    }

    /// A hash of the files of this recipe.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The release of Debian of its packages, if the recipe names one.
    pub fn release(&self) -> Result<Option<String>> {
        if !self.file("release").is_file() {
            return Ok(None);
        }
        let lines = self.packages("release")?;
        Ok(Some(lines.concat()))
    }

    /// The release and the architecture of its root file system.
    pub fn platform(&self) -> Result<String> {
        let own = platform()?;
        let Some(release) = self.release()? else {
            return Ok(own);
        };
        let architecture = own.rsplit('-').next().unwrap_or_default();
        Ok(format!("{release}-{architecture}"))
    }

    /// Whether it is the image of virtual machines, with their disk.
    pub fn has_machine(&self) -> bool {
        self.file("machine").is_dir()
    }

    /// A hash of the files in a directory of the recipe.
    pub fn hash_of(&self, subdirectory: &str) -> Result<String> {
        hash(&self.directory.join(subdirectory))
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The names in a list of packages: one per line, with `#` comments.
    pub fn packages(&self, list: &str) -> Result<Vec<String>> {
        let path = self.file(list);
        let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default().trim());
        Ok(lines
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect())
    }

    /// Writes a tar of a directory of the recipe, and of the content of another directory, with root as owner.
    pub fn tar(&self, subdirectory: &str, beside: Option<&Path>, file: File) -> Result<()> {
        let mut command = Command::new("tar");
        command
            .args([
                "--create",
                // Recipes share lists of packages by links.
                "--dereference",
                "--owner=0",
                "--group=0",
                "--numeric-owner",
                "--directory",
            ])
            .arg(self.file(subdirectory))
            .arg(".");
        if let Some(beside) = beside {
            command.arg("--directory").arg(beside).arg(".");
        }
        let tar = command.stdout(file).output().context("cannot run tar")?;
        if !tar.status.success() {
            bail!("tar: {}", String::from_utf8_lossy(&tar.stderr).trim());
        }
        Ok(())
    }
}

pub(crate) fn reference(name: &str) -> String {
    format!("{PREFIX}{name}{TAG}")
}

pub(crate) fn names(recipes: &Recipes, sources: &Sources) -> Result<Vec<String>> {
    let directory = &recipes.directory;
    let entries = fs::read_dir(directory)
        .with_context(|| format!("the recipes of images, {}", directory.display()))?;
    let mut names: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.path().join("Containerfile").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !sources.is_part(name))
        .collect();
    names.sort();
    Ok(names)
}

/// The release of the distribution and the architecture.
pub fn platform() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let codename = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let codename = codename.context("/etc/os-release names no VERSION_CODENAME")?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    Ok(format!(
        "{}-{}",
        codename.trim_matches('"'),
        architecture.trim()
    ))
}

fn hash(directory: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    hash_tree(directory, directory, &mut hash)?;
    Ok(short(&hash.finalize()))
}

/// A hash of several hashes.
pub(crate) fn hash_of_hashes<'a>(hashes: impl IntoIterator<Item = &'a str>) -> String {
    short(&Sha256::digest(hashes.into_iter().collect::<String>()))
}

fn short(digest: &[u8]) -> String {
    digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
}

fn hash_tree(root: &Path, path: &Path, hash: &mut Sha256) -> Result<()> {
    if !path.is_dir() {
        let name = path.strip_prefix(root)?.to_string_lossy();
        let content = fs::read(path)?;
        hash.update(format!("{name}\0{}\0", content.len()));
        hash.update(content);
        return Ok(());
    }
    let mut entries: Vec<_> = fs::read_dir(path)?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    entries
        .iter()
        .try_for_each(|entry| hash_tree(root, entry, hash))
}

#[cfg(test)]
mod tests {
    use super::{Recipe, Recipes, fs};

    #[test]
    fn a_link_to_the_list_of_another_recipe_is_a_file_in_the_build() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        for recipe in [&one, &two] {
            fs::create_dir(recipe).unwrap();
            fs::write(recipe.join("Containerfile"), "FROM scratch\n").unwrap();
        }
        fs::write(one.join("list"), "a==1\n").unwrap();
        std::os::unix::fs::symlink("../one/list", two.join("list")).unwrap();
        let recipes = Recipes::new(dir.path().into(), dir.path().into());
        let read = |name: &str| Recipe::of(&recipes, name).unwrap();
        assert_eq!(read("one").hash(), read("two").hash());
        let file = dir.path().join("tar");
        let out = fs::File::create(&file).unwrap();
        read("two").tar(".", None, out).unwrap();
        let tar = fs::read(file).unwrap();
        let header = tar.chunks(512).find(|block| block.starts_with(b"./list\0"));
        // The kind of a file.
        assert_eq!(header.unwrap()[156], b'0');
    }
}
