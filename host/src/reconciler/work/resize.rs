//! Another size for an instance that runs.

use super::{Next, Worker, done};
use crate::domain::capacity::Size;
use crate::domain::driver::{Phase, PluginError, Target};
use crate::domain::event::What;
use crate::domain::ids::Generation;
use crate::domain::instance::Instance;
use crate::domain::shortage::of_resize;
use crate::plugin::NodeDriver;
use crate::reconciler::apply::Apply;
use std::time::{Duration, Instant};

impl Worker {
    /// All of it holds afterwards, or none.
    pub(super) async fn resize(
        &mut self,
        instance: &Instance,
        apply: &Apply,
        driver: &NodeDriver,
        mut target: Target,
        size: Size,
    ) -> Next {
        let may_wait = self.may_wait(instance.generation);
        target.size = size;
        let refused = |field: &str, message: String| {
            let field = Some(field.to_owned());
            apply.resize_refused(What::ResizeRefused { field, message })
        };
        let answer = match driver.resize(&target).await {
            Err(PluginError::RetryLater(pause)) if may_wait => return Next::After(pause),
            Err(error @ PluginError::Busy) if may_wait => return Next::Retry(error.to_string()),
            answer => answer,
        };
        done(match answer {
            Ok(report) if matches!(report.phase, Phase::Ready | Phase::Booting) => {
                apply.resized().await
            }
            Ok(_) | Err(PluginError::NotFound) => {
                let message = "the instance is not running on its node".to_owned();
                refused(changed(instance.size, size), message).await
            }
            Err(PluginError::Invalid { field, message }) => refused(&field, message).await,
            Err(PluginError::Insufficient(said)) => match of_resize(&said, instance.size, size) {
                none if none.is_empty() => {
                    let message = "the node does not take it".to_owned();
                    refused(changed(instance.size, size), message).await
                }
                short => apply.resize_refused(What::ResizeShort(short)).await,
            },
            Err(PluginError::Unsupported(_)) => {
                let message = "this instance's node cannot change it while it runs".to_owned();
                refused(changed(instance.size, size), message).await
            }
            Err(error) => {
                let (field, message) = (None, error.to_string());
                apply
                    .resize_refused(What::ResizeRefused { field, message })
                    .await
            }
        })
    }

    /// Whether a size that the node was asked for may still come later: its request takes it back
    /// after that time, if it is still there.
    fn may_wait(&mut self, generation: Generation) -> bool {
        let bound = Duration::from_millis(self.app.config.limits.answer_wait_ms);
        match self.resizing {
            Some((of, since)) if of == generation => since.elapsed() < bound,
            _ => {
                self.resizing = Some((generation, Instant::now()));
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
