//! The images that a node lacks, so that no instance is placed where it cannot start.
//!
//! Images are part of a store: they are surveyed only while the node shows its own.

use crate::App;
use crate::flavor_images::{by_engine, images};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wharf_domain::driver::PluginError;
use wharf_domain::ids::NodeId;
use wharf_plugin::NodeDriver;

/// The interval while a node lacks images: the operator may be making one.
const WHILE_MISSING: Duration = Duration::from_secs(10);

/// The survey of one node's images.
#[derive(Default)]
pub struct ImageSurvey {
    looked: Option<Instant>,
    missing: BTreeSet<String>,
}

impl ImageSurvey {
    /// Makes the next survey due whatever the time. The images that are known stay known.
    pub fn look_again(&mut self) {
        self.looked = None;
    }

    /// Surveys the node if that is due. The result is dropped if contact was lost since the node's store
    /// was verified, as the survey may have reached another one.
    pub async fn look(
        &mut self,
        app: &App,
        node: &NodeId,
        driver: &NodeDriver,
        verified_at: u64,
    ) -> Result<(), PluginError> {
        let every = if self.missing.is_empty() {
            Duration::from_millis(app.config().limits.probe_every_ms)
        } else {
            WHILE_MISSING
        };
        if self.looked.is_some_and(|at| at.elapsed() < every) {
            return Ok(());
        }
        let all = images(&app.plugins, &app.config().login_user).await;
        let wanted = by_engine(&all).remove(driver.engine_kind());
        app.flavor_images.store(Arc::new(all));
        let found = driver.survey(&wanted.unwrap_or_default()).await;
        if driver.interruptions() != verified_at {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        let missing: BTreeSet<_> = match found {
            Ok(found) => found.map(|found| found.missing_images).unwrap_or_default(),
            Err(error @ (PluginError::Unreachable(_) | PluginError::Busy)) => return Err(error),
            Err(error) => {
                // Instances are placed as if it had all images.
                tracing::debug!(%node, %error, "cannot survey the images");
                Vec::new()
            }
        }
        .into_iter()
        .collect();
        if missing != self.missing {
            tracing::info!(%node, ?missing, "the images that the node lacks have changed");
            app.inventory.set_missing_images(node, missing.clone());
            self.missing = missing;
        }
        Ok(())
    }
}
