//! Re-exports of the types of the WIT package.

pub use crate::bindings::flavor_provider::exports::wharf::plugin::flavors::{
    BlueprintRequest, Flavor, WebAuth,
};
pub use crate::bindings::node_driver::wharf::plugin::driver_types::{
    Complete, DiskGrow, Features, Gpu, Health, Mount, Network, Node, Observed, Phase,
    PublishedPort, Report, SnapshotKind, SnapshotReport, SnapshotState, Source, Spec, Tag, Target,
    Usage, VolumeContent,
};
pub use crate::bindings::node_driver::wharf::plugin::engine::{
    EngineError, Header, JobState, Request, Response, Written,
};
pub use crate::bindings::node_driver::wharf::plugin::log::Level;
pub use crate::bindings::node_driver::wharf::plugin::types::{
    Blueprint, Content, Error, FieldError, File, Health as Readiness, Image, ResourceType, Secret,
    Shortage, Size,
};
pub use crate::bindings::snapshots::exports::wharf::plugin::snapshots::ObservedSnapshot;
pub use crate::bindings::survey::exports::wharf::plugin::survey::{
    EngineNetwork, ImageContent, Surroundings,
};
pub use crate::bindings::volumes::exports::wharf::plugin::volumes::{
    Limits, ObservedVolume, Volume, VolumeReport, VolumeState,
};
