//! Hashes of plugins that the operator has pinned.

use super::error::LoadError;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The end of the name of a driver's request file.
pub const REQUESTS: &str = ".requests.toml";

/// A plugin's name and component, by name.
pub type Sources = BTreeMap<String, Cow<'static, [u8]>>;

/// Compares each pinned plugin with its hash.
pub fn check(pins: &BTreeMap<String, String>, sources: &Sources) -> Result<(), LoadError> {
    for (file, pinned) in pins {
        if is_request_file(file) {
            continue;
        }
        let name = file.strip_suffix(".wasm").unwrap_or(file);
        let wasm = sources
            .get(name)
            .ok_or_else(|| LoadError::PinnedAbsent { file: file.clone() })?;
        let found = hash(wasm);
        if !found.eq_ignore_ascii_case(pinned) {
            return Err(LoadError::Hash {
                file: file.clone(),
                pinned: pinned.clone(),
                found,
            });
        }
    }
    Ok(())
}

/// The hash of a file, as the configuration writes it.
pub fn hash(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    let digits = digest.iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", digits.collect::<String>())
}

/// Whether a file in the configuration's `[plugins]` has the requests of a driver.
pub fn is_request_file(file: &str) -> bool {
    file.ends_with(REQUESTS)
}
