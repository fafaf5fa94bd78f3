//! A larger disk before a start, on nodes that grow a disk only while its instance is stopped.

use super::attempt::{Attempt, FIRST_PAUSE, GrowthEvent, NextAttempt};
use crate::growing::Work;
use std::time::Duration;
use tokio::time::Instant;
use wharf_db::Changes;
use wharf_domain::driver::{DriverReport, Phase, PluginError};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::shortage::of_restart;

/// A move that breaks off more often than this will not complete.
const MAX_BROKE_OFF: u32 = 3;
/// The time until the second event of a move. Each later one comes after twice the time, so that the
/// events of a move of hours are few.
const TELL_AGAIN: Duration = Duration::from_secs(10);

impl Attempt<'_> {
    /// Notes how far the work is for which the start waits. It may take long and wait for others, and drivers end
    /// one that stalls. The deadline is for the start that follows.
    pub async fn goes_on(&mut self, work: Work, progress: &str, pause: Duration) -> NextAttempt {
        self.app.growing.note(self.instance.id, work, progress);
        if let Err(next) = self.taken().await {
            return next;
        }
        self.extend_deadline();
        match self.tell(work, progress).await {
            Ok(()) => NextAttempt::After(pause),
            Err(error) => error.into(),
        }
    }

    /// Tells the owner how far the work is, from time to time.
    async fn tell(&mut self, work: Work, progress: &str) -> Result<(), Error> {
        let Some(what) = work.event(progress) else {
            return Ok(());
        };
        let now = Instant::now();
        let event = match self.history.growth_event {
            Some(last) if now < last.next => return Ok(()),
            Some(GrowthEvent { begun, .. }) => GrowthEvent {
                begun,
                next: now + begun.elapsed(),
            },
            None => GrowthEvent {
                begun: now,
                next: now + TELL_AGAIN,
            },
        };
        self.history.growth_event = Some(event);
        self.writer
            .on_row(move |row, view| Ok(Changes::none().record(row, view.now, what.clone())))
            .await
            .map(drop)
    }

    /// Moves the content a step on. The instance starts once the driver has nothing left to move.
    pub async fn grow(&mut self) -> NextAttempt {
        let spec = match self.spec(true) {
            Ok(spec) => spec,
            Err(error) => return error.into(),
        };
        match self.driver.grow(&spec).await {
            Ok(DriverReport {
                phase: Phase::Growing(progress),
                again,
                ..
            }) => {
                tracing::debug!(progress, "moving to a larger disk");
                let pause = again.unwrap_or(FIRST_PAUSE);
                self.goes_on(Work::Growing, &progress, pause).await
            }
            // The next start finds out what there is now.
            Ok(_) => NextAttempt::After(FIRST_PAUSE),
            Err(PluginError::Insufficient(short)) => {
                if let Err(next) = self.believe_failure().await {
                    return next;
                }
                let disk = short.iter().find(|s| s.field == "disk_size_gib");
                let kept = disk.and_then(|s| u32::try_from(s.available).ok());
                tracing::warn!(?short, "no room for a larger disk");
                let why = EventKind::RestartShort(of_restart(&short, self.instance.size, 0));
                self.writer.growth_failed(kept, why).await.into()
            }
            // Other moves come first.
            Err(PluginError::RetryLater(pause)) => self.goes_on(Work::Growing, "", pause).await,
            Err(
                error @ (PluginError::Invalid { .. }
                | PluginError::Conflict(_)
                | PluginError::NotFound
                | PluginError::Unsupported(_)),
            ) => self.give_up(&error.to_string()).await,
            Err(error @ (PluginError::Unreachable(_) | PluginError::Busy)) => error.into(),
            Err(error @ (PluginError::Other(_) | PluginError::Fault(_))) => {
                if self.breaks_off() {
                    return self.give_up(&error.to_string()).await;
                }
                error.into()
            }
        }
    }

    /// Notes that the work has broken off. Whether it will not complete.
    pub fn breaks_off(&mut self) -> bool {
        self.history.broke_off += 1;
        self.history.broke_off > MAX_BROKE_OFF
    }

    pub fn extend_deadline(&mut self) {
        let full = Duration::from_secs(self.app.config().provisioning_deadline_s);
        self.history.extend_deadline(self.instance, full);
    }
}
