//! The digest of a specification, which the labels of existing containers have.

use crate::fake::given::{spec, vm};
use driver_docker::digest;
use wharf_guest::PublishedPort;

#[test]
fn digests_in_labels_keep_their_values() {
    assert_eq!(digest::of(&spec(1)), "e40fa11fe23949d6");
    let mut given = vm(1);
    given.published.push(PublishedPort {
        node_port: 30_001,
        instance_port: 8888,
        private: true,
    });
    given.gpu_devices.push("nvidia.com/gpu=0".into());
    given.blueprint.command = vec!["/init".into(), "--fast".into()];
    assert_eq!(digest::of(&given), "7d17228d5db2bded");
}
