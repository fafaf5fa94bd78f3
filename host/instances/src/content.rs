//! Content of new instances that comes from backups.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
use wharf_db::{INSTANCES, Rows, Table, tables};
use wharf_domain::backup::ContentOf;
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId, UserId};
use wharf_engine::ObjectSource;

tables! {
    /// The content of instances that were made from backups.
    pub const CONTENT: Table<(), InstanceId, ContentRow> = Table::part_of(&INSTANCES, b'x', 10);
}

/// The content of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentRow {
    pub of: ContentOf,
    /// The node has all of it.
    pub has_come: bool,
}

/// The content of an instance that is not made yet, if it comes from a backup.
pub(crate) fn content(rows: &impl Rows, id: InstanceId) -> Result<Option<ContentRow>, Error> {
    rows.get(&CONTENT, id)
}

/// The place where content is until a node takes it.
#[async_trait]
pub trait ContentStore: Send + Sync {
    /// Opens the content of a new instance of a user.
    async fn open(&self, owner: UserId, content: &ContentOf)
    -> Result<OpenContent, ContentFailure>;
}

/// Content that a node can take.
pub struct OpenContent {
    pub source: ObjectSource,
    /// Why the content ended early.
    pub failure: ContentFailures,
}

/// The failure of content, once there is one.
pub type ContentFailures = watch::Receiver<Option<ContentFailure>>;

/// Why content cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentFailure {
    /// For the user.
    pub words: String,
    /// Whether no later attempt can succeed.
    pub is_final: bool,
}

impl super::App {
    /// Makes content from backups available. Until then, instances that wait for some retry.
    pub fn serve_content(&self, store: Arc<dyn ContentStore>) {
        let _ = self.content_store.set(store);
    }

    /// The nodes whose engines give and take content, with the kinds of these engines.
    pub fn content_nodes(&self) -> BTreeMap<NodeId, String> {
        let moves_content = |node: &NodeId| {
            let features = self.nodes.features(node);
            features.is_some_and(|features| features.content)
        };
        let drivers = self.drivers.iter();
        let drivers = drivers.filter(|(node, driver)| driver.has_content() && moves_content(node));
        drivers
            .map(|(node, driver)| (node.clone(), driver.engine_kind().to_owned()))
            .collect()
    }

    /// The nodes that take content of this kind of engine.
    pub(crate) fn takes_content(&self, engine_kind: &str) -> Vec<NodeId> {
        let nodes = self.content_nodes().into_iter();
        let nodes = nodes.filter(|(_, kind)| kind == engine_kind);
        nodes.map(|(node, _)| node).collect()
    }
}
