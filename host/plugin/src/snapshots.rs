//! The snapshots of a node: the methods for the optional interface `snapshots`.

use super::call::TRANSFER_LIST;
use super::convert::{driver as convert_driver, snapshots as convert};
use super::driver::{CallOptions, GuestDriver, call, supported};
use super::driver_calls::DriverCalls as _;
use async_trait::async_trait;
use wharf_domain::driver::{
    DriverReport, DriverTarget, ObservedSnapshot, PluginError, SnapshotReport, Source, Spec,
};
use wharf_domain::ids::SnapshotId;
use wharf_engine::CallScope;

/// The functions of a driver for snapshots.
#[async_trait]
pub trait SnapshotCalls {
    /// Takes a snapshot of an instance that runs or is stopped, or reports the progress.
    async fn take_snapshot(
        &self,
        target: &DriverTarget,
        id: SnapshotId,
    ) -> Result<SnapshotReport, PluginError>;

    /// Removes a snapshot.
    async fn drop_snapshot(&self, of: Source) -> Result<SnapshotReport, PluginError>;

    /// Gives a stopped instance the disk of a snapshot of it.
    async fn restore_snapshot(
        &self,
        spec: &Spec,
        id: SnapshotId,
    ) -> Result<DriverReport, PluginError>;

    /// All of this installation's snapshots on the node, in any order; none if the driver takes none.
    async fn list_snapshots(&self) -> Result<Vec<ObservedSnapshot>, PluginError>;
}

#[async_trait]
impl SnapshotCalls for GuestDriver {
    async fn take_snapshot(
        &self,
        target: &DriverTarget,
        id: SnapshotId,
    ) -> Result<SnapshotReport, PluginError> {
        let pre = supported(self.plugin.with_snapshots.as_ref(), "snapshots")?;
        let scope = CallScope::take_snapshot(&self.installation, target, id);
        let (given, id) = (convert_driver::target(target), id.to_string());
        let options = self.changes("take", scope);
        let report = call!(self, options, pre => wharf_plugin_snapshots.call_take(&given, &id));
        Ok(convert::report(report?))
    }

    async fn drop_snapshot(&self, of: Source) -> Result<SnapshotReport, PluginError> {
        let pre = supported(self.plugin.with_snapshots.as_ref(), "snapshots")?;
        let scope = CallScope::drop_snapshot(&self.installation, of);
        let (tag, id) = (convert_driver::tag(of.instance), of.snapshot.to_string());
        let options = self.changes("drop", scope);
        let report = call!(self, options, pre => wharf_plugin_snapshots.call_drop(&tag, &id));
        Ok(convert::report(report?))
    }

    async fn restore_snapshot(
        &self,
        spec: &Spec,
        id: SnapshotId,
    ) -> Result<DriverReport, PluginError> {
        let pre = supported(self.plugin.with_snapshots.as_ref(), "snapshots")?;
        let scope = CallScope::restore(&self.installation, spec, self.engine_kind(), id);
        let options = self.changes("restore", scope);
        let (given, id) = (convert_driver::spec(spec), id.to_string());
        let report = call!(self, options, pre => wharf_plugin_snapshots.call_restore(&given, &id));
        convert_driver::report(report?, spec.target.generation)
    }

    async fn list_snapshots(&self) -> Result<Vec<ObservedSnapshot>, PluginError> {
        let Some(pre) = self.plugin.with_snapshots.clone() else {
            return Ok(Vec::new());
        };
        let options = CallOptions {
            transfer: TRANSFER_LIST,
            ..self.reads("list-snapshots", CallScope::node(&self.installation))
        };
        let list = call!(self, options, pre => wharf_plugin_snapshots.call_list_snapshots());
        convert::list(list?, self.name())
    }
}
