//! The step that gives a running instance another size.

use super::attempt::{Attempt, NextAttempt};
use super::make::is_lost;
use super::tasks::until_certain;
use std::time::Duration;
use tokio::time::Instant;
use wharf_domain::capacity::Size;
use wharf_domain::driver::{Phase, PluginError};
use wharf_domain::event::EventKind;
use wharf_domain::shortage::of_resize;

impl Attempt<'_> {
    /// Resizes the instance: all quantities change, or none.
    pub async fn resize(&mut self, size: Size) -> NextAttempt {
        let may_wait = self.may_wait();
        let id = self.instance.id;
        // Another size could follow this one.
        let wait = until_certain(self.tasks.unanswered(id).size);
        if let Some(wait) = wait.filter(|_| may_wait) {
            return NextAttempt::After(wait);
        }
        self.target.size = size;
        let answer = match self.driver.resize(&self.target).await {
            Err(error @ (PluginError::RetryLater(_) | PluginError::Busy)) if may_wait => {
                return error.into();
            }
            answer => answer,
        };
        if is_lost(&answer) {
            self.tasks.not_answered(id, |last, now| last.size = now);
        }
        // After any other error the larger claim stays, and the node is asked for the old size.
        let settles = match &answer {
            Ok(_) => true,
            Err(error) => matches!(
                error,
                PluginError::NotFound
                    | PluginError::Invalid { .. }
                    | PluginError::Insufficient(_)
                    | PluginError::Unsupported(_)
            ),
        };
        if settles && let Err(next) = self.believe().await {
            return next;
        }
        let refused = |field: Option<&str>, message: String| EventKind::ResizeRefused {
            field: field.map(str::to_owned),
            message,
        };
        let field = Some(changed(self.instance.size, size));
        let why = match answer {
            Ok(report) if matches!(report.phase, Phase::Ready | Phase::Booting) => {
                return self.writer.resized().await.into();
            }
            Ok(_) | Err(PluginError::NotFound) => {
                refused(field, "the instance is not running on its node".to_owned())
            }
            Err(PluginError::Invalid { field, message }) => refused(Some(&field), message),
            Err(PluginError::Insufficient(short)) => {
                match of_resize(&short, self.instance.size, size) {
                    none if none.is_empty() => {
                        refused(field, "the node refuses this size".to_owned())
                    }
                    short => EventKind::ResizeShort(short),
                }
            }
            Err(PluginError::Unsupported(_)) => {
                let message = "this instance's node cannot change it while it runs";
                refused(field, message.to_owned())
            }
            Err(error) => refused(None, error.to_string()),
        };
        self.writer.resize_refused(why).await.into()
    }

    /// Whether the new size may still be applied later. Its request withdraws it after this time.
    fn may_wait(&mut self) -> bool {
        let generation = self.instance.generation;
        let bound = Duration::from_millis(self.app.config().limits.answer_wait_ms);
        match self.history.resizing {
            Some((of, since)) if of == generation => since.elapsed() < bound,
            _ => {
                self.history.resizing = Some((generation, Instant::now()));
                true
            }
        }
    }
}

/// The first field that differs.
fn changed(old: Size, new: Size) -> &'static str {
    if old.n_vcpus != new.n_vcpus {
        "n_vcpus"
    } else if old.mem_gib != new.mem_gib {
        "mem_gib"
    } else {
        "disk_size_gib"
    }
}
