//! The steps of a move that copies the content to the engine of another node.

use super::attempt::{Attempt, FIRST_PAUSE, NextAttempt};
use super::spec;
use super::worker::MAX_AWAY;
use crate::nodes::NodeState;
use std::time::Duration;
use tokio::time::Instant;
use wharf_db::Read as _;
use wharf_domain::driver::{DriverTarget, Phase, Spec};
use wharf_domain::error::Error;
use wharf_domain::ids::NodeId;
use wharf_plugin::NodeDriver;

/// How long the old node may take to show its own store. The next attempt asks again.
const VERIFIED_WITHIN: Duration = Duration::from_secs(1);

/// The old node of a move.
struct Source {
    node: NodeId,
    driver: NodeDriver,
    target: DriverTarget,
}

impl Attempt<'_> {
    /// Moves the instance a step on. The attempt is one of the new node.
    pub async fn carry(&mut self, is_complete: bool) -> NextAttempt {
        let source = match self.source() {
            Ok(Some(source)) => source,
            Ok(None) => return self.without_source(is_complete).await,
            Err(error) => return error.into(),
        };
        self.history.old_away_since = None;
        if is_complete {
            return self.remove_source(&source).await;
        }
        if !self.history.offered
            && let Err(next) = self.offer(&source).await
        {
            return next;
        }
        let spec = match self.spec_of_copy() {
            Ok(spec) => spec,
            Err(error) => return error.into(),
        };
        let fetched = self.driver.fetch_content(&spec).await;
        // A transfer that broke off has taken the offer.
        self.history.offered = fetched.is_ok();
        let report = match self.judge_move(fetched).await {
            Ok(report) => report,
            Err(next) => return next,
        };
        match report.phase {
            Phase::Stopped(_) => match self.believe().await {
                Ok(()) => self.writer.copied().await.into(),
                Err(next) => next,
            },
            Phase::Elsewhere(progress) => {
                tracing::debug!(progress, "content moves from another node");
                NextAttempt::After(report.again.unwrap_or(FIRST_PAUSE))
            }
            phase => {
                self.abandon_move(format!("the engine reports {phase:?}"))
                    .await
            }
        }
    }

    /// The old node; none while it is out of reach.
    fn source(&self) -> Result<Option<Source>, Error> {
        let row = self.app.db.read(|rows| rows.instance(self.instance.id))?;
        let row = row.ok_or_else(|| Error::internal("the instance has gone"))?;
        let driver = self.app.drivers.get(&row.node).cloned();
        let is_there = self.app.nodes.state(&row.node) == NodeState::Reachable;
        driver
            .filter(|_| is_there)
            .map(|driver| {
                let target = spec::target(self.app, &row)?;
                Ok(Source {
                    node: row.node.clone(),
                    driver,
                    target,
                })
            })
            .transpose()
    }

    /// Waits for an old node that is out of reach. The content is still there, unless the copy is complete.
    async fn without_source(&mut self, is_complete: bool) -> NextAttempt {
        let since = self.history.old_away_since;
        let since = *self
            .history
            .old_away_since
            .insert(since.unwrap_or_else(Instant::now));
        if is_complete || since.elapsed() < MAX_AWAY {
            return NextAttempt::After(FIRST_PAUSE);
        }
        self.history.old_away_since = None;
        self.abandon_move("the old node is out of reach".to_owned())
            .await
    }

    /// Offers the content of the old node. Someone may have started the instance there by hand.
    async fn offer(&mut self, source: &Source) -> Result<(), NextAttempt> {
        let offered = source.driver.offer_content(&source.target).await;
        let report = self.judge_move(offered).await?;
        match report.phase {
            Phase::Stopped(_) => {
                self.history.offered = true;
                Ok(())
            }
            Phase::Ready | Phase::Booting => {
                let grace = Duration::from_millis(self.app.config().limits.stop_grace_ms);
                source.driver.stop(&source.target, grace).await?;
                Err(NextAttempt::After(FIRST_PAUSE))
            }
            phase => Err(self
                .abandon_move(format!("the old node reports {phase:?}"))
                .await),
        }
    }

    /// Removes the old disk. Then the instance is on the new node.
    async fn remove_source(&mut self, source: &Source) -> NextAttempt {
        let verified = self.app.nodes.verified(&source.driver);
        let Ok(interruptions) = tokio::time::timeout(VERIFIED_WITHIN, verified).await else {
            return NextAttempt::After(FIRST_PAUSE);
        };
        let report = match source.driver.delete(&source.target).await {
            Ok(report) => report,
            Err(error) => return error.into(),
        };
        if report.phase != Phase::Absent {
            return NextAttempt::After(report.again.unwrap_or(FIRST_PAUSE));
        }
        let (node, driver) = (&source.node, &source.driver);
        if let Err(next) = self.believe_of(node, driver, interruptions).await {
            return next;
        }
        let deadline = self.app.deadline(self.app.clock.now());
        let arrived = self.writer.arrived(deadline).await;
        self.app.look_for_moves();
        arrived.into()
    }

    /// The specification of the copy. It has all content, and needs no snapshot of the old node.
    fn spec_of_copy(&self) -> Result<Spec, Error> {
        let spec = self.spec(true)?;
        Ok(Spec {
            source: None,
            ..spec
        })
    }
}
