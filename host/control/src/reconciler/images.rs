//! The images that a node lacks, so that no instance is placed where it cannot start.

use crate::App;
use crate::check::images;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;
use wharf_domain::driver::PluginError;
use wharf_domain::ids::NodeId;
use wharf_plugin::NodeDriver;

/// The interval while a node lacks images: the operator may be making one.
const WHILE_MISSING: Duration = Duration::from_secs(10);

/// The survey of one node's images.
#[derive(Default)]
pub struct Images {
    looked: Option<Instant>,
    missing: BTreeSet<String>,
}

impl Images {
    /// Surveys the node if that is due. `again` asks for it whatever the time.
    pub async fn look(
        &mut self,
        app: &App,
        node: &NodeId,
        driver: &NodeDriver,
        again: bool,
    ) -> Result<(), PluginError> {
        let every = match self.missing.is_empty() {
            true => Duration::from_millis(app.config().limits.probe_every_ms),
            false => WHILE_MISSING,
        };
        if !again && self.looked.is_some_and(|at| at.elapsed() < every) {
            return Ok(());
        }
        let mut all = images(&app.plugins, &app.config().login_user).await;
        let wanted = all.remove(driver.engine_kind()).unwrap_or_default();
        let found = driver.survey(&wanted).await;
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
