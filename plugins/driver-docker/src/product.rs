//! Which engine it is, where that matters.

use crate::api::model::Version;
use crate::context::Context;
use wharf_guest::Error;

/// Name and version of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// `Docker Engine`, `Podman Engine`.
    pub name: String,
    /// As the engine writes it.
    pub version: String,
    /// Of its Docker interface.
    pub api_version: String,
}

impl Product {
    /// Asks the engine.
    ///
    /// # Errors
    /// When it gives no answer.
    pub fn of(ctx: &Context) -> Result<Self, Error> {
        let step = "asking for the version";
        let told = ctx.api.ping()?.map_err(|refusal| refusal.during(step))?;
        if let Some(product) = told {
            return Ok(product);
        }
        let version = ctx.api.version()?.map_err(|refusal| refusal.during(step))?;
        Ok(Self::named(&version))
    }

    /// From the headers of any answer: `Docker/20.10.24 (linux)` or `Libpod/4.3.1 (linux)`.
    #[must_use]
    pub fn of_headers(server: &str, api_version: &str) -> Option<Self> {
        let (name, rest) = server.split_once('/')?;
        let name = match name {
            "Docker" => "Docker Engine",
            "Libpod" => "Podman Engine",
            _ => return None,
        };
        Some(Self {
            name: name.to_owned(),
            version: rest.split(' ').next()?.to_owned(),
            api_version: api_version.to_owned(),
        })
    }

    /// From the engine's own words.
    #[must_use]
    pub fn named(version: &Version) -> Self {
        let first = version.components.as_deref().and_then(<[_]>::first);
        let name = match first {
            Some(first) if first.name != "Engine" && !first.name.is_empty() => &first.name,
            _ => "Docker Engine",
        };
        Self {
            name: name.to_owned(),
            version: version.version.clone(),
            api_version: version.api_version.clone(),
        }
    }

    /// Whether it has Podman's own interface beside Docker's.
    #[must_use]
    pub fn is_podman(&self) -> bool {
        self.name.to_lowercase().contains("podman")
    }

    /// Whether it can be asked to pick user namespaces. Seen with 4.3.1: a creation that picks one
    /// takes the locks of images and layers in the other order than a question about images.
    #[must_use]
    pub fn makes_user_namespaces(&self) -> bool {
        !self.is_podman() || numbers(&self.version) > PODMAN_THAT_HANGS
    }

    /// Whether all that is in a container can be put into another. Podman 4.3.1 unpacks an archive so
    /// that all of it belongs to root, whatever is asked for; 5.4.2, with user namespaces that it
    /// picks, breaks off.
    #[must_use]
    pub fn moves_content(&self) -> bool {
        !self.is_podman()
    }

    /// Whether a removal gives a first process that ignores its end ten seconds; Docker kills at once.
    #[must_use]
    pub fn waits_to_remove(&self) -> bool {
        self.is_podman()
    }

    /// Whether the size of a container that runs can change: everywhere but on the first Podmans 4.
    #[must_use]
    pub fn resizes_live(&self) -> bool {
        !self.is_podman() || numbers(&self.version) >= PODMAN_WITH_UPDATE
    }
}

/// The first Podman that can change a container's limits, in its own interface; 5 can in Docker's.
const PODMAN_WITH_UPDATE: (u32, u32) = (4, 3);
/// The last Podman that is known to hang.
const PODMAN_THAT_HANGS: (u32, u32) = (4, 3);

/// `20.10.24+dfsg1` → (20, 10)
#[must_use]
pub fn numbers(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{Product, numbers};
    use crate::api::model::{Component, Version};

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(numbers("20.10.24+dfsg1"), (20, 10));
        assert!(numbers("1.9") < numbers("1.41"));
        assert!(numbers("1.53") > (1, 41));
        assert_eq!(numbers(""), (0, 0));
    }

    #[test]
    fn every_answer_names_the_product() {
        let named = |server| Product::of_headers(server, "1.41");
        let podman = named("Libpod/4.3.1 (linux)").unwrap();
        assert!(podman.is_podman());
        assert_eq!(podman.version, "4.3.1");
        let docker = named("Docker/20.10.24+dfsg1 (linux)").unwrap();
        assert_eq!(docker.name, "Docker Engine");
        assert_eq!(docker.version, "20.10.24+dfsg1");
        assert_eq!(named("nginx/1.22.1"), None);
        assert_eq!(named("nginx"), None);
    }

    #[test]
    fn the_product_is_named() {
        let named = |name: &str, version: &str| {
            Product::named(&Version {
                components: Some(vec![Component { name: name.into() }]),
                version: version.into(),
                ..Version::default()
            })
        };
        assert_eq!(named("Engine", "20.10.24").name, "Docker Engine");
        assert_eq!(Product::named(&Version::default()).name, "Docker Engine");
        assert!(named("Podman Engine", "5.4.2").is_podman());
        assert!(named("Podman Engine", "4.3.1").resizes_live());
        assert!(!named("Podman Engine", "4.2.0").resizes_live());
        assert!(!named("Podman Engine", "5.4.2").moves_content());
        assert!(named("Engine", "20.10.24").moves_content());
    }
}
