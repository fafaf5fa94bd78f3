//! A digest of an instance's specification, stored in its configuration.

use wharf_guest::Spec;

/// Digest of the parts of a specification that are fixed at creation. It excludes sizes, which
/// change, and files, which are removed after the first start.
#[must_use]
pub fn of(spec: &Spec) -> String {
    let mut fnv = Fnv::new();
    let network = &spec.network;
    fnv.list([&spec.hostname]);
    fnv.list([&network.id, &network.subnet, &network.address]);
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
    format!("{:016x}", fnv.0)
}

/// FNV-1a with 64 bits, which is stable over all versions. It detects mistakes, not forgeries.
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
}
