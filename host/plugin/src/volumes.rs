//! The volumes of a node: the methods for the optional interface `volumes`.

use super::bindings::volumes as wit;
use super::call::TRANSFER_LIST;
use super::convert::volumes as convert;
use super::driver::{CallOptions, GuestDriver, call, supported};
use super::driver_calls::DriverCalls as _;
use async_trait::async_trait;
use wharf_domain::driver::{
    DriverTarget, Limits, NewVolume, ObservedVolume, PluginError, VolumeReport,
};
use wharf_domain::ids::VolumeId;
use wharf_engine::CallScope;

/// The size of the disk of a proof.
const PROVEN_GIB: u32 = 1;

/// The functions of a driver for volumes.
#[async_trait]
pub trait VolumeCalls {
    /// Whether the driver makes volumes on some nodes. [`Features::volumes`] tells of this node.
    ///
    /// [`Features::volumes`]: wharf_domain::driver::Features::volumes
    fn has_volumes(&self) -> bool;

    /// Moves a volume a step towards `ready`. `images` are references of the operator's blueprints. The content of a
    /// fetched one comes from the object that is offered for it.
    async fn make_volume(
        &self,
        volume: &NewVolume,
        images: &[String],
    ) -> Result<VolumeReport, PluginError>;

    /// Sends the content of a volume to its object, or reports the progress. The volume is ready once the object has
    /// everything.
    async fn send_volume(&self, id: VolumeId) -> Result<VolumeReport, PluginError>;

    /// Removes a volume with its content.
    async fn unmake_volume(&self, id: VolumeId) -> Result<VolumeReport, PluginError>;

    /// All of this installation's volumes on the node, in any order; none if the driver makes none.
    async fn list_volumes(&self) -> Result<Vec<ObservedVolume>, PluginError>;

    /// Gives an existing instance exactly the target's volumes, whether it runs or not.
    async fn set_volumes(&self, target: &DriverTarget) -> Result<(), PluginError>;

    /// Proves that the node holds sizes, with a disk whose name has this id. `images` as in a creation.
    async fn prove_limits(&self, id: VolumeId, images: &[String]) -> Result<Limits, PluginError>;
}

#[async_trait]
impl VolumeCalls for GuestDriver {
    fn has_volumes(&self) -> bool {
        self.plugin.with_volumes.is_some()
    }

    async fn make_volume(
        &self,
        volume: &NewVolume,
        images: &[String],
    ) -> Result<VolumeReport, PluginError> {
        let pre = supported(self.plugin.with_volumes.as_ref(), "volumes")?;
        let NewVolume {
            id,
            size_gib,
            fetched,
        } = *volume;
        let given = wit::Volume {
            id: id.to_string(),
            size_gib,
            fetched,
        };
        let scope = CallScope::make_volume(&self.installation, id, size_gib, images);
        let images = images.to_vec();
        let options = self.changes("make", scope);
        let report = call!(self, options, pre => wharf_plugin_volumes.call_make(&given, &images));
        Ok(convert::report(report?))
    }

    async fn send_volume(&self, id: VolumeId) -> Result<VolumeReport, PluginError> {
        let pre = supported(self.plugin.with_volumes.as_ref(), "volumes")?;
        let given = id.to_string();
        let scope = CallScope::send_volume(&self.installation, id);
        let options = self.changes("send-volume", scope);
        let report = call!(self, options, pre => wharf_plugin_volumes.call_send_volume(&given));
        Ok(convert::report(report?))
    }

    async fn unmake_volume(&self, id: VolumeId) -> Result<VolumeReport, PluginError> {
        let pre = supported(self.plugin.with_volumes.as_ref(), "volumes")?;
        let given = id.to_string();
        let scope = CallScope::unmake_volume(&self.installation, id);
        let options = self.changes("unmake", scope);
        let report = call!(self, options, pre => wharf_plugin_volumes.call_unmake(&given));
        Ok(convert::report(report?))
    }

    async fn list_volumes(&self) -> Result<Vec<ObservedVolume>, PluginError> {
        let Some(pre) = self.plugin.with_volumes.clone() else {
            return Ok(Vec::new());
        };
        let options = CallOptions {
            transfer: TRANSFER_LIST,
            ..self.reads("list-volumes", CallScope::node(&self.installation))
        };
        let list = call!(self, options, pre => wharf_plugin_volumes.call_list_volumes());
        convert::list(list?, self.name())
    }

    async fn set_volumes(&self, target: &DriverTarget) -> Result<(), PluginError> {
        let pre = supported(self.plugin.with_volumes.as_ref(), "volumes")?;
        let given = super::convert::driver::target(target);
        let options = self.change("set-volumes", target);
        call!(self, options, pre => wharf_plugin_volumes.call_set_volumes(&given))
    }

    async fn prove_limits(&self, id: VolumeId, images: &[String]) -> Result<Limits, PluginError> {
        let pre = supported(self.plugin.with_volumes.as_ref(), "volumes")?;
        let given = id.to_string();
        let scope = CallScope::make_volume(&self.installation, id, PROVEN_GIB, images);
        let images = images.to_vec();
        let options = self.changes("prove-limits", scope);
        let found =
            call!(self, options, pre => wharf_plugin_volumes.call_prove_limits(&given, &images));
        Ok(convert::limits(found?))
    }
}
