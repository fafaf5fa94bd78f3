//! The names of images.

use std::fmt;

/// The registry of an image, as the image's name tells it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Registry {
    /// The one that an engine takes for names without a host.
    OfEngine,
    /// A host, with its port if the name has one.
    Host(String),
}

impl Registry {
    /// The registry with this host; without one, that of names without a host.
    pub fn new(host: Option<&str>) -> Self {
        host.map_or(Self::OfEngine, |host| Self::Host(host.to_ascii_lowercase()))
    }

    /// The registry of an image with this name. Engines take the first part of a name for a host by the same rule.
    pub fn of(image: &str) -> Self {
        let first = image.split_once('/').map(|(first, _)| first);
        let is_host = |first: &&str| {
            let has_capitals = first.bytes().any(|byte| byte.is_ascii_uppercase());
            first.contains(['.', ':']) || *first == "localhost" || has_capitals
        };
        Self::new(first.filter(is_host))
    }

    /// Its host, unless the name has none.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::OfEngine => None,
            Self::Host(host) => Some(host),
        }
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.host().unwrap_or("the engine's own registry"))
    }
}

#[cfg(test)]
mod tests {
    use super::Registry;

    #[test]
    fn a_host_is_the_first_of_several_parts_with_a_dot_or_a_port() {
        for (image, host) in [
            ("tools", None),
            ("tools:1.0", None),
            ("team/tools:1.0", None),
            ("team/registry.example/tools", None),
            ("Team/tools", Some("team")),
            ("localhosts/tools", None),
            ("localhost/wharf/base:1", Some("localhost")),
            ("registry.example/tools", Some("registry.example")),
            ("Registry.Example/tools", Some("registry.example")),
            (
                "registry.example:5000/a/b@sha256:00",
                Some("registry.example:5000"),
            ),
            ("registry:5000/tools", Some("registry:5000")),
            ("registry.example.evil/tools", Some("registry.example.evil")),
            ("", None),
        ] {
            assert_eq!(Registry::of(image).host(), host, "{image}");
            assert_eq!(Registry::of(image), Registry::new(host), "{image}");
        }
    }
}
