//! Random bytes from the kernel.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use wharf_domain::error::Error;

/// Fills a buffer with random bytes.
pub fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|e| Error::caused("no random numbers", e))
}

/// Random bytes as text for URLs.
pub fn random_text<const BYTES: usize>() -> Result<String, Error> {
    let mut bytes = [0; BYTES];
    fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
