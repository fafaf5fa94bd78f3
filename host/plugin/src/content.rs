//! Content that comes to a node or leaves it: the methods for the optional interface `content`.

use super::convert::{driver as convert, snapshots as convert_snapshots};
use super::driver::{GuestDriver, call, supported};
use super::driver_calls::DriverCalls as _;
use async_trait::async_trait;
use wharf_domain::driver::{DriverReport, DriverTarget, PluginError, SnapshotReport, Source, Spec};
use wharf_engine::CallScope;

/// The functions of a driver for content that moves between nodes without a common cluster, or to a backup and back.
#[async_trait]
pub trait ContentCalls {
    /// Whether the driver has these functions. A node may lack the feature nevertheless.
    fn has_content(&self) -> bool;

    /// Offers the content of a stopped instance to the engine of another node.
    async fn offer_content(&self, target: &DriverTarget) -> Result<DriverReport, PluginError>;

    /// Makes an instance with the content that is offered for it: a stopped one, or with [`Spec::fetched`] one that
    /// has not been started.
    async fn fetch_content(&self, spec: &Spec) -> Result<DriverReport, PluginError>;

    /// Sends the content of a snapshot to its object, or reports the progress. The snapshot is ready once the object has
    /// everything.
    async fn send_content(&self, of: Source) -> Result<SnapshotReport, PluginError>;
}

#[async_trait]
impl ContentCalls for GuestDriver {
    fn has_content(&self) -> bool {
        self.plugin.with_content.is_some()
    }

    async fn offer_content(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        let pre = supported(self.plugin.with_content.as_ref(), "moves of content")?;
        let given = convert::target(target);
        let options = self.change("offer", target);
        let report = call!(self, options, pre => wharf_plugin_content.call_offer(&given));
        convert::report(report?, target.generation)
    }

    async fn fetch_content(&self, spec: &Spec) -> Result<DriverReport, PluginError> {
        let pre = supported(self.plugin.with_content.as_ref(), "moves of content")?;
        let scope = CallScope::create(&self.installation, spec, self.engine_kind());
        let given = convert::spec(spec);
        let options = self.changes("fetch", scope);
        let report = call!(self, options, pre => wharf_plugin_content.call_fetch(&given));
        convert::report(report?, spec.target.generation)
    }

    async fn send_content(&self, of: Source) -> Result<SnapshotReport, PluginError> {
        let pre = supported(self.plugin.with_content.as_ref(), "moves of content")?;
        let scope = CallScope::send_snapshot(&self.installation, of);
        let (tag, id) = (convert::tag(of.instance), of.snapshot.to_string());
        let options = self.changes("send", scope);
        let report = call!(self, options, pre => wharf_plugin_content.call_send(&tag, &id));
        Ok(convert_snapshots::report(report?))
    }
}
