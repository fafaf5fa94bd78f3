//! Whether a node shows the store that has its instances.
//!
//! An engine whose data disk is not mounted has an empty store, and a tunnel may lead to another engine.
//! Neither proves that an instance has ended.

use super::differences::{Differences, differences, digest};
use super::kept_differences::KeptDifferences;
use super::kept_looks::miss;
use super::on_node::OnNode;
use super::writer::ObservationWriter;
use crate::App;
use crate::nodes::Outage;
use crate::nodes::{NODES, NodeRow};
use std::sync::Arc;
use wharf_db::{Changes, Rows as _};
use wharf_domain::driver::{Observed, ObservedSnapshot, ObservedVolume, PluginError, StoreMark};
use wharf_domain::error::Error;
use wharf_domain::ids::NodeId;
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::volume::OfVolume;
use wharf_ground::apart::apart;
use wharf_plugin::NodeDriver;

/// The number of instances whose joint absence is an outage, even if the store has its mark. A single
/// absent instance was removed by hand.
const TOGETHER: usize = 2;

/// The reason of an end that the operator has accepted.
const ACCEPTED_WITHOUT: &str = "absent from the engine that the operator accepted";

/// A node's store.
pub struct NodeStore<'a> {
    pub app: &'a App,
    pub node: &'a NodeId,
    pub driver: &'a NodeDriver,
}

/// The finding about a node's store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreVerdict {
    /// The store is the node's own.
    Own,
    /// The store is the node's own; the database does not have its mark yet, which this is.
    Pin(String),
    /// The store is the node's own, and needs a mark. It gets a new one: an earlier one could be put on another
    /// store, which the engine may show from one call to the next.
    Mark,
    /// It is not known to be the node's own.
    Outage(Outage),
}

/// A node's own account of its objects.
pub struct Listed {
    pub instances: Vec<Observed>,
    /// None if the driver did not tell. That says nothing about a volume.
    pub volumes: Option<Vec<ObservedVolume>>,
    /// None if the driver did not tell.
    pub snapshots: Option<Vec<ObservedSnapshot>>,
}

impl Listed {
    /// Asks the node.
    pub async fn of(driver: &NodeDriver) -> Result<Self, PluginError> {
        Ok(Self {
            instances: driver.list().await?,
            volumes: listed::<OfVolume>(driver).await?,
            snapshots: listed::<OfSnapshot>(driver).await?,
        })
    }

    /// A digest that does not depend on the order.
    pub fn digest(&self) -> ListDigest {
        let volumes = self.volumes.as_ref().map(|volumes| digest(volumes));
        let snapshots = self.snapshots.as_ref().map(|snapshots| digest(snapshots));
        (digest(&self.instances), volumes, snapshots)
    }
}

/// A digest of each part of a list.
pub type ListDigest = (u64, Option<u64>, Option<u64>);

/// The volumes or the snapshots of a node.
async fn listed<K: OnNode>(driver: &NodeDriver) -> Result<Option<Vec<K::Listed>>, PluginError> {
    match K::list(driver).await {
        Ok(listed) => Ok(Some(listed)),
        Err(error @ (PluginError::Unreachable(_) | PluginError::Busy)) => Err(error),
        Err(error) => {
            tracing::debug!(node = %driver.name(), %error, "cannot list each {}", K::WORD);
            Ok(None)
        }
    }
}

/// A verdict and its reasons.
pub struct JudgedStore {
    pub verdict: StoreVerdict,
    pub mark: StoreMark,
    pub found: Differences,
    pub row: NodeRow,
}

/// The reason why there is no verdict.
pub enum StoreFailure {
    Node(PluginError),
    Rows(Error),
}

impl From<PluginError> for StoreFailure {
    fn from(error: PluginError) -> Self {
        Self::Node(error)
    }
}

impl From<Error> for StoreFailure {
    fn from(error: Error) -> Self {
        Self::Rows(error)
    }
}

impl NodeStore<'_> {
    /// Asks the node and judges its store.
    pub async fn examine(&self) -> Result<JudgedStore, StoreFailure> {
        let listed = Listed::of(self.driver).await?;
        let mark = self.driver.identify().await?;
        self.judge(mark, listed).await
    }

    /// Confirms that the node shows the store that has its instances and volumes.
    pub async fn confirm(&self) -> Result<(), StoreFailure> {
        let StoreVerdict::Outage(outage) = self.examine().await?.verdict else {
            return Ok(());
        };
        self.app.nodes.look_soon(self.node);
        Err(PluginError::Unreachable(outage.to_string()).into())
    }

    /// Judges the store from its list and its mark.
    pub async fn judge(
        &self,
        mark: StoreMark,
        listed: Listed,
    ) -> Result<JudgedStore, StoreFailure> {
        let judged = self.judge_once(mark, listed).await?;
        let pins = match judged.verdict {
            StoreVerdict::Own => return Ok(judged),
            StoreVerdict::Pin(_) | StoreVerdict::Mark if judged.found.rows == 0 => {
                return Ok(judged);
            }
            StoreVerdict::Pin(_) | StoreVerdict::Mark => true,
            StoreVerdict::Outage(_) => false,
        };
        // Instances may have become reachable since the list. A second list has them.
        let listed = Listed::of(self.driver).await?;
        let mark = self.driver.identify().await?;
        let mut again = self.judge_once(mark, listed).await?;
        if pins {
            // The list of one store and the mark of another one say nothing. A list between two equal marks does.
            return if again.mark == judged.mark {
                Ok(again)
            } else {
                Err(changed())
            };
        }
        let before = judged.found;
        again
            .found
            .lost
            .retain(|id, _| before.lost.contains_key(id));
        again.found.volumes.also_missing_in(&before.volumes);
        again.found.snapshots.also_missing_in(&before.snapshots);
        again.verdict = verdict(&again.row, &again.mark, &again.found);
        Ok(again)
    }

    async fn judge_once(
        &self,
        mark: StoreMark,
        listed: Listed,
    ) -> Result<JudgedStore, StoreFailure> {
        let (db, node) = (self.app.db.clone(), self.node.clone());
        // Thousands of rows are read on a blocking thread. The read ends with this task, since a
        // database that is being read cannot be closed.
        let alive = Arc::new(());
        let caller = Arc::downgrade(&alive);
        let compared = apart(move || {
            let row = db
                .read(|rows| rows.get(&NODES, &*node.0))?
                .unwrap_or_default();
            Ok::<_, Error>((row, differences(&db, &node, listed, &caller)?))
        });
        let compared = compared.await;
        let (row, found) =
            compared.map_err(|e| Error::caused("the comparison was aborted", e))??;
        drop(alive);
        Ok(JudgedStore {
            verdict: verdict(&row, &mark, &found),
            mark,
            found,
            row,
        })
    }

    /// Brings the mark of the node's own store and the database into line. False if the engine keeps no
    /// mark. Without `eager`, the engine is not asked for one.
    pub async fn adopt(&self, judged: &JudgedStore, eager: bool) -> Result<bool, StoreFailure> {
        let mark = match &judged.verdict {
            StoreVerdict::Pin(mark) => Some(mark.clone()),
            StoreVerdict::Mark if eager => match self.mark_own(judged).await {
                Ok(Some(mark)) => Some(mark),
                Ok(None) => {
                    tracing::warn!(node = %self.node, "the engine's store does not keep its mark");
                    return Ok(false);
                }
                Err(failure) => return Err(failure),
            },
            _ => None,
        };
        let changed = mark.is_some() && mark != judged.row.mark;
        if changed || judged.row.accepted {
            let mark = mark.or_else(|| judged.row.mark.clone());
            self.write(mark).await?;
        }
        Ok(true)
    }

    /// Carries out the operator's word: what is absent has ended, and the present store is the node's.
    pub async fn accept(&self, judged: &JudgedStore) -> Result<(), StoreFailure> {
        for (id, generation) in &judged.found.lost {
            let writer = ObservationWriter {
                db: self.app.db.clone(),
                id: *id,
                generation: *generation,
            };
            writer.died(ACCEPTED_WITHOUT.to_owned()).await?;
        }
        self.miss(&judged.found.volumes).await?;
        self.miss(&judged.found.snapshots).await?;
        let mark = match &judged.mark {
            StoreMark::Is(mark) => Some(mark.clone()),
            StoreMark::Missing => self.mark().await?,
            StoreMark::Unsupported => None,
        };
        self.write(mark).await?;
        tracing::info!(node = %self.node, ended = judged.found.lost.len(), "the operator has accepted the node's engine");
        Ok(())
    }

    /// Puts into error what an accepted engine does not have.
    async fn miss<K: OnNode>(&self, found: &KeptDifferences<K>) -> Result<(), Error> {
        for id in &found.missing {
            miss::<K>(self.app, *id, ACCEPTED_WITHOUT.to_owned()).await?;
        }
        Ok(())
    }

    /// Marks the node's own store, and returns the mark that it has then. Fails if another store may have got it.
    async fn mark_own(&self, judged: &JudgedStore) -> Result<Option<String>, StoreFailure> {
        let Some(mark) = self.mark().await? else {
            return Ok(None);
        };
        if judged.found.present > 0 {
            let found = StoreMark::Is(mark.clone());
            let listed = Listed::of(self.driver).await?;
            let again = self.judge_once(found.clone(), listed).await?;
            if again.found.present == 0 || self.driver.identify().await? != found {
                return Err(changed());
            }
        }
        Ok(Some(mark))
    }

    /// Marks the store, and returns the mark that it has then.
    async fn mark(&self) -> Result<Option<String>, PluginError> {
        let mark = (self.app.random.id(self.app.clock.now()))
            .map_err(|error| PluginError::Fault(error.chain().to_string()))?
            .to_string();
        self.driver.mark(&mark).await?;
        Ok(match self.driver.identify().await? {
            StoreMark::Is(mark) => Some(mark),
            StoreMark::Missing | StoreMark::Unsupported => None,
        })
    }

    async fn write(&self, mark: Option<String>) -> Result<(), Error> {
        let node = self.node.clone();
        let row = NodeRow {
            mark,
            accepted: false,
        };
        let put = move |_: &wharf_db::View<'_>| {
            Ok(((), Changes::none().put(&NODES, &*node.0, row.clone())))
        };
        self.app.db.write_essential(put).await
    }
}

/// The failure of a look during which the engine changed its store.
fn changed() -> StoreFailure {
    PluginError::Unreachable("the engine's store changed during a look at it".to_owned()).into()
}

/// Judges a store. Pure.
fn verdict(row: &NodeRow, mark: &StoreMark, found: &Differences) -> StoreVerdict {
    let vanished = |at_least: usize| found.present == 0 && found.absent() >= at_least;
    match (&row.mark, mark) {
        (_, mark) if mark.is_volatile() => StoreVerdict::Own,
        (Some(pinned), StoreMark::Is(mark)) if pinned == mark => {
            if vanished(TOGETHER) {
                StoreVerdict::Outage(Outage::AllAbsent)
            } else {
                StoreVerdict::Own
            }
        }
        // Nothing is at stake on a node without instances and volumes.
        (Some(_), StoreMark::Is(mark)) if found.rows == 0 => StoreVerdict::Pin(mark.clone()),
        (Some(_), StoreMark::Is(_)) => StoreVerdict::Outage(Outage::OtherMark),
        (Some(_), StoreMark::Missing) if found.present > 0 || found.rows == 0 => StoreVerdict::Mark,
        (Some(_), StoreMark::Missing) => StoreVerdict::Outage(Outage::NoMark),
        _ if vanished(1) => StoreVerdict::Outage(Outage::AllAbsent),
        (None, StoreMark::Is(mark)) => StoreVerdict::Pin(mark.clone()),
        (None, StoreMark::Missing) => StoreVerdict::Mark,
        (_, StoreMark::Unsupported) => StoreVerdict::Own,
    }
}

#[cfg(test)]
mod tests {
    use super::{StoreVerdict, verdict};
    use crate::nodes::NodeRow;
    use crate::nodes::Outage;
    use crate::reconciler::differences::Differences;
    use wharf_domain::driver::StoreMark;
    use wharf_domain::ids::{Generation, InstanceId};

    fn judge(
        pinned: Option<&str>,
        mark: Option<&str>,
        present: usize,
        lost: usize,
    ) -> StoreVerdict {
        let row = NodeRow {
            mark: pinned.map(str::to_owned),
            accepted: false,
        };
        let id = |n: usize| InstanceId(uuid::Uuid::from_u128(n as u128));
        let found = Differences {
            rows: present + lost,
            present,
            lost: (0..lost).map(|n| (id(n), Generation(1))).collect(),
            ..Differences::default()
        };
        let mark = match mark {
            None => StoreMark::Missing,
            Some("?") => StoreMark::Unsupported,
            Some(mark) => StoreMark::Is(mark.to_owned()),
        };
        verdict(&row, &mark, &found)
    }

    #[test]
    fn a_store_that_may_be_another_one_is_an_outage() {
        let outage = |outage| StoreVerdict::Outage(outage);
        assert_eq!(judge(Some("a"), Some("a"), 1, 5), StoreVerdict::Own);
        assert_eq!(judge(Some("a"), Some("a"), 0, 1), StoreVerdict::Own);
        assert_eq!(judge(Some("a"), Some("a"), 0, 2), outage(Outage::AllAbsent));
        assert_eq!(judge(Some("a"), Some("b"), 3, 0), outage(Outage::OtherMark));
        assert_eq!(judge(Some("a"), None, 0, 1), outage(Outage::NoMark));
        assert_eq!(judge(Some("a"), Some("?"), 0, 1), outage(Outage::AllAbsent));
        assert_eq!(judge(None, Some("?"), 0, 1), outage(Outage::AllAbsent));
        assert_eq!(judge(None, Some("b"), 0, 1), outage(Outage::AllAbsent));
        assert_eq!(judge(None, None, 0, 1), outage(Outage::AllAbsent));
        assert_eq!(judge(None, Some("volatile"), 0, 5), StoreVerdict::Own);
    }

    #[test]
    fn a_store_gets_a_mark_and_a_node_without_instances_a_new_one() {
        assert_eq!(judge(None, None, 0, 0), StoreVerdict::Mark);
        assert_eq!(judge(None, Some("b"), 1, 0), StoreVerdict::Pin("b".into()));
        assert_eq!(
            judge(Some("a"), Some("b"), 0, 0),
            StoreVerdict::Pin("b".into())
        );
        assert_eq!(judge(Some("a"), None, 0, 0), StoreVerdict::Mark);
        assert_eq!(judge(Some("a"), None, 1, 1), StoreVerdict::Mark);
        assert_eq!(judge(None, Some("?"), 1, 3), StoreVerdict::Own);
    }
}
