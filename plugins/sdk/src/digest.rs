//! A digest of the parts of a specification that are fixed at creation, for an object's label.
//!
//! Engines report a configuration in different forms, but return a label unchanged.

use crate::types::Spec;

/// FNV-1a with 64 bits, which is stable over all versions. It detects mistakes, not forgeries.
#[derive(Debug, Clone)]
pub struct Digest(u64);

impl Digest {
    /// Creates the digest of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a list of texts. Their boundaries count.
    pub fn list<T: AsRef<str>>(&mut self, items: impl IntoIterator<Item = T>) {
        for item in items {
            self.bytes(item.as_ref().as_bytes());
            self.bytes(&[0]);
        }
        self.bytes(&[1]);
    }

    /// Adds the published ports, GPUs, images and environment of a specification.
    pub fn composition(&mut self, spec: &Spec) {
        self.list(spec.published.iter().map(|p| {
            // Digests of earlier versions know public ports only.
            let end = if p.private { ":private" } else { "" };
            format!("{}:{}{end}", p.node_port, p.instance_port)
        }));
        self.list(&spec.gpu_devices);
        let pairs = |(name, value): (&String, &String)| format!("{name}={value}");
        let images = spec.blueprint.images.iter();
        self.list(images.map(|image| pairs((&image.engine_kind, &image.reference))));
        let environment = spec.blueprint.environment.iter();
        self.list(environment.map(|(name, value)| pairs((name, value))));
    }

    /// Returns the digest as 16 hexadecimal digits.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{:016x}", self.0)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn the_digest_is_fnv1a() {
        let mut digest = Digest::new();
        digest.bytes(b"foobar");
        assert_eq!(digest.0, 0x8594_4171_f739_67e8);
    }

    #[test]
    fn boundaries_between_items_matter() {
        let mut one = Digest::new();
        one.list(["ab", "c"]);
        let mut other = Digest::new();
        other.list(["a", "bc"]);
        assert_ne!(one.0, other.0);
    }
}
