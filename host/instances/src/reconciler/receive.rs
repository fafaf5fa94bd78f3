//! The step of a new instance whose content comes from a backup, before its first start.

use super::attempt::{Attempt, FIRST_PAUSE, NO_CONTENT, NextAttempt};
use crate::content::{ContentFailure, ContentRow, IncomingContent, content};
use std::sync::Arc;
use tokio::time::Instant;
use wharf_domain::backup::ContentOf;
use wharf_domain::driver::{Phase, PluginError};
use wharf_domain::error::Error;

/// Content that breaks off more often than this will not come.
pub const MAX_BROKE_OFF: u32 = 5;

impl Attempt<'_> {
    /// The content of the instance, if it comes from a backup.
    pub fn content(&self) -> Result<Option<ContentRow>, Error> {
        let id = self.instance.id;
        self.app.db.read(|rows| content(rows, id))
    }

    /// Brings the content to the node, until it is complete.
    pub async fn receive(&mut self, of: &ContentOf) -> Result<(), NextAttempt> {
        if let Some(failure) = self.content_failure() {
            return Err(self.without_content(failure).await);
        }
        if self.history.content.is_none() {
            self.open_content(of).await?;
        }
        let spec = self.spec(true)?;
        let fetched = self.driver.fetch_content(&spec).await;
        self.permit = None;
        match fetched {
            Ok(report) => match report.phase {
                Phase::Creating | Phase::Stopped(_) | Phase::Ready | Phase::Booting => {
                    self.believe().await?;
                    self.history.content = None;
                    self.writer.content_came(true).await?;
                    Ok(())
                }
                Phase::Elsewhere(progress) | Phase::Pulling(progress) => {
                    tracing::debug!(progress, "content comes from a backup");
                    self.extend_deadline();
                    Err(NextAttempt::After(report.again.unwrap_or(FIRST_PAUSE)))
                }
                Phase::Failed(why) => Err(self.give_up(&why).await),
                phase => Err(NextAttempt::Retry(format!("the engine reports {phase:?}"))),
            },
            Err(error) => Err(match self.content_failure() {
                Some(failure) => self.without_content(failure).await,
                None => self.broken_content(error).await,
            }),
        }
    }

    /// Offers the content, once it has a place among those that come at once. The deadline stands still meanwhile.
    async fn open_content(&mut self, of: &ContentOf) -> Result<(), NextAttempt> {
        let Some(store) = self.app.content_store() else {
            return Err(NextAttempt::After(FIRST_PAUSE));
        };
        // Other instances begin on the node meanwhile.
        self.permit = None;
        let (id, begun) = (self.instance.id, Instant::now());
        let place = tokio::select! {
            biased;
            place = Arc::clone(&self.app.content_places).acquire_owned() => place.ok(),
            () = self.notify.notified() => None,
        };
        let opened = match &place {
            Some(_) => {
                let (owner, size) = (self.instance.owner, self.instance.size);
                Some(store.open(owner, of, size.disk_size_gib).await)
            }
            None => None,
        };
        self.history.stand_still(begun, Instant::now());
        let (Some(place), Some(opened)) = (place, opened) else {
            return Err(NextAttempt::Look);
        };
        match opened {
            Ok(opened) => {
                let offers = self.app.plugins.offers();
                let offered = IncomingContent::offer(id, &of.engine_kind, opened, offers, place);
                let offered = offered.map_err(|error| NextAttempt::Retry(error.to_string()))?;
                self.history.content = Some(offered);
                Ok(())
            }
            Err(failure) => Err(self.without_content(failure).await),
        }
    }

    fn is_offered(&self) -> bool {
        let content = self.history.content.as_ref();
        content.is_some_and(IncomingContent::is_offered)
    }

    fn content_failure(&self) -> Option<ContentFailure> {
        let content = self.history.content.as_ref();
        content.and_then(IncomingContent::failure)
    }

    /// Opens the content again at the next attempt, if that can succeed.
    async fn without_content(&mut self, failure: ContentFailure) -> NextAttempt {
        self.history.content = None;
        self.history.broke_off += 1;
        if failure.is_final || self.history.broke_off > MAX_BROKE_OFF {
            self.give_up(&format!("{NO_CONTENT}{}", failure.words))
                .await
        } else {
            NextAttempt::Retry(failure.words)
        }
    }

    /// The engine did not take the content.
    async fn broken_content(&mut self, error: PluginError) -> NextAttempt {
        let is_final = matches!(
            error,
            PluginError::Invalid { .. }
                | PluginError::Conflict(_)
                | PluginError::Unsupported(_)
                | PluginError::NotFound
        );
        if is_final {
            return self.give_up(&error.to_string()).await;
        }
        let stays = match &error {
            PluginError::Busy => true,
            // Without the offer, a transfer took it, and the engine has lost what came.
            PluginError::RetryLater(_) => self.is_offered(),
            _ => false,
        };
        if !stays {
            self.history.content = None;
        }
        error.into()
    }
}
