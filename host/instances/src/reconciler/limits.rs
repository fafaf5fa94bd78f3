//! The prover of a node's limits: it lets the driver write beyond the size of a disk. An engine may cease to hold
//! sizes without a sign in its interface. Such a node takes nothing new until a later proof succeeds.

use super::store::NodeStore;
use crate::App;
use crate::flavor_images::{holders, images};
use crate::nodes::{BROKEN_LIMITS, BrokenLimits};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use uuid::Builder;
use wharf_db::{Changes, Read as _, Rows as _, View};
use wharf_domain::driver::{Limits, PluginError};
use wharf_domain::error::Error;
use wharf_domain::ids::{NodeId, VolumeId};
use wharf_domain::time::Timestamp;
use wharf_plugin::NodeDriver;

/// The time from a proof to the next one. A start of Wharf makes it due at once, and a restore after [`GAP`].
const EVERY: Duration = Duration::from_hours(24);
/// The least time from a proof to one that a restore asks for. A proof writes all that the engine's disk has in memory.
const GAP: Duration = Duration::from_mins(10);
/// How often the time is read, which the operator can set.
const TICK: Duration = Duration::from_secs(5);
/// The pause after a proof that found a breach: the operator may be mending it.
const WHILE_BROKEN: Duration = Duration::from_secs(10);
/// The pause after a proof without a result, first and longest. An image may be missing, or the node be full.
const PAUSE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(10));
/// The number of proofs without a result after which the operator is told.
const FRUITLESS: u32 = 10;

/// The reason that a proof has no result.
struct NoResult {
    why: String,
    /// The engine was too slow for it.
    is_slow: bool,
}

impl From<String> for NoResult {
    fn from(why: String) -> Self {
        Self {
            why,
            is_slow: false,
        }
    }
}

/// Lets one node prove its limits.
pub struct LimitsProver {
    app: Arc<App>,
    node: NodeId,
    driver: NodeDriver,
    /// Permits for proofs.
    proofs: Arc<Semaphore>,
}

impl LimitsProver {
    pub fn new(app: Arc<App>, node: NodeId, driver: NodeDriver, proofs: Arc<Semaphore>) -> Self {
        Self {
            app,
            node,
            driver,
            proofs,
        }
    }

    /// Runs until it is dropped.
    pub async fn run(self) {
        let mut pause = PAUSE.0;
        let mut fruitless = 0_u32;
        let mut is_broken = false;
        loop {
            let next = match self.prove(is_broken).await {
                Ok(found) => {
                    (pause, fruitless) = (PAUSE.0, 0);
                    is_broken = matches!(found, Ok(Limits::Broken(_)));
                    self.app.nodes.set_proof(&self.node, found.map(drop));
                    if is_broken { WHILE_BROKEN } else { EVERY }
                }
                Err(NoResult { why, is_slow }) => {
                    tracing::debug!(node = %self.node, why, "no proof of the node's limits");
                    fruitless = fruitless.saturating_add(1);
                    if fruitless == FRUITLESS {
                        tracing::warn!(
                            node = %self.node, why,
                            "the node has not proven that it holds the sizes of disks, after {FRUITLESS} tries"
                        );
                    }
                    self.app.nodes.set_proof(&self.node, Err(why));
                    let next = if is_slow { PAUSE.1 } else { pause };
                    pause = (next * 2).min(PAUSE.1);
                    next
                }
            };
            let now = self.app.clock.now();
            let asked = async {
                self.until(now.plus(GAP)).await;
                self.app.nodes.should_prove_limits(&self.node).await;
            };
            tokio::select! {
                biased;
                () = self.until(now.plus(next)) => {}
                () = asked => {}
            }
        }
    }

    /// Completes at a time of Wharf's own clock.
    async fn until(&self, time: Timestamp) {
        loop {
            let left = time.millis_since(self.app.clock.now());
            if left == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left).min(TICK)).await;
        }
    }

    /// Makes one proof, on the node's own store, or tells why the node cannot prove its limits. A second proof confirms
    /// a breach that was not known.
    async fn prove(&self, is_broken: bool) -> Result<Result<Limits, String>, NoResult> {
        let interruptions = self.app.nodes.verified(&self.driver).await;
        let id = self.id().map_err(|error| error.chain())?;
        let mut known = self.app.flavor_images.load_full();
        if known.is_empty() {
            known = Arc::new(images(&self.app.plugins, &self.app.config().login_user).await);
        }
        let references = holders(&known, self.driver.engine_kind());
        let permit = self.proofs.acquire().await;
        let mut proven = self.driver.prove_limits(id, &references).await;
        if !is_broken && matches!(proven, Ok(Limits::Broken(_))) {
            proven = self.driver.prove_limits(id, &references).await;
        }
        drop(permit);
        let found = match proven {
            Ok(found) => Ok(found),
            Err(PluginError::Unsupported(why)) => Err(why),
            Err(error) => {
                return Err(NoResult {
                    is_slow: matches!(error, PluginError::Unreachable(_) | PluginError::Fault(_)),
                    why: error.to_string(),
                });
            }
        };
        let store = NodeStore {
            app: &self.app,
            node: &self.node,
            driver: &self.driver,
        };
        if self.driver.interruptions() != interruptions || store.confirm().await.is_err() {
            return Err("it may be the result of another store".to_owned().into());
        }
        let noted = self.note(found.clone().ok()).await;
        noted.map_err(|error| error.chain())?;
        Ok(found)
    }

    /// The id in the name of the disk of a proof. A node always has the same one, so that a proof removes what an
    /// interrupted one has left, and no two nodes of a cluster have one.
    fn id(&self) -> Result<VolumeId, Error> {
        let installation = self.app.db.read(|rows| rows.installation())?;
        let hash = Sha256::new()
            .chain_update(installation)
            .chain_update(&self.node.0)
            .finalize();
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(hash).for_each(|(byte, of)| *byte = of);
        Ok(VolumeId(Builder::from_random_bytes(bytes).into_uuid()))
    }

    /// Notes a result that differs from the last one, and tells the operator. A breach that nothing can prove any
    /// more is none.
    async fn note(&self, found: Option<Limits>) -> Result<(), Error> {
        let (node, proves) = (self.node.clone(), found.is_some());
        let broken = match found {
            Some(Limits::Broken(why)) => Some(why),
            Some(Limits::Held) | None => None,
        };
        let why = broken.clone();
        let decide = move |view: &View<'_>| {
            let was_broken = view.rows.get(&BROKEN_LIMITS, &*node.0)?.is_some();
            let changes = if was_broken == broken.is_some() {
                Changes::none()
            } else {
                let row = broken.clone().map(|why| BrokenLimits {
                    since: view.system,
                    why,
                });
                Changes::none().set(&BROKEN_LIMITS, &*node.0, row)
            };
            Ok((was_broken, changes))
        };
        let was_broken = self.app.db.write_essential(decide).await?;
        match why {
            Some(why) if !was_broken => tracing::error!(
                node = %self.node, why,
                "the node does not hold the sizes of disks and volumes: it takes nothing new until a proof \
                 succeeds. On btrfs, `btrfs quota rescan` mends inconsistent quotas"
            ),
            None if was_broken && !proves => tracing::warn!(
                node = %self.node,
                "the node cannot prove any more that it holds sizes: it takes new things again"
            ),
            None if was_broken => {
                tracing::info!(node = %self.node, "the node holds the sizes of disks and volumes again");
            }
            _ => {}
        }
        Ok(())
    }
}
