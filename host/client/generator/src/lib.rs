//! Generates the methods and types of the crate `wharf-client` from the OpenAPI document of the interface.

#![allow(
    clippy::indexing_slicing,
    reason = "serde_json values: a missing key is null"
)]

mod docs;
mod operations;
mod schema;
mod types;
mod unknown;

use anyhow::Result;
use proc_macro2::TokenStream;
use serde_json::Value;

/// Returns the names and texts of the files for a document in YAML.
pub fn generate(document: &str) -> Result<[(&'static str, String); 3]> {
    let document: Value = serde_saphyr::from_str(document)?;
    Ok([
        ("openapi.json", serde_json::to_string(&document)?),
        ("types.rs", formatted(types::generate(&document)?)?),
        (
            "operations.rs",
            formatted(operations::generate(&document)?)?,
        ),
    ])
}

/// Source text, each item documented.
fn formatted(tokens: TokenStream) -> Result<String> {
    let mut file = syn::parse2(tokens)?;
    docs::complete(&mut file);
    Ok(prettyplease::unparse(&file))
}
