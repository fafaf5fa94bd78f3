//! The hashes of an image's alternatives. The engine's image is current if its label has one of them.

use crate::recipe::{Recipe, hash_of_hashes};
use crate::sources::{Alternative, Sources};
use crate::{Recipes, download, pull};
use anyhow::Result;

/// A hash that a current image may have.
pub(crate) struct Possible {
    pub hash: String,
    /// Whether the image or one below it is a substitute.
    pub is_substitute: bool,
    /// Whether the image has a label with its content. Images of earlier versions have none.
    pub has_content: bool,
}

/// The hash of an image from the recipes on a registry's image.
pub(crate) fn on_image(
    recipe: &Recipe,
    alternative: &Alternative,
    digest: Option<&str>,
) -> Result<String> {
    let below = alternative.recipes.iter().map(|name| recipe.by(Some(name)));
    let below = below.collect::<Result<Vec<_>>>()?;
    let own = recipe.by(alternative.recipe.as_deref())?;
    let files = below.iter().chain([&own]).map(Recipe::hash);
    Ok(hash_of_hashes(files.chain(digest)))
}

/// The hash with those of downloads.
pub(crate) fn with_downloads<'a>(hash: &'a str, sums: impl IntoIterator<Item = &'a str>) -> String {
    let mut sums = sums.into_iter().peekable();
    if sums.peek().is_none() {
        return hash.to_owned();
    }
    hash_of_hashes([hash].into_iter().chain(sums))
}

/// The possible hashes of an image that has the label `source`. It tells the digest of a base that no file has.
pub(crate) fn possible(
    recipes: &Recipes,
    sources: &Sources,
    recipe: &Recipe,
    source: Option<&str>,
) -> Result<Vec<Possible>> {
    let mut all = Vec::new();
    for alternative in sources.of(recipe.name()) {
        let sums = alternative
            .downloads
            .iter()
            .map(|one| download::pin(recipes, one));
        let sums: Option<Vec<_>> = sums.collect::<Result<_>>()?;
        // A file that was never downloaded is in no image.
        let Some(sums) = sums else { continue };
        let own = recipe.by(alternative.recipe.as_deref())?;
        let below = match (&alternative.image, own.parent()?) {
            (Some(name), _) => {
                let labelled = source.and_then(|source| {
                    source
                        .strip_prefix(pull::repository(name))?
                        .strip_prefix('@')
                });
                let pin = pull::pin(recipes, &alternative)?;
                let pin = pin.as_deref().or(labelled);
                vec![(on_image(recipe, &alternative, pin)?, false)]
            }
            (None, Some(parent)) if !alternative.packages => {
                let parents = possible(recipes, sources, &parent, source)?.into_iter();
                let on = |hash: &str| hash_of_hashes([own.hash(), hash]);
                parents
                    .map(|parent| (on(&parent.hash), parent.is_substitute))
                    .collect()
            }
            (None, _) => vec![(own.hash().to_owned(), false)],
        };
        all.extend(below.into_iter().map(|(hash, is_substitute)| Possible {
            hash: with_downloads(&hash, sums.iter().map(String::as_str)),
            is_substitute: is_substitute || alternative.substitute,
            has_content: !alternative.content.is_empty(),
        }));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The hashes of an image and of one on it, with the operator's sources.
    fn hashes(sources: &str, label: Option<&str>) -> [Vec<(String, bool)>; 2] {
        let dir = tempfile::tempdir().unwrap();
        let on_base = "ARG BASE=localhost/wharf/base:1\nFROM ${BASE}\n";
        for (name, text) in [("base", "FROM scratch\n"), ("tools", on_base)] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("Containerfile"), text).unwrap();
        }
        let mut recipes = Recipes::new(dir.path().into(), dir.path().into());
        let file = dir.path().join("own.toml");
        fs::write(&file, sources).unwrap();
        recipes.sources = Some(file);
        let sources = Sources::read(&recipes).unwrap();
        ["base", "tools"].map(|name| {
            let recipe = Recipe::read(&recipes, &sources, name).unwrap();
            let all = possible(&recipes, &sources, &recipe, label).unwrap();
            all.into_iter()
                .map(|one| (one.hash, one.is_substitute))
                .collect()
        })
    }

    #[test]
    fn images_of_earlier_versions_stay_current() {
        // The labels that these versions wrote.
        let [base, tools] =
            ["c0a8557df4c44ebb", "1d2eb91d89638be0"].map(|hash| (hash.to_owned(), false));
        assert_eq!(hashes("", None), [[base.clone()], [tools.clone()]]);
        let sources = "[[base.from]]\nimage = \"hub/base:1\"\n[[base.from]]\npackages = true\n";
        let [of_base, of_tools] = hashes(sources, None);
        assert_eq!((of_base.len(), of_tools.len()), (2, 2));
        assert!(of_base.contains(&base) && of_tools.contains(&tools));
    }

    #[test]
    fn each_source_has_a_hash_of_its_own() {
        let sources = "[[base.from]]\nimage = \"hub/base:1\"\n[[base.from]]\nsubstitute = true\n";
        let one = hashes(sources, Some("hub/base@sha256:1"));
        let two = hashes(sources, Some("hub/base@sha256:2"));
        for (one, two) in one.iter().zip(&two) {
            assert_ne!(one[0], two[0]);
            assert_eq!(one[1], two[1]);
            // A substitute below an image makes it one.
            assert!(!one[0].1 && one[1].1);
        }
        // The digest of another image does not count.
        let other = hashes(sources, Some("hub/base-2@sha256:1"));
        assert_eq!(other, hashes(sources, None));
    }
}
