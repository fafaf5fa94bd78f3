//! A larger disk before a start, on nodes that can only give it to an instance that does not run.

use super::{FIRST_PAUSE, Next, Worker, done};
use crate::domain::driver::{Phase, PluginError, Report, Target};
use crate::domain::event::What;
use crate::domain::instance::Instance;
use crate::domain::shortage::of_restart;
use crate::plugin::NodeDriver;
use crate::reconciler::apply::Apply;
use crate::reconciler::spec;
use std::time::{Duration, Instant};

/// A move that breaks off so often will not come to its end.
const MAX_BROKE_OFF: u32 = 3;

impl Worker {
    /// Moves it a step on. The instance starts once its driver finds nothing left to do.
    pub(super) async fn grow(
        &mut self,
        instance: &Instance,
        apply: &Apply,
        driver: &NodeDriver,
        target: Target,
    ) -> Next {
        let id = self.id;
        let spec = match self.detail() {
            Ok(detail) => spec::spec(target, instance, detail, true),
            Err(error) => return Next::Retry(error.to_string()),
        };
        match driver.grow(&spec).await {
            Ok(Report {
                phase: Phase::Growing(progress),
                again,
                ..
            }) => {
                tracing::debug!(instance = %id, progress, "moving to a larger disk");
                self.be_patient(instance);
                Next::After(again.unwrap_or(FIRST_PAUSE))
            }
            // Whatever there is now, the next start says what to make of it.
            Ok(_) => Next::After(FIRST_PAUSE),
            Err(PluginError::Insufficient(short)) => {
                let disk = short.iter().find(|s| s.field == "disk_size_gib");
                let kept = disk.and_then(|s| u32::try_from(s.available).ok());
                tracing::warn!(instance = %id, ?short, "keeps its disk");
                let why = What::RestartShort(of_restart(&short, instance.size, 0));
                done(apply.not_grown(kept, why).await)
            }
            // Its turn has not come.
            Err(PluginError::RetryLater(pause)) => {
                self.be_patient(instance);
                Next::After(pause)
            }
            Err(
                error @ (PluginError::Invalid { .. }
                | PluginError::Conflict(_)
                | PluginError::NotFound
                | PluginError::Unsupported(_)),
            ) => self.give_up(instance, apply, &error.to_string()).await,
            Err(error @ (PluginError::Unreachable(_) | PluginError::Busy)) => {
                Next::Retry(error.to_string())
            }
            Err(error @ (PluginError::Other(_) | PluginError::Fault(_))) => {
                self.broke_off += 1;
                if self.broke_off > MAX_BROKE_OFF {
                    return self.give_up(instance, apply, &error.to_string()).await;
                }
                Next::Retry(error.to_string())
            }
        }
    }

    /// Content takes its time, its turn comes when others have moved, and drivers end what no longer
    /// moves: it is only the start that follows that has a deadline.
    fn be_patient(&mut self, instance: &Instance) {
        let most = Duration::from_secs(self.app.config.provisioning_deadline_s);
        if let Some(written) = instance.deadline {
            self.patience = Some((written, Instant::now() + most));
        }
    }
}
