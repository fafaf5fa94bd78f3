//! What drivers last said their nodes can do.

use crate::domain::driver::Features;
use crate::domain::ids::NodeId;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The last successful probe of each node. Empty for a node that never answered.
#[derive(Debug, Default)]
pub struct NodeFeatures(Mutex<BTreeMap<NodeId, Features>>);

impl NodeFeatures {
    /// What a node can do, if it ever answered.
    pub fn get(&self, node: &NodeId) -> Option<Features> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(node).copied()
    }

    /// Notes an answer; true if it differs from the last.
    pub fn set(&self, node: &NodeId, features: Features) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(node.clone(), features) != Some(features)
    }
}
