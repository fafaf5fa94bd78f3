//! Moves of content between nodes: the methods for the optional interface `content`.

use super::convert::driver as convert;
use super::driver::GuestDriver;
use super::driver_calls::DriverCalls as _;
use async_trait::async_trait;
use wharf_domain::driver::{DriverReport, DriverTarget, PluginError, Spec};
use wharf_engine::CallScope;

/// The functions of a driver for content that moves between nodes without a common cluster.
#[async_trait]
pub trait ContentCalls {
    /// Whether the driver has these functions. A node may lack the feature nevertheless.
    fn has_content(&self) -> bool;

    /// Offers the content of a stopped instance to the engine of another node.
    async fn offer_content(&self, target: &DriverTarget) -> Result<DriverReport, PluginError>;

    /// Makes a stopped instance with the content that another node offers.
    async fn fetch_content(&self, spec: &Spec) -> Result<DriverReport, PluginError>;
}

#[async_trait]
impl ContentCalls for GuestDriver {
    fn has_content(&self) -> bool {
        self.plugin.with_content.is_some()
    }

    async fn offer_content(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        let pre = supported(self.plugin.with_content.as_ref())?;
        let given = convert::target(target);
        let options = self.change("offer", target);
        let report = self.enter(options, |mut store, node| async move {
            let guest = pre.instantiate_async(&mut store).await?;
            let content = guest.wharf_plugin_content();
            content.call_offer(&mut store, &node, &given).await
        });
        convert::report(report.await?, target.generation)
    }

    async fn fetch_content(&self, spec: &Spec) -> Result<DriverReport, PluginError> {
        let pre = supported(self.plugin.with_content.as_ref())?;
        let scope = CallScope::create(&self.installation, spec, self.engine_kind());
        let given = convert::spec(spec);
        let options = self.changes("fetch", scope);
        let report = self.enter(options, |mut store, node| async move {
            let guest = pre.instantiate_async(&mut store).await?;
            let content = guest.wharf_plugin_content();
            content.call_fetch(&mut store, &node, &given).await
        });
        convert::report(report.await?, spec.target.generation)
    }
}

fn supported<T: Clone>(pre: Option<&T>) -> Result<T, PluginError> {
    pre.cloned()
        .ok_or_else(|| PluginError::Unsupported("moves of content".to_owned()))
}
