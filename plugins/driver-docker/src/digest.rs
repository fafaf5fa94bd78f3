//! A digest of what a container is made from, kept as a label.
//!
//! Engines tell a container's configuration each in their own words; a label comes back as it was.

use wharf_guest::Spec;

/// Digest of everything in a specification that is fixed at creation. Sizes are not in it (they
/// change), nor are files (they are gone after the first start).
#[must_use]
pub fn of(spec: &Spec) -> String {
    let mut fnv = Fnv::new();
    let network = &spec.network;
    fnv.list([&spec.hostname]);
    fnv.list([
        &network.id,
        &network.subnet,
        &network.gateway,
        &network.address,
    ]);
    if let Some(public) = &spec.public_network {
        fnv.list([&public.id, &public.subnet, &public.address]);
    }
    fnv.list(
        spec.published
            .iter()
            .map(|p| format!("{}:{}", p.node_port, p.instance_port)),
    );
    fnv.list(&spec.gpu_devices);
    fnv.list(
        spec.blueprint
            .images
            .iter()
            .map(|i| format!("{}={}", i.engine_kind, i.reference)),
    );
    fnv.list(
        spec.blueprint
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    fnv.list(&spec.blueprint.command);
    format!("{:016x}", fnv.0)
}

/// FNV-1a, 64 bits: stable over versions of everything. It finds mistakes, not forgeries.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn list<T: AsRef<str>>(&mut self, items: impl IntoIterator<Item = T>) {
        for item in items {
            self.bytes(item.as_ref().as_bytes());
            self.bytes(&[0]);
        }
        self.bytes(&[1]);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Fnv;

    #[test]
    fn the_digest_is_fnv1a() {
        let mut fnv = Fnv::new();
        fnv.bytes(b"foobar");
        assert_eq!(fnv.0, 0x8594_4171_f739_67e8);
    }

    #[test]
    fn items_do_not_run_together() {
        let mut one = Fnv::new();
        one.list(["ab", "c"]);
        let mut other = Fnv::new();
        other.list(["a", "bc"]);
        assert_ne!(one.0, other.0);
    }
}
