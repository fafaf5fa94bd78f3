//! Wharf's own software environments.
//!
//! [`catalog`] has one file per flavor. [`first_boot`] and [`compose`] have the common parts, above
//! all the files for an image's first start.

pub mod catalog;
pub mod compose;
pub mod entry;
pub mod first_boot;

use wharf_guest::{Blueprint, BlueprintRequest, Error, Flavor, FlavorProvider};

/// The provider that the host loads.
pub struct Standard;

impl FlavorProvider for Standard {
    fn flavors() -> Vec<Flavor> {
        catalog::ALL.iter().map(|entry| entry.describe()).collect()
    }

    fn blueprint(request: &BlueprintRequest) -> Result<Blueprint, Error> {
        let entry = catalog::ALL
            .iter()
            .find(|entry| entry.name == request.flavor)
            .ok_or(Error::NotFound)?;
        compose::blueprint(entry, request)
    }
}

wharf_guest::export!(Standard: FlavorProvider);
