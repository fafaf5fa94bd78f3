//! The images that a node lacks, so that no instance is placed where it cannot start, and the contents of
//! others for users.
//!
//! Images are part of a store: they are surveyed only while the node shows its own.

use crate::App;
use crate::flavor_images::{by_engine, images};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wharf_domain::driver::PluginError;
use wharf_domain::ids::NodeId;
use wharf_domain::placement::NodeImages;
use wharf_plugin::NodeDriver;

/// The interval while a node lacks images: the operator may be making one.
const WHILE_MISSING: Duration = Duration::from_secs(10);

/// The survey of one node's images.
#[derive(Default)]
pub struct ImageSurvey {
    looked: Option<Instant>,
    known: NodeImages,
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
        let every = if self.known.missing.is_empty() {
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
        let found = match found {
            Ok(found) => found.map(|found| NodeImages {
                missing: found.missing_images.into_iter().collect(),
                contents: found.image_contents,
            }),
            Err(error @ (PluginError::Unreachable(_) | PluginError::Busy)) => return Err(error),
            Err(error) => {
                // Instances are placed as if it had all images.
                tracing::debug!(%node, %error, "cannot survey the images");
                None
            }
        };
        let found = found.unwrap_or_default();
        if found != self.known {
            app.inventory.set_images(node, found.clone());
            if found.missing != self.known.missing {
                let missing = &found.missing;
                tracing::info!(%node, ?missing, "the images that the node lacks have changed");
            }
            self.known = found;
        }
        Ok(())
    }
}
