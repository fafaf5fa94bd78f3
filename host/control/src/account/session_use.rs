//! Regular work on the sessions: their last uses are written, and expired ones removed.

use super::Accounts;
use super::session::{SESSION_USES, SESSIONS, Sessions};
use crate::App;
use crate::key_use::{INTERVAL, write};
use wharf_config::SessionConfig;
use wharf_db::{Changes, CommitTimes};
use wharf_domain::error::Error;

/// The most sessions of one write.
const BATCH: usize = 1024;

impl App {
    /// Works every minute, until it is dropped.
    pub async fn keep_sessions(&self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let kept = async {
                self.accounts.remove_expired(&self.config().session).await?;
                self.accounts.write_uses().await
            };
            if let Err(error) = kept.await {
                tracing::warn!(error = %error.chain(), "cannot write the state of sessions");
            }
        }
    }
}

impl Accounts {
    /// Writes the last uses.
    pub async fn write_uses(&self) -> Result<(), Error> {
        let sessions = self.sessions.load_full();
        let uses = sessions.iter();
        let uses = uses.map(|(id, session)| ((session.user, *id), &session.last_use));
        write(&self.db, &SESSIONS, &SESSION_USES, uses).await
    }

    async fn remove_expired(&self, config: &SessionConfig) -> Result<(), Error> {
        // A system clock that is wrong for a while removes none.
        let CommitTimes { now, system } = self.clock.times();
        let (now, sessions) = (now.min(system), self.sessions.load_full());
        let expired: Vec<_> = sessions
            .iter()
            .filter(|(_, session)| session.expires_at(config) <= now)
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
            self.access.notify();
        }
        Ok(())
    }
}
