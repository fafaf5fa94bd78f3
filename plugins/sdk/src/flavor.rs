//! The trait of a flavor provider.

use crate::types::{Blueprint, BlueprintRequest, Error, Flavor};

/// Offers software environments. Both functions are pure: equal inputs give equal outputs.
pub trait FlavorProvider {
    /// Returns the flavors of this provider, in any order.
    fn flavors() -> Vec<Flavor>;

    /// Composes the blueprint of an instance of a flavor.
    fn blueprint(request: &BlueprintRequest) -> Result<Blueprint, Error>;
}
