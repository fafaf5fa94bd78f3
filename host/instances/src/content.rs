//! Content of new instances and volumes that comes from backups.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;
use wharf_db::{INSTANCES, Rows, Table, VOLUMES, View, tables};
use wharf_domain::backup::{Backup, ContentOf};
use wharf_domain::driver::VolumeContent;
use wharf_domain::error::Error;
use wharf_domain::ids::{BackupId, InstanceId, NodeId, UserId};
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::kept::KeptStatus;
use wharf_domain::volume::Volume;
use wharf_engine::{EngineError, ObjectSource, Offers};
use wharf_plugin::NodeDriver;

/// The most contents of backups that come to nodes at once.
pub(crate) const AT_ONCE: usize = 4;
/// The time for the first look at nodes, right after a start of the server.
const FIRST_LOOK: Duration = Duration::from_secs(3);

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

/// Whether an instance or a volume that is being made waits for the content of a backup.
pub fn is_awaited(rows: &impl Rows, backup: BackupId) -> Result<bool, Error> {
    for row in rows.under(&CONTENT, &())? {
        let (id, content) = row?;
        if content.of.backup == backup && !content.has_come {
            let instance = rows.get(&INSTANCES, id)?;
            if instance.is_some_and(|row| !row.failed && row.intent == Intent::Run) {
                return Ok(true);
            }
        }
    }
    for row in rows.all(&VOLUMES)? {
        // A damaged row keeps no backup of the others.
        let Ok((_, (), volume)) = row else {
            continue;
        };
        let content = volume.of.content.as_ref();
        if volume.status() == KeptStatus::Creating && content.is_some_and(|of| of.backup == backup)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The place where content is until a node takes it.
#[async_trait]
pub trait ContentStore: Send + Sync {
    /// The newest complete backup of an instance, or the one with this id.
    fn backup(
        &self,
        view: &View<'_>,
        of: &Instance,
        wanted: Option<BackupId>,
    ) -> Result<Option<Backup>, Error>;

    /// The newest complete backup of a volume.
    fn backup_of_volume(&self, view: &View<'_>, of: &Volume) -> Result<Option<Backup>, Error>;

    /// Opens the content of a new instance or volume of a user, unless it has no place on a disk of this size.
    async fn open(
        &self,
        owner: UserId,
        content: &ContentOf,
        disk_gib: u32,
    ) -> Result<OpenContent, ContentFailure>;
}

/// Content that a node can take.
pub struct OpenContent {
    pub source: ObjectSource,
    /// Why the content ended early.
    pub failure: ContentFailures,
}

/// Content that a node takes. It is offered until this is dropped.
pub(crate) struct IncomingContent {
    taker: InstanceId,
    failures: ContentFailures,
    offers: Arc<Offers>,
    /// The place among those that come at once.
    _place: OwnedSemaphorePermit,
}

impl IncomingContent {
    /// Offers content to the engine of an instance, or to that of a volume.
    pub(crate) fn offer(
        taker: InstanceId,
        engine_kind: &str,
        opened: OpenContent,
        offers: &Arc<Offers>,
        place: OwnedSemaphorePermit,
    ) -> Result<Self, EngineError> {
        let OpenContent { source, failure } = opened;
        offers.put_object(taker, engine_kind, source)?;
        Ok(Self {
            taker,
            failures: failure,
            offers: Arc::clone(offers),
            _place: place,
        })
    }

    /// Whether no engine has taken it.
    pub(crate) fn is_offered(&self) -> bool {
        self.offers.waits(self.taker)
    }

    /// Why it has ended early.
    pub(crate) fn failure(&self) -> Option<ContentFailure> {
        self.failures.borrow().clone()
    }
}

impl Drop for IncomingContent {
    fn drop(&mut self) {
        self.offers.withdraw(self.taker);
    }
}

/// The nodes whose engines give and take content.
#[derive(Default)]
pub struct ContentNodes {
    kinds: BTreeMap<NodeId, String>,
    /// No other node may turn out to be one.
    all_seen: bool,
}

impl ContentNodes {
    /// Those that take content of this kind of engine.
    pub(crate) fn of_kind(&self, engine_kind: &str) -> Result<Vec<NodeId>, Error> {
        let nodes = self.kinds.iter().filter(|(_, kind)| *kind == engine_kind);
        let nodes: Vec<_> = nodes.map(|(node, _)| node.clone()).collect();
        if nodes.is_empty() && !self.all_seen {
            return Err(Error::Overloaded);
        }
        Ok(nodes)
    }
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
    /// Makes content from backups available while the store lives. Instances that wait for some retry otherwise.
    pub fn serve_content(&self, store: Weak<dyn ContentStore>) {
        let _ = self.content_store.set(store);
    }

    /// The store of content from backups.
    pub(crate) fn content_store(&self) -> Option<Arc<dyn ContentStore>> {
        self.content_store.get()?.upgrade()
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

    /// These nodes, after a moment for those that were not looked at since the start of the server.
    pub async fn content_nodes_seen(&self) -> ContentNodes {
        let all_seen = self.looked_at(|driver| driver.has_content()).await;
        ContentNodes {
            kinds: self.content_nodes(),
            all_seen,
        }
    }

    /// The nodes that send and take the content of volumes, with the kinds of their engines and the times at which
    /// they send it.
    pub fn volume_nodes(&self) -> BTreeMap<NodeId, (String, VolumeContent)> {
        let drivers = self.drivers.iter().filter_map(|(node, driver)| {
            let content = self.nodes.features(node)?.volume_content;
            let kind = driver.engine_kind().to_owned();
            (content != VolumeContent::Never).then(|| (node.clone(), (kind, content)))
        });
        drivers.collect()
    }

    /// These nodes, after a moment for those that were not looked at since the start of the server.
    pub async fn volume_nodes_seen(&self) -> ContentNodes {
        let all_seen = self.looked_at(|driver| driver.has_volumes()).await;
        let nodes = self.volume_nodes().into_iter();
        ContentNodes {
            kinds: nodes.map(|(node, (kind, _))| (node, kind)).collect(),
            all_seen,
        }
    }

    /// Waits a moment for the first looks at nodes. Returns whether all have ended.
    async fn looked_at(&self, which: impl Fn(&NodeDriver) -> bool) -> bool {
        let looks = async {
            for (node, driver) in &self.drivers {
                if which(driver) {
                    self.nodes.first_look(node).await;
                }
            }
        };
        timeout(FIRST_LOOK, looks).await.is_ok()
    }
}
