//! Differences between engines and versions.

use crate::api::model::Version;
use crate::context::Context;
use wharf_guest::{During, Error, version_numbers};

/// Name and version of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// `Docker Engine` or `Podman Engine`.
    pub name: String,
    /// The version in the engine's format.
    pub version: String,
    /// The version of its Docker interface.
    pub api_version: String,
}

impl Product {
    /// Asks the engine.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn of(ctx: &Context) -> Result<Self, Error> {
        let step = "reading the version";
        let told = ctx.api.ping()?.during(step)?;
        if let Some(product) = told {
            return Ok(product);
        }
        let version = ctx.api.version()?.during(step)?;
        Ok(Self::named(&version))
    }

    /// Parses the headers of any answer: `Docker/20.10.24 (linux)` or `Libpod/4.3.1 (linux)`.
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

    /// Reads the answer to a version request.
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

    /// Returns whether the engine has Podman's own interface beside Docker's.
    pub fn is_podman(&self) -> bool {
        self.name.to_lowercase().contains("podman")
    }

    /// Returns whether the engine can pick user namespaces. Podman 4.3.1 deadlocks: such a creation
    /// locks images and layers in the opposite order of a query about images.
    pub fn makes_user_namespaces(&self) -> bool {
        !self.is_podman() || version_numbers(&self.version) > PODMAN_THAT_HANGS
    }

    /// Returns whether content can be copied between containers. Podman 4.3.1 unpacks every file as
    /// owned by root. Podman 5.4.2 fails with automatic user namespaces.
    pub fn moves_content(&self) -> bool {
        !self.is_podman()
    }

    /// Returns whether a removal waits ten seconds for a first process that ignores SIGTERM. Docker
    /// kills at once.
    pub fn waits_to_remove(&self) -> bool {
        self.is_podman()
    }

    /// Returns whether running containers can be resized. Only early versions of Podman 4 cannot.
    pub fn resizes_live(&self) -> bool {
        !self.is_podman() || version_numbers(&self.version) >= PODMAN_WITH_UPDATE
    }
}

/// The first Podman that can change a container's limits, in its own interface. Podman 5 can in
/// Docker's.
const PODMAN_WITH_UPDATE: (u32, u32) = (4, 3);
/// The last Podman with the deadlock of [`Product::makes_user_namespaces`].
const PODMAN_THAT_HANGS: (u32, u32) = (4, 3);

#[cfg(test)]
mod tests {
    use super::Product;
    use crate::api::model::{Component, Version};

    #[test]
    fn headers_name_the_product() {
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
    fn a_version_answer_names_the_product() {
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
