//! The driver of a node of the world.

use super::{Answer, Disk, Request, World};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wharf_domain::driver::{
    CompleteSnapshot, DriverReport, DriverTarget, Limits, NewVolume, NodeHealth, Observed,
    ObservedSnapshot, ObservedVolume, Phase, PluginError, ResourceUsage, SnapshotReport,
    SnapshotState, Source, Spec, StoreMark, Surroundings, Tag, VolumeReport, VolumeState,
};
use wharf_domain::ids::{Generation, NodeId, SnapshotId, VolumeId};
use wharf_domain::secret::InstanceSecrets;
use wharf_engine::{Offers, Piece, Transport};
use wharf_plugin::{ContentCalls, DriverCalls, SnapshotCalls, VolumeCalls};

/// The driver of a node of the world.
#[derive(Debug, Clone)]
pub struct WorldDriver {
    world: World,
    node: NodeId,
    /// The content that is on its way between the store of objects and nodes.
    offers: Arc<Offers>,
}

/// The time after which a phase that will change is worth another call.
const AGAIN: Duration = Duration::from_millis(200);

/// The content of the answer to a request, which has this kind.
macro_rules! answer {
    ($driver:ident, $request:expr, $kind:ident) => {
        match $driver.world.call(&$driver.node, $request).await? {
            Answer::$kind(content) => Ok(content),
            other => unexpected(other),
        }
    };
}

fn unexpected<T>(answer: Answer) -> Result<T, PluginError> {
    Err(PluginError::Fault(format!("the world answered {answer:?}")))
}

impl WorldDriver {
    pub fn new(world: &World, node: NodeId, offers: &Arc<Offers>) -> Self {
        Self {
            world: world.clone(),
            node,
            offers: Arc::clone(offers),
        }
    }

    async fn report(
        &self,
        request: Request,
        generation: Generation,
    ) -> Result<DriverReport, PluginError> {
        let phase = answer!(self, request, Phase)?;
        Ok(DriverReport {
            generation,
            again: matches!(phase, Phase::Booting | Phase::Growing(_)).then_some(AGAIN),
            phase,
        })
    }

    async fn on(
        &self,
        request: impl Fn(Box<DriverTarget>) -> Request,
        target: &DriverTarget,
    ) -> Result<DriverReport, PluginError> {
        self.report(request(Box::new(target.clone())), target.generation)
            .await
    }

    async fn as_specified(
        &self,
        request: impl Fn(Box<Spec>) -> Request,
        spec: &Spec,
    ) -> Result<DriverReport, PluginError> {
        self.report(request(Box::new(spec.clone())), spec.target.generation)
            .await
    }

    async fn on_volume(&self, request: Request) -> Result<VolumeReport, PluginError> {
        let state = answer!(self, request, Volume)?;
        Ok(VolumeReport {
            again: matches!(state, VolumeState::Making(_)).then_some(AGAIN),
            state,
        })
    }

    async fn on_snapshot(&self, request: Request) -> Result<SnapshotReport, PluginError> {
        let state = answer!(self, request, Snapshot)?;
        Ok(SnapshotReport {
            again: matches!(state, SnapshotState::Making(_)).then_some(AGAIN),
            state,
        })
    }

    async fn done(&self, request: Request) -> Result<(), PluginError> {
        self.world.call(&self.node, request).await.map(drop)
    }
}

#[async_trait]
impl DriverCalls for WorldDriver {
    fn name(&self) -> &NodeId {
        &self.node
    }

    fn engine_kind(&self) -> &str {
        "simulated"
    }

    fn has_setting(&self, _: &str) -> bool {
        false
    }

    fn pulls_with_accounts(&self) -> bool {
        false
    }

    fn transport(&self) -> Option<&Transport> {
        None
    }

    fn last_answer(&self) -> Option<Instant> {
        self.world.last_answer(&self.node)
    }

    fn interruptions(&self) -> u64 {
        self.world.interruptions(&self.node)
    }

    async fn probe(&self) -> Result<NodeHealth, PluginError> {
        answer!(self, Request::Probe, Health)
    }

    async fn ensure(&self, spec: &Spec, _: &InstanceSecrets) -> Result<DriverReport, PluginError> {
        self.as_specified(Request::Ensure, spec).await
    }

    async fn start(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        self.on(Request::Start, target).await
    }

    async fn grow(&self, spec: &Spec) -> Result<DriverReport, PluginError> {
        self.as_specified(Request::Grow, spec).await
    }

    fn moves(&self) -> bool {
        true
    }

    async fn move_here(&self, spec: &Spec) -> Result<DriverReport, PluginError> {
        self.as_specified(Request::MoveHere, spec).await
    }

    async fn stop(&self, target: &DriverTarget, _: Duration) -> Result<DriverReport, PluginError> {
        self.on(Request::Stop, target).await
    }

    async fn resize(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        self.on(Request::Resize, target).await
    }

    async fn set_ports(&self, target: &DriverTarget) -> Result<(), PluginError> {
        self.done(Request::SetPorts(Box::new(target.clone()))).await
    }

    async fn identify(&self) -> Result<StoreMark, PluginError> {
        answer!(self, Request::Identify, Mark)
    }

    async fn mark(&self, mark: &str) -> Result<(), PluginError> {
        self.done(Request::Mark(mark.to_owned())).await
    }

    async fn survey(&self, _: &[String]) -> Result<Option<Surroundings>, PluginError> {
        answer!(self, Request::Survey, Surroundings).map(Some)
    }

    async fn delete(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        self.on(Request::Delete, target).await
    }

    async fn inspect(&self, tag: Tag, generation: Generation) -> Result<DriverReport, PluginError> {
        self.report(Request::Inspect(tag), generation).await
    }

    async fn list(&self) -> Result<Vec<Observed>, PluginError> {
        answer!(self, Request::List, List)
    }

    async fn stats(&self, tag: Tag, _: bool) -> Result<ResourceUsage, PluginError> {
        answer!(self, Request::Stats(tag), Usage)
    }
}

#[async_trait]
impl ContentCalls for WorldDriver {
    fn has_content(&self) -> bool {
        true
    }

    async fn offer_content(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        self.on(Request::Offer, target).await
    }

    async fn fetch_content(&self, spec: &Spec) -> Result<DriverReport, PluginError> {
        let instance = spec.target.tag.instance;
        let offered = spec.fetched.then(|| self.offers.take_source(instance));
        let Some(mut source) = offered.flatten() else {
            return self
                .as_specified(|spec| Request::Fetch(spec, None), spec)
                .await;
        };
        let broke = |error: &dyn ToString| PluginError::Other(error.to_string());
        let mut content = Vec::new();
        while let Some(piece) = source.pieces.recv().await {
            content.extend_from_slice(&piece.map_err(|error| broke(&error))?);
        }
        let disk: Disk = serde_json::from_slice(&content).map_err(|error| broke(&error))?;
        self.as_specified(|spec| Request::Fetch(spec, Some(disk.clone())), spec)
            .await
    }

    async fn send_content(&self, of: Source) -> Result<SnapshotReport, PluginError> {
        let disk = match self.world.call(&self.node, Request::Send(of)).await? {
            Answer::Content(disk) => disk,
            Answer::Snapshot(state) => {
                return Ok(SnapshotReport {
                    state,
                    again: Some(AGAIN),
                });
            }
            other => return unexpected(other),
        };
        let broke = |error: &dyn ToString| PluginError::Other(error.to_string());
        let object = self.offers.take_object(of.snapshot.into());
        let object = object.map_err(|error| broke(&error))?;
        let content = serde_json::to_vec(&disk).map_err(|error| broke(&error))?;
        let bytes = content.len() as u64;
        for half in content.chunks(content.len() / 2 + 1) {
            let piece = Piece::Data(Bytes::copy_from_slice(half));
            object.put(piece).await.map_err(|error| broke(&error))?;
            // The engine may fail half-way.
            self.world.call(&self.node, Request::Send(of)).await?;
        }
        object.complete().await.map_err(|error| broke(&error))?;
        Ok(SnapshotReport {
            state: SnapshotState::Ready(CompleteSnapshot {
                bytes,
                clonable: true,
            }),
            again: None,
        })
    }
}

#[async_trait]
impl VolumeCalls for WorldDriver {
    fn has_volumes(&self) -> bool {
        true
    }

    async fn make_volume(
        &self,
        volume: &NewVolume,
        _: &[String],
    ) -> Result<VolumeReport, PluginError> {
        self.on_volume(Request::MakeVolume(volume.id, volume.size_gib))
            .await
    }

    /// The world's volumes have no content.
    async fn send_volume(&self, _: VolumeId) -> Result<VolumeReport, PluginError> {
        Err(PluginError::Unsupported("backups of volumes".to_owned()))
    }

    async fn unmake_volume(&self, id: VolumeId) -> Result<VolumeReport, PluginError> {
        self.on_volume(Request::UnmakeVolume(id)).await
    }

    async fn list_volumes(&self) -> Result<Vec<ObservedVolume>, PluginError> {
        answer!(self, Request::ListVolumes, Volumes)
    }

    async fn set_volumes(&self, target: &DriverTarget) -> Result<(), PluginError> {
        self.done(Request::SetVolumes(Box::new(target.clone())))
            .await
    }

    /// The world has no blocks to write.
    async fn prove_limits(&self, _: VolumeId, _: &[String]) -> Result<Limits, PluginError> {
        Err(PluginError::Unsupported("proofs of limits".to_owned()))
    }
}

#[async_trait]
impl SnapshotCalls for WorldDriver {
    async fn take_snapshot(
        &self,
        target: &DriverTarget,
        id: SnapshotId,
    ) -> Result<SnapshotReport, PluginError> {
        self.on_snapshot(Request::TakeSnapshot(Box::new(target.clone()), id))
            .await
    }

    async fn drop_snapshot(&self, of: Source) -> Result<SnapshotReport, PluginError> {
        self.on_snapshot(Request::DropSnapshot(of)).await
    }

    async fn restore_snapshot(
        &self,
        spec: &Spec,
        id: SnapshotId,
    ) -> Result<DriverReport, PluginError> {
        self.as_specified(|spec| Request::RestoreSnapshot(spec, id), spec)
            .await
    }

    async fn list_snapshots(&self) -> Result<Vec<ObservedSnapshot>, PluginError> {
        answer!(self, Request::ListSnapshots, Snapshots)
    }
}
