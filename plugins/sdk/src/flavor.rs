//! What a flavor provider answers.

use crate::types::{Blueprint, BlueprintRequest, Error, Flavor};

/// Offers software environments. Both functions are pure: the same input, the same output.
pub trait FlavorProvider {
    /// What this provider offers, in any order.
    fn flavors() -> Vec<Flavor>;

    /// What an instance of a flavor is made of.
    fn blueprint(request: &BlueprintRequest) -> Result<Blueprint, Error>;
}
