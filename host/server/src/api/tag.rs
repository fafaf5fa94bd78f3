//! Entity tags: digests of rendered bodies. Equal tags mean equal bytes, whichever version of the
//! row, the configuration or Wharf rendered them.

use super::wire::{self, Sight};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use wharf_instances::InstanceCondition;

/// Bytes of the digest; collisions of 128 bits do not occur by chance.
const BYTES: usize = 16;

/// The tag of a body, without quotes.
pub fn tag(body: &[u8]) -> String {
    let mut tag = String::with_capacity(2 * BYTES);
    for byte in Sha256::digest(body).iter().take(BYTES) {
        // Writing into a string cannot fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag
}

/// The condition that the body of an instance has one of these tags: as the caller sees it, or as
/// another key of the owner has read it.
pub fn condition(tags: Vec<String>, sight: Sight) -> InstanceCondition {
    InstanceCondition::new(move |view| {
        for sight in [Sight::Whole, Sight::WithoutPassword, sight] {
            if tags.contains(&tag(&wire::instance(view, sight)?)) {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

#[cfg(test)]
mod tests {
    use super::tag;

    #[test]
    fn tags_differ_with_the_body() {
        assert_eq!(tag(b"a").len(), 32);
        assert_eq!(tag(b"a"), tag(b"a"));
        assert_ne!(tag(b"a"), tag(b"b"));
    }
}
