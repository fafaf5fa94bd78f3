//! The making of images, each by the first of its alternatives that can be taken.

use crate::build::Build;
use crate::current::{on_image, with_downloads};
use crate::download::{self, Downloaded};
use crate::failure::Failure;
use crate::http::{HttpClient, Request};
use crate::node::Labels;
use crate::pull::Puller;
use crate::recipe::{INPUTS_LABEL, Recipe, hash_of_hashes};
use crate::sources::{Alternative, Sources};
use crate::{Recipes, progress, pull, rootfs};
use anyhow::{Context, Error, Result, bail};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;

/// The label with the content of an image, in words for users.
pub(crate) const CONTENT_LABEL: &str = "io.wharf.content";
/// The label with the origin of an image. An image on another one inherits it.
pub(crate) const SOURCE_LABEL: &str = "io.wharf.source";
/// The source of images from the distribution's packages.
const PACKAGES: &str = "packages";
/// Most characters of a reason.
const MAX_REASON: usize = 300;

/// An image that an engine has now.
#[derive(Debug, Clone, Serialize)]
pub struct MadeImage {
    /// The name, such as `base`.
    pub image: String,
    /// The content, in words for users; empty if the sources have none.
    pub content: String,
    /// `NAME@DIGEST` of the registry's image below it, or `packages`; none of an image of an earlier version.
    pub source: Option<String>,
    /// Whether it or an image below it is a substitute.
    pub is_substitute: bool,
    /// Whether the engine had no current one.
    pub is_new: bool,
    /// The alternatives that were tried before, in order.
    pub not_taken: Vec<NotTaken>,
    #[serde(skip)]
    pub(crate) hash: String,
}

/// An alternative that was not taken.
#[derive(Debug, Clone, Serialize)]
pub struct NotTaken {
    /// A registry's image, `packages`, or the base of the recipe.
    pub alternative: String,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was not taken: {}", self.alternative, self.reason)
    }
}

impl MadeImage {
    /// An image that is made from the distribution's packages.
    pub(crate) fn of_packages(name: &str, hash: &str) -> Self {
        Self {
            image: name.to_owned(),
            content: String::new(),
            source: Some(PACKAGES.to_owned()),
            is_substitute: false,
            is_new: false,
            not_taken: Vec::new(),
            hash: hash.to_owned(),
        }
    }
}

impl fmt::Display for MadeImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_new { "made" } else { "up to date" };
        write!(f, "{}: ", self.image)?;
        f.write_str(if self.content.is_empty() {
            state
        } else {
            &self.content
        })?;
        if self.is_substitute {
            f.write_str(", a substitute")?;
        }
        if let Some(source) = &self.source {
            write!(f, ", from {source}")?;
        }
        self.not_taken
            .iter()
            .try_for_each(|other| write!(f, "; {other}"))
    }
}

/// Makes images in an engine.
pub(crate) struct Maker<'a> {
    engine: &'a HttpClient,
    recipes: &'a Recipes,
    sources: Sources,
    /// The images whose sources are renewed.
    renewed: Vec<String>,
    made: Vec<MadeImage>,
}

impl<'a> Maker<'a> {
    /// A maker for images with these names.
    pub fn new(
        engine: &'a HttpClient,
        recipes: &'a Recipes,
        names: &[impl AsRef<str>],
    ) -> Result<Self> {
        let renewed = names.iter().filter(|_| recipes.renews);
        Ok(Self {
            engine,
            recipes,
            sources: Sources::read(recipes)?,
            renewed: renewed.map(|name| name.as_ref().to_owned()).collect(),
            made: Vec::new(),
        })
    }

    /// Makes an image and those below it, unless the engine has current ones.
    pub fn ensure(&mut self, name: &str) -> Result<MadeImage> {
        self.ensure_one(&Recipe::read(self.recipes, &self.sources, name)?)
    }

    /// All images that were ensured, each after those below it.
    pub fn into_made(self) -> Vec<MadeImage> {
        self.made
    }

    fn ensure_one(&mut self, recipe: &Recipe) -> Result<MadeImage> {
        if let Some(made) = self.made.iter().find(|made| made.image == recipe.name()) {
            return Ok(made.clone());
        }
        let made = match self.current(recipe)? {
            Some(made) => made,
            None => self.make(recipe)?,
        };
        progress::note(&made.to_string());
        self.made.push(made.clone());
        Ok(made)
    }

    /// The engine's image, if it is current and may stay.
    fn current(&self, recipe: &Recipe) -> Result<Option<MadeImage>> {
        if self.renews(recipe) {
            return Ok(None);
        }
        let Some(labels) = Labels::of(self.engine, &recipe.reference())? else {
            return Ok(None);
        };
        let found = labels.possible(self.recipes, &self.sources, recipe)?;
        let found = found.filter(|found| !(self.recipes.only_originals && found.is_substitute));
        Ok(found.map(|found| labels.image(recipe, found.hash, found.is_substitute)))
    }

    fn renews(&self, recipe: &Recipe) -> bool {
        self.renewed.iter().any(|name| name == recipe.name())
    }

    fn make(&mut self, recipe: &Recipe) -> Result<MadeImage> {
        let mut not_taken = Vec::new();
        for alternative in self.sources.of(recipe.name()) {
            let reason = if self.recipes.only_originals && alternative.substitute {
                "it is a substitute".to_owned()
            } else {
                match self.take(recipe, &alternative) {
                    Ok(mut made) => {
                        made.not_taken = not_taken;
                        return Ok(made);
                    }
                    Err(Failure::Ends(error)) if alternative.place.is_empty() => return Err(error),
                    Err(Failure::Ends(error)) => return Err(error.context(alternative.place)),
                    Err(Failure::Passed(error)) => one_line(&error),
                }
            };
            let alternative = name(recipe, &alternative);
            let other = NotTaken {
                alternative,
                reason,
            };
            progress::note(&other.to_string());
            not_taken.push(other);
        }
        let all: Vec<_> = not_taken.iter().map(ToString::to_string).collect();
        bail!("{}: {}", recipe.reference(), all.join("; "))
    }

    /// Makes an image by one alternative, unless the engine's image is that already.
    fn take(&mut self, recipe: &Recipe, alternative: &Alternative) -> Result<MadeImage, Failure> {
        let own = recipe.by(alternative.recipe.as_deref())?;
        let ground = self.ground(recipe, &own, alternative)?;
        let mut downloads = Vec::new();
        for one in &alternative.downloads {
            let renews = self.renews(recipe);
            downloads.push(download::take(self.recipes, &self.sources, one, renews)?);
        }
        let sums = downloads.iter().map(|one| one.sha256.as_str());
        let hash = with_downloads(&ground.hash, sums);
        let reference = recipe.reference();
        let present = Labels::of(self.engine, &reference)?;
        let has_content = !alternative.content.is_empty();
        if let Some(labels) = present.filter(|labels| labels.is_of(&hash, has_content)) {
            return Ok(labels.image(recipe, hash, ground.is_substitute));
        }
        let mut labels = Map::new();
        labels.insert(INPUTS_LABEL.to_owned(), hash.clone().into());
        labels.extend(
            ground
                .source
                .map(|source| (SOURCE_LABEL.to_owned(), source.into())),
        );
        let title = format!("Making the image {reference}");
        let made = progress::timed(&title, || match &ground.base {
            Some(base) => build(self.engine, &own, alternative, base, labels, &downloads),
            None => {
                let content = expanded(&alternative.content, &own.environment());
                labels.insert(CONTENT_LABEL.to_owned(), content.into());
                rootfs::import(self.engine, &own, &rootfs::tarball(&own)?, &labels)
            }
        });
        made.map_err(Failure::Passed)?;
        downloads
            .iter()
            .try_for_each(|one| one.record(self.recipes))?;
        let labels = Labels::of(self.engine, &reference)?;
        let labels = labels.with_context(|| format!("the engine lost {reference}"))?;
        let image = labels.image(recipe, hash, ground.is_substitute);
        Ok(MadeImage {
            is_new: true,
            ..image
        })
    }

    /// Takes the base of an alternative, whose last recipe is `own`.
    fn ground(
        &mut self,
        recipe: &Recipe,
        own: &Recipe,
        alternative: &Alternative,
    ) -> Result<Ground, Failure> {
        let mut ground = Ground {
            hash: own.hash().to_owned(),
            base: own
                .base()
                .filter(|_| !alternative.packages)
                .map(str::to_owned),
            source: None,
            is_substitute: alternative.substitute,
        };
        let puller = Puller {
            engine: self.engine,
            recipes: self.recipes,
            sources: &self.sources,
        };
        if let Some(name) = &alternative.image {
            let base = puller.take(alternative, name, self.renews(recipe))?;
            let repository = pull::repository(name);
            let exact = base
                .digest
                .as_ref()
                .map(|digest| format!("{repository}@{digest}"));
            ground.hash = on_image(recipe, alternative, base.digest.as_deref())?;
            ground.source = exact.or_else(|| Some(name.clone()));
            ground.base = Some(base.name);
        } else if let Some(base) = &ground.base {
            if let Some(parent) = own.parent()? {
                let parent = self.ensure_one(&parent)?;
                ground.hash = hash_of_hashes([own.hash(), parent.hash.as_str()]);
                ground.is_substitute |= parent.is_substitute;
            } else {
                if pull::found(self.engine, base)?.is_none() {
                    puller.pull(base)?;
                }
                ground.source = Some(base.clone());
            }
        } else {
            ground.source = Some(PACKAGES.to_owned());
        }
        Ok(ground)
    }
}

/// The base of an image.
struct Ground {
    /// The hash of the image without its downloads.
    hash: String,
    /// The image to build on. Without one, the image is made from packages.
    base: Option<String>,
    /// The label of the source, unless the base has it.
    source: Option<String>,
    is_substitute: bool,
}

/// Builds the recipes of an alternative, each on the image before it. `own` is the last one.
fn build(
    engine: &HttpClient,
    own: &Recipe,
    alternative: &Alternative,
    base: &str,
    mut labels: Map<String, Value>,
    downloads: &[Downloaded],
) -> Result<()> {
    let below: Vec<_> = alternative
        .recipes
        .iter()
        .map(|name| own.reference_below(name))
        .collect();
    let run = || {
        let mut base = base;
        for (name, reference) in alternative.recipes.iter().zip(&below) {
            let recipe = &own.by(Some(name))?;
            Build {
                recipe,
                reference,
                base,
                labels: Map::new(),
                downloads: &[],
            }
            .run(engine)?;
            base = reference;
        }
        let image = pull::found(engine, base)?;
        let variables = image
            .as_ref()
            .and_then(|image| image.pointer("/Config/Env")?.as_array());
        let variables = variables
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned);
        let variables: Vec<_> = variables.chain(own.environment()).collect();
        let content = expanded(&alternative.content, &variables);
        let is_own = |line: &&str| line.contains(CONTENT_LABEL);
        // Without one of its own, the image would inherit that of its base.
        if !content.is_empty() || !own.describing().iter().any(is_own) {
            labels.insert(CONTENT_LABEL.to_owned(), content.into());
        }
        Build {
            recipe: own,
            reference: &own.reference(),
            base,
            labels,
            downloads,
        }
        .run(engine)
    };
    let built = run();
    // The layers stay, as those of the image.
    for reference in &below {
        let path = format!("/images/{reference}?noprune=true");
        let _ = engine.send(Request::new("DELETE", &path));
    }
    built
}

/// The name of an alternative, for people.
fn name(recipe: &Recipe, alternative: &Alternative) -> String {
    let packages = alternative.packages.then_some(PACKAGES);
    let name = alternative.image.as_deref().or(packages);
    name.or(recipe.base()).unwrap_or(PACKAGES).to_owned()
}

/// The text with the variables `NAME=VALUE` in place of `{NAME}`, and with nothing in place of unknown ones.
fn expanded(text: &str, variables: &[String]) -> String {
    let mut parts = text.split('{');
    let mut done = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or((part, ""));
        let all = variables
            .iter()
            .rev()
            .filter_map(|variable| variable.split_once('='));
        let value = all
            .filter(|(known, _)| *known == name)
            .map(|(_, value)| value)
            .next();
        done.extend(
            value
                .unwrap_or_default()
                .chars()
                .filter(|c| !c.is_control()),
        );
        done.push_str(rest);
    }
    done.trim().to_owned()
}

/// An error with its causes, in one line of bounded length.
fn one_line(error: &Error) -> String {
    let text = format!("{error:#}");
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").chars().take(MAX_REASON).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_has_the_variables_of_the_image() {
        let variables = ["A=1".to_owned(), "B=b c".to_owned(), "A=2".to_owned()];
        assert_eq!(expanded("Tool {A}.{B}", &variables), "Tool 2.b c");
        assert_eq!(expanded("Tool {C}", &variables), "Tool");
        assert_eq!(expanded("Tool", &variables), "Tool");
    }

    #[test]
    fn a_line_tells_content_source_and_reasons() {
        let mut made = MadeImage {
            image: "studio".to_owned(),
            content: "Studio 1".to_owned(),
            source: Some("hub/studio@sha256:1".to_owned()),
            is_substitute: false,
            is_new: true,
            not_taken: Vec::new(),
            hash: String::new(),
        };
        assert_eq!(
            made.to_string(),
            "studio: Studio 1, from hub/studio@sha256:1"
        );
        made.source = None;
        made.is_substitute = true;
        made.not_taken.push(NotTaken {
            alternative: "hub/studio:1".to_owned(),
            reason: "no route".to_owned(),
        });
        assert_eq!(
            made.to_string(),
            "studio: Studio 1, a substitute; hub/studio:1 was not taken: no route"
        );
        made.content.clear();
        assert!(made.to_string().starts_with("studio: made, a substitute"));
    }
}
