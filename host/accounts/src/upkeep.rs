//! Regular work on keys and sessions: their last uses are written, and those that ended are removed.

use super::Accounts;
use super::session::{SESSION_USES, SESSIONS, Sessions};
use crate::last_use::{INTERVAL, write};
use std::time::Duration;
use tokio::time::{interval, sleep};
use wharf_db::{Changes, CommitTimes};
use wharf_domain::error::Error;
use wharf_domain::time::Timestamp;

/// The most sessions of one write.
const BATCH: usize = 1024;
/// Interval between two removals of keys that ended.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);
/// Time in milliseconds for which dead keys are listed: 30 days. The audit log has them longer.
const DEAD_KEYS_KEPT_MS: i64 = 30 * 24 * 3_600_000;

impl Accounts {
    /// Works until it is dropped.
    pub async fn maintain(&self) {
        let mut sweeps = interval(SWEEP_EVERY);
        loop {
            let done = tokio::select! {
                _ = sweeps.tick() => self.remove_dead_keys().await,
                () = sleep(INTERVAL) => self.remove_expired().await.and(self.write_uses().await),
            };
            if let Err(error) = done {
                tracing::warn!(error = %error.chain(), "the work on keys and sessions failed");
            }
        }
    }

    /// Writes the last uses.
    pub async fn write_uses(&self) -> Result<(), Error> {
        let of_keys = self.keys.write_uses().await;
        let sessions = self.sessions.load_full();
        let uses = sessions.iter();
        let uses = uses.map(|(id, session)| ((session.user, *id), &session.last_use));
        of_keys.and(write(&self.db, &SESSIONS, &SESSION_USES, uses).await)
    }

    /// Removes revoked and expired keys after their retention.
    async fn remove_dead_keys(&self) -> Result<(), Error> {
        let now = self.clock.times().earlier();
        let ended_before = Timestamp(now.0.saturating_sub(DEAD_KEYS_KEPT_MS));
        let keys = self.keys.remove_dead(ended_before).await?;
        if keys > 0 {
            tracing::info!(keys, "removed revoked and expired keys");
        }
        Ok(())
    }

    async fn remove_expired(&self) -> Result<(), Error> {
        // A system clock that is wrong for a while removes none.
        let CommitTimes { now, system } = self.clock.times();
        let (now, config) = (now.min(system), self.config.get().session);
        let sessions = self.sessions.load_full();
        let expired: Vec<_> = sessions
            .iter()
            .filter(|(_, session)| session.expires_at(&config) <= now)
            .map(|(id, session)| (session.user, *id))
            .collect();
        for batch in expired.chunks(BATCH) {
            let rows = batch.to_vec();
            let removed = self.db.write_essential(move |_| {
                let removed = rows.iter().fold(Changes::none(), |changes, (user, id)| {
                    changes.remove(&SESSIONS, (*user, *id))
                });
                Ok(((), removed))
            });
            removed.await?;
            self.sessions.rcu(|sessions| {
                let mut changed = Sessions::clone(sessions);
                for (_, id) in batch {
                    changed.remove(id);
                }
                changed
            });
            self.keys.access.notify();
        }
        Ok(())
    }
}
