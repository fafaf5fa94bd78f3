//! Glue between the generated traits and the author's traits. Only the export macros use it.

use crate::bindings::node_driver::exports::wharf::plugin::driver;
use crate::types::{
    Blueprint, BlueprintRequest, Error, Flavor, Health, Limits, Node, Observed, ObservedSnapshot,
    ObservedVolume, Report, SnapshotReport, Spec, Surroundings, Tag, Target, Usage, Volume,
    VolumeReport,
};
use crate::{
    ContentMoves, Driver, FlavorProvider, Identity, Moves, Ports, Snapshots, Survey, Volumes,
};
use std::marker::PhantomData;

pub use crate::bindings::{
    content, flavor_provider, identity, moves, node_driver, ports, snapshots, survey, volumes,
};

/// Implements the generated traits by calling `T`.
pub struct Exported<T>(PhantomData<T>);

impl<T: Driver> driver::Guest for Exported<T> {
    fn engine_kind() -> String {
        T::engine_kind()
    }
    fn probe(node: Node) -> Result<Health, Error> {
        T::probe(&node)
    }
    fn ensure(node: Node, spec: Spec) -> Result<Report, Error> {
        T::ensure(&node, &spec)
    }
    fn start(node: Node, target: Target) -> Result<Report, Error> {
        T::start(&node, &target)
    }
    fn stop(node: Node, target: Target, grace_ms: u32) -> Result<Report, Error> {
        T::stop(&node, &target, grace_ms)
    }
    fn grow(node: Node, spec: Spec) -> Result<Report, Error> {
        T::grow(&node, &spec)
    }
    fn resize(node: Node, target: Target) -> Result<Report, Error> {
        T::resize(&node, &target)
    }
    fn delete(node: Node, target: Target) -> Result<Report, Error> {
        T::delete(&node, &target)
    }
    fn inspect(node: Node, tag: Tag) -> Result<Report, Error> {
        T::inspect(&node, &tag)
    }
    fn list(node: Node) -> Result<Vec<Observed>, Error> {
        T::list(&node)
    }
    fn stats(node: Node, tag: Tag, disk: bool) -> Result<Usage, Error> {
        T::stats(&node, &tag, disk)
    }
}

impl<T: Ports> ports::exports::wharf::plugin::ports::Guest for Exported<T> {
    fn set_ports(node: Node, target: Target) -> Result<(), Error> {
        T::set_ports(&node, &target)
    }
}

impl<T: Identity> identity::exports::wharf::plugin::identity::Guest for Exported<T> {
    fn identify(node: Node) -> Result<Option<String>, Error> {
        T::identify(&node)
    }
    fn mark(node: Node, mark: String) -> Result<(), Error> {
        T::mark(&node, &mark)
    }
}

impl<T: Survey> survey::exports::wharf::plugin::survey::Guest for Exported<T> {
    fn look(node: Node, images: Vec<String>) -> Result<Surroundings, Error> {
        T::look(&node, &images)
    }
}

impl<T: Moves> moves::exports::wharf::plugin::moves::Guest for Exported<T> {
    fn move_here(node: Node, spec: Spec) -> Result<Report, Error> {
        T::move_here(&node, &spec)
    }
}

impl<T: ContentMoves> content::exports::wharf::plugin::content::Guest for Exported<T> {
    fn offer(node: Node, target: Target) -> Result<Report, Error> {
        T::offer(&node, &target)
    }
    fn fetch(node: Node, spec: Spec) -> Result<Report, Error> {
        T::fetch(&node, &spec)
    }
    fn send(node: Node, instance: Tag, snapshot: String) -> Result<SnapshotReport, Error> {
        T::send(&node, &instance, &snapshot)
    }
}

impl<T: Volumes> volumes::exports::wharf::plugin::volumes::Guest for Exported<T> {
    fn make(node: Node, volume: Volume, images: Vec<String>) -> Result<VolumeReport, Error> {
        T::make(&node, &volume, &images)
    }
    fn unmake(node: Node, id: String) -> Result<VolumeReport, Error> {
        T::unmake(&node, &id)
    }
    fn list_volumes(node: Node) -> Result<Vec<ObservedVolume>, Error> {
        T::list_volumes(&node)
    }
    fn send_volume(node: Node, id: String) -> Result<VolumeReport, Error> {
        T::send_volume(&node, &id)
    }
    fn set_volumes(node: Node, target: Target) -> Result<(), Error> {
        T::set_volumes(&node, &target)
    }
    fn prove_limits(node: Node, id: String, images: Vec<String>) -> Result<Limits, Error> {
        T::prove_limits(&node, &id, &images)
    }
}

impl<T: Snapshots> snapshots::exports::wharf::plugin::snapshots::Guest for Exported<T> {
    fn take(node: Node, target: Target, snapshot: String) -> Result<SnapshotReport, Error> {
        T::take(&node, &target, &snapshot)
    }
    fn drop(node: Node, instance: Tag, snapshot: String) -> Result<SnapshotReport, Error> {
        T::drop(&node, &instance, &snapshot)
    }
    fn restore(node: Node, spec: Spec, snapshot: String) -> Result<Report, Error> {
        T::restore(&node, &spec, &snapshot)
    }
    fn list_snapshots(node: Node) -> Result<Vec<ObservedSnapshot>, Error> {
        T::list_snapshots(&node)
    }
}

impl<T: FlavorProvider> flavor_provider::exports::wharf::plugin::flavors::Guest for Exported<T> {
    fn flavors() -> Vec<Flavor> {
        T::flavors()
    }
    fn blueprint(request: BlueprintRequest) -> Result<Blueprint, Error> {
        T::blueprint(&request)
    }
}

/// Makes this crate a plugin: `export!(MyDriver: Driver + Ports)`. Names the type and the traits whose
/// interfaces it exports. One of them is [`Driver`] or [`FlavorProvider`].
#[macro_export]
macro_rules! export {
    (@Driver $answering:ident) => {
        $crate::export::node_driver::export_node_driver!(
            $answering with_types_in $crate::export::node_driver
        );
    };
    (@Ports $answering:ident) => {
        $crate::export::ports::export_ports!($answering with_types_in $crate::export::ports);
    };
    (@Identity $answering:ident) => {
        $crate::export::identity::export_identity!(
            $answering with_types_in $crate::export::identity
        );
    };
    (@Survey $answering:ident) => {
        $crate::export::survey::export_survey!($answering with_types_in $crate::export::survey);
    };
    (@Moves $answering:ident) => {
        $crate::export::moves::export_moves!($answering with_types_in $crate::export::moves);
    };
    (@ContentMoves $answering:ident) => {
        $crate::export::content::export_content!($answering with_types_in $crate::export::content);
    };
    (@Volumes $answering:ident) => {
        $crate::export::volumes::export_volumes!($answering with_types_in $crate::export::volumes);
    };
    (@Snapshots $answering:ident) => {
        $crate::export::snapshots::export_snapshots!(
            $answering with_types_in $crate::export::snapshots
        );
    };
    (@FlavorProvider $answering:ident) => {
        $crate::export::flavor_provider::export_flavor_provider!(
            $answering with_types_in $crate::export::flavor_provider
        );
    };
    ($plugin:ident: $first:ident $(+ $other:ident)*) => {
        #[cfg(target_family = "wasm")]
        mod wharf_export {
            type Answering = $crate::export::Exported<super::$plugin>;
            $crate::export!(@$first Answering);
            $($crate::export!(@$other Answering);)*
        }
    };
}
