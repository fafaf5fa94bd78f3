//! The volumes of a node: the methods for the optional interface `volumes`.

use super::bindings::volumes as wit;
use super::call::TRANSFER_LIST;
use super::convert::volumes as convert;
use super::driver::{CallOptions, GuestDriver};
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
        let Some(pre) = self.plugin.with_volumes.clone() else {
            return Err(unsupported());
        };
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
        let report = self.enter(self.changes("make", scope), |mut store, node| async move {
            let guest = pre.instantiate_async(&mut store).await?;
            let volumes = guest.wharf_plugin_volumes();
            volumes.call_make(&mut store, &node, &given, &images).await
        });
        Ok(convert::report(report.await?))
    }

    async fn send_volume(&self, id: VolumeId) -> Result<VolumeReport, PluginError> {
        let Some(pre) = self.plugin.with_volumes.clone() else {
            return Err(unsupported());
        };
        let given = id.to_string();
        let scope = CallScope::send_volume(&self.installation, id);
        let options = self.changes("send-volume", scope);
        let report = self.enter(options, |mut store, node| async move {
            let guest = pre.instantiate_async(&mut store).await?;
            let volumes = guest.wharf_plugin_volumes();
            volumes.call_send_volume(&mut store, &node, &given).await
        });
        Ok(convert::report(report.await?))
    }

    async fn unmake_volume(&self, id: VolumeId) -> Result<VolumeReport, PluginError> {
        let Some(pre) = self.plugin.with_volumes.clone() else {
            return Err(unsupported());
        };
        let given = id.to_string();
        let scope = CallScope::unmake_volume(&self.installation, id);
        let report = self.enter(
            self.changes("unmake", scope),
            |mut store, node| async move {
                let guest = pre.instantiate_async(&mut store).await?;
                let volumes = guest.wharf_plugin_volumes();
                volumes.call_unmake(&mut store, &node, &given).await
            },
        );
        Ok(convert::report(report.await?))
    }

    async fn list_volumes(&self) -> Result<Vec<ObservedVolume>, PluginError> {
        let Some(pre) = self.plugin.with_volumes.clone() else {
            return Ok(Vec::new());
        };
        let options = CallOptions {
            transfer: TRANSFER_LIST,
            ..self.reads("list-volumes", CallScope::node(&self.installation))
        };
        let list = self.enter(options, |mut store, node| async move {
            let guest = pre.instantiate_async(&mut store).await?;
            let volumes = guest.wharf_plugin_volumes();
            volumes.call_list_volumes(&mut store, &node).await
        });
        convert::list(list.await?, self.name())
    }

    async fn set_volumes(&self, target: &DriverTarget) -> Result<(), PluginError> {
        let Some(pre) = self.plugin.with_volumes.clone() else {
            return Err(unsupported());
        };
        let given = super::convert::driver::target(target);
        self.enter(
            self.change("set-volumes", target),
            |mut store, node| async move {
                let guest = pre.instantiate_async(&mut store).await?;
                let volumes = guest.wharf_plugin_volumes();
                volumes.call_set_volumes(&mut store, &node, &given).await
            },
        )
        .await
    }

    async fn prove_limits(&self, id: VolumeId, images: &[String]) -> Result<Limits, PluginError> {
        let Some(pre) = self.plugin.with_volumes.clone() else {
            return Err(unsupported());
        };
        let given = id.to_string();
        let scope = CallScope::make_volume(&self.installation, id, PROVEN_GIB, images);
        let images = images.to_vec();
        let options = self.changes("prove-limits", scope);
        let found = self.enter(options, |mut store, node| async move {
            let guest = pre.instantiate_async(&mut store).await?;
            let volumes = guest.wharf_plugin_volumes();
            volumes
                .call_prove_limits(&mut store, &node, &given, &images)
                .await
        });
        Ok(convert::limits(found.await?))
    }
}

fn unsupported() -> PluginError {
    PluginError::Unsupported("volumes".to_owned())
}
