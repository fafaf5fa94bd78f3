//! The files of sources: the alternatives of each image, in order, and mirrors.

use crate::recipe::CUDA;
use crate::{Recipes, pull};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use toml::Table;

/// The file in the directory of recipes.
const SHIPPED: &str = "sources.toml";
/// The key of mirrors.
const MIRROR: &str = "mirror";
/// The key of recipes without an image of their own.
const PARTS: &str = "parts";
/// Longest text for users, in characters.
const MAX_CONTENT: usize = 100;

/// The files of sources, the operator's over the shipped one.
#[derive(Default)]
pub(crate) struct Sources {
    /// A beginning of names and URLs, and its replacement.
    mirrors: BTreeMap<String, String>,
    parts: Vec<String>,
    /// The alternatives of an image, never empty.
    images: BTreeMap<String, Vec<Alternative>>,
}

/// A way to make an image.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Alternative {
    /// The registry's image to build on. Without it, the base is the Containerfile's.
    pub image: Option<String>,
    /// The digest of `image`.
    pub digest: Option<String>,
    /// Recipes between `image` and the last one, in order.
    pub recipes: Vec<String>,
    /// The recipe in place of the image's own.
    pub recipe: Option<String>,
    /// Whether the image is made from the distribution's packages.
    pub packages: bool,
    #[serde(rename = "download")]
    pub downloads: Vec<Download>,
    /// The content, in words for users.
    pub content: String,
    pub substitute: bool,
    /// The file and the key, for errors.
    #[serde(skip)]
    pub place: String,
}

/// A file for a build.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Download {
    pub url: String,
    /// Its name in the directory `downloads` of the build.
    pub name: String,
    /// 64 hexadecimal digits.
    pub sha256: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    from: Vec<Alternative>,
}

impl Sources {
    /// Reads the shipped file and the operator's.
    pub fn read(recipes: &Recipes) -> Result<Self> {
        let mut sources = Self::default();
        let shipped = Some(recipes.directory.join(SHIPPED)).filter(|file| file.is_file());
        for file in shipped.iter().chain(&recipes.sources) {
            let added = sources.add(file, &recipes.directory);
            added.with_context(|| format!("the sources of images, {}", file.display()))?;
        }
        for alternative in sources.images.values().flatten() {
            let checked = alternative.check(&sources);
            checked.with_context(|| alternative.place.clone())?;
        }
        Ok(sources)
    }

    fn add(&mut self, file: &Path, recipes: &Path) -> Result<()> {
        // A directory with the shipped file may have some of its recipes only.
        let is_shipped = file == recipes.join(SHIPPED);
        for (key, value) in fs::read_to_string(file)?.parse::<Table>()? {
            match key.as_str() {
                MIRROR => {
                    let mirrors: BTreeMap<_, _> = value.try_into().context(MIRROR)?;
                    self.mirrors.extend(mirrors);
                }
                PARTS => {
                    let parts: Vec<_> = value.try_into().context(PARTS)?;
                    self.parts.extend(parts);
                }
                image => {
                    let Entry { mut from } = value.try_into().with_context(|| key.clone())?;
                    ensure!(!from.is_empty(), "{key}.from: must have an alternative");
                    for (number, alternative) in (1..).zip(&mut from) {
                        let place = format!("{key}.from, number {number}");
                        if !is_shipped {
                            let checked = alternative.check_recipes(image, recipes);
                            checked.with_context(|| place.clone())?;
                        }
                        alternative.place = format!("{}: {place}", file.display());
                    }
                    self.images.insert(key, from);
                }
            }
        }
        Ok(())
    }

    /// The alternatives of an image, of which there is at least one.
    pub fn of(&self, image: &str) -> Vec<Alternative> {
        let usual = || vec![Alternative::default()];
        self.images.get(image).cloned().unwrap_or_else(usual)
    }

    /// Whether a recipe has no image of its own.
    pub fn is_part(&self, recipe: &str) -> bool {
        self.parts.iter().any(|part| part == recipe)
    }

    /// A name or a URL at its mirror. Of several mirrors, the one with the longest beginning counts.
    pub fn mirrored(&self, name: &str) -> String {
        let mirrors = self.mirrors.iter();
        let found = mirrors.filter_map(|(from, to)| Some((from, name.strip_prefix(from)?, to)));
        let longest = found.max_by_key(|(from, ..)| from.len());
        longest.map_or_else(|| name.to_owned(), |(_, rest, to)| format!("{to}{rest}"))
    }
}

impl Alternative {
    fn check_recipes(&self, image: &str, recipes: &Path) -> Result<()> {
        let own = if image.ends_with("-cuda") {
            CUDA
        } else {
            image
        };
        let named = self.recipe.iter().chain(&self.recipes);
        for recipe in named.map(String::as_str).chain([own]) {
            let is_there = recipes.join(recipe).join("Containerfile").is_file();
            ensure!(is_there, "no recipe {recipe:?}");
        }
        Ok(())
    }

    fn check(&self, sources: &Sources) -> Result<()> {
        if let Some(name) = &self.image {
            let is_name = !name.contains(|c: char| c == '@' || c.is_whitespace())
                && pull::repository(name) != name;
            ensure!(
                is_name,
                "image: must be a name with a tag, without a digest"
            );
            ensure!(!self.packages, "packages: not with `image`");
        } else {
            ensure!(self.digest.is_none(), "digest: only with `image`");
            ensure!(self.recipes.is_empty(), "recipes: only with `image`");
        }
        if let Some(digest) = &self.digest {
            ensure!(
                is_digest(digest),
                "digest: must be sha256: and 64 hexadecimal digits, not {digest:?}"
            );
        }
        ensure!(
            !self.packages || self.downloads.is_empty(),
            "download: not with `packages`"
        );
        let length = self.content.chars().count();
        // A label is written in double quotes.
        let is_plain = |c: char| !c.is_control() && !"\"\\$".contains(c);
        ensure!(
            length <= MAX_CONTENT && self.content.chars().all(is_plain),
            "content: must have at most {MAX_CONTENT} characters, without quotes, \\ and $"
        );
        self.downloads
            .iter()
            .try_for_each(|download| download.check(sources))
    }
}

impl Download {
    fn check(&self, sources: &Sources) -> Result<()> {
        let Self { url, name, sha256 } = self;
        let at = sources.mirrored(url);
        let host = at.split('/').nth(2).unwrap_or_default();
        ensure!(
            !host.contains('@'),
            "download.url: must have no account, and its mirror none"
        );
        let is_secure = at.starts_with("https://");
        ensure!(
            is_secure || at.starts_with("http://"),
            "download.url: {at:?} must begin with https:// or http://"
        );
        ensure!(
            is_secure || sha256.is_some(),
            "download.sha256: required for {at:?}, which is not https://"
        );
        ensure!(
            !name.is_empty() && !name.starts_with('.') && !name.contains('/'),
            "download.name: {name:?} must be the name of a file, without / and a leading dot"
        );
        if let Some(sum) = sha256 {
            ensure!(
                is_digest(&format!("sha256:{sum}")),
                "download.sha256: must be 64 hexadecimal digits, not {sum:?}"
            );
        }
        Ok(())
    }
}

/// Whether a text is `sha256:` and 64 hexadecimal digits in lower case.
pub(crate) fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:");
    digits.is_some_and(|digits| {
        digits.len() == 64
            && digits
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    /// The sources of a directory with the recipes `base`, `tools` and `part`, and the operator's file.
    fn read(shipped: &str, own: &str) -> Result<Sources> {
        let dir = tempfile::tempdir().unwrap();
        for recipe in ["base", "tools", "part"] {
            fs::create_dir(dir.path().join(recipe)).unwrap();
            fs::write(
                dir.path().join(recipe).join("Containerfile"),
                "FROM scratch\n",
            )
            .unwrap();
        }
        fs::write(dir.path().join(SHIPPED), shipped).unwrap();
        let file = dir.path().join("own.toml");
        fs::write(&file, own).unwrap();
        let mut recipes = Recipes::new(dir.path().into(), dir.path().into());
        recipes.sources = Some(file);
        Sources::read(&recipes)
    }

    #[test]
    fn an_entry_of_the_operator_replaces_the_shipped_one() {
        let shipped = "parts = [\"part\"]\n\
            [[base.from]]\nimage = \"one:1\"\n[[base.from]]\npackages = true\n\
            [[tools.from]]\ncontent = \"Tools\"\n";
        let sources = read(shipped, "[[base.from]]\nimage = \"two:1\"\n").unwrap();
        let images = |name: &str| {
            sources
                .of(name)
                .into_iter()
                .map(|one| one.image)
                .collect::<Vec<_>>()
        };
        assert_eq!(images("base"), [Some("two:1".to_owned())]);
        assert_eq!(sources.of("tools")[0].content, "Tools");
        // Without an entry, an image is made as its Containerfile says.
        assert_eq!(images("other"), [None]);
        assert!(sources.is_part("part") && !sources.is_part("base"));
    }

    #[test]
    fn the_longest_beginning_of_a_name_chooses_its_mirror() {
        let own = "[mirror]\n\"hub/\" = \"mirror.example/all/\"\n\"hub/r/\" = \"r.example/\"\n";
        let sources = read("", own).unwrap();
        assert_eq!(sources.mirrored("hub/r/studio:1"), "r.example/studio:1");
        assert_eq!(sources.mirrored("hub/x:1"), "mirror.example/all/x:1");
        assert_eq!(sources.mirrored("other/hub/x:1"), "other/hub/x:1");
    }

    #[test]
    fn errors_name_the_file_the_recipe_and_the_key() {
        let download = |rest: &str| format!("[[tools.from]]\n[[tools.from.download]]\n{rest}");
        let sum = format!("sha256 = \"{SUM}\"");
        let wrong = [
            ("base = 1".to_owned(), "base"),
            ("base.from = []".to_owned(), "base.from"),
            ("[mirror]\nhub = 1".to_owned(), "mirror"),
            ("[[base.from]]\nimagee = \"a\"".to_owned(), "imagee"),
            (
                "[[base.from]]\nimage = \"a@b\"".to_owned(),
                "base.from, number 1: image",
            ),
            (
                "[[base.from]]\nimage = \"a\"".to_owned(),
                "base.from, number 1: image",
            ),
            (
                "[[base.from]]\n[[base.from]]\ndigest = \"x\"".to_owned(),
                "base.from, number 2: digest",
            ),
            (
                "[[base.from]]\nimage = \"a:1\"\ndigest = \"sha256:1\"".to_owned(),
                "digest: must be",
            ),
            (
                "[[base.from]]\nimage = \"a:1\"\npackages = true".to_owned(),
                "packages",
            ),
            (
                "[[base.from]]\nrecipes = [\"part\"]".to_owned(),
                "recipes: only",
            ),
            ("[[base.from]]\nrecipe = \"parts\"".to_owned(), "\"parts\""),
            ("[[bas.from]]".to_owned(), "\"bas\""),
            ("[[base.from]]\ncontent = \"$A\"".to_owned(), "content"),
            (
                download("url = \"ftp://a/b\"\nname = \"b\""),
                "download.url",
            ),
            (
                download("url = \"http://a/b\"\nname = \"b\""),
                "download.sha256: required",
            ),
            (
                download("url = \"https://a/b\"\nname = \"b\"\nsha256 = \"1\""),
                "download.sha256",
            ),
            (
                download(&format!("url = \"http://a/b\"\nname = \"../b\"\n{sum}")),
                "download.name",
            ),
            (download("url = \"https://a/b\"\nnam = \"b\""), "nam"),
            (
                download("url = \"https://u:p@a/b\"\nname = \"b\""),
                "download.url: must have no account",
            ),
        ];
        for (own, key) in wrong {
            let Err(error) = read("", &own) else {
                panic!("{own}: no error");
            };
            let text = format!("{error:#}");
            assert!(
                text.contains("own.toml") && text.contains(key),
                "{own}: {text}"
            );
        }
        read(
            "",
            &download(&format!("url = \"http://a/b\"\nname = \"b\"\n{sum}")),
        )
        .unwrap();
    }
}
