//! The features of each node, as its last probe reported them.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use wharf_domain::driver::Features;
use wharf_domain::ids::NodeId;

/// The features of each node that has been probed successfully.
#[derive(Debug, Default)]
pub struct NodeFeatures(Mutex<BTreeMap<NodeId, Features>>);

impl NodeFeatures {
    /// Returns the features of a node, or `None` before its first successful probe.
    pub fn get(&self, node: &NodeId) -> Option<Features> {
        let all = self.0.lock();
        all.get(node).copied()
    }

    /// Stores the result of a probe. Returns whether it differs from the last result.
    pub fn set(&self, node: &NodeId, features: Features) -> bool {
        let mut all = self.0.lock();
        all.insert(node.clone(), features) != Some(features)
    }
}
