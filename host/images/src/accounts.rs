//! The operator's accounts at registries, for the bases of images.

use std::collections::BTreeMap;
use std::fmt;
use wharf_domain::image::Registry;

/// The header with the account at one registry.
pub(crate) const OF_ONE: &str = "X-Registry-Auth";
/// The header of a build, with the accounts at all registries.
pub(crate) const OF_BUILDS: &str = "X-Registry-Config";

/// Values of headers with accounts. `Debug` shows the registries alone.
#[derive(Clone, Default)]
pub struct Accounts {
    /// The value for each registry.
    pub of_one: BTreeMap<Registry, String>,
    /// The value for builds.
    pub of_builds: Option<String>,
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.of_one.keys()).finish()
    }
}

impl Accounts {
    /// The header of a request for one image, if there is an account.
    pub(crate) fn header(&self, image: &str) -> Option<(&'static str, &str)> {
        let value = self.of_one.get(&Registry::of(image))?;
        Some((OF_ONE, value))
    }

    /// The header of a build, if there are accounts.
    pub(crate) fn header_of_builds(&self) -> Option<(&'static str, &str)> {
        Some((OF_BUILDS, self.of_builds.as_deref()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_for_the_images_of_its_registry_alone() {
        let registry = Registry::new(Some("registry.example"));
        let accounts = Accounts {
            of_one: [(registry, "c2VjcmV0".to_owned())].into(),
            of_builds: Some("YWxs".to_owned()),
        };
        assert!(!format!("{accounts:?}").contains("c2VjcmV0"));
        let header = accounts.header("registry.example/base:1");
        assert_eq!(header, Some((OF_ONE, "c2VjcmV0")));
        assert_eq!(accounts.header("registry.example.evil/base:1"), None);
        assert_eq!(accounts.header("base:1"), None);
    }
}
