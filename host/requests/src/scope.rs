//! The scope of a call. A request has no values beyond it: a call about one instance cannot reach the
//! container of another one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use wharf_domain::blueprint::BlueprintFile;
use wharf_domain::capacity::Size;
use wharf_domain::driver::{
    DriverTarget, InstanceNetwork, Mount, PublishedPort, Source, Spec, Tag,
};
use wharf_domain::ids::{SnapshotId, VolumeId};
use wharf_domain::instance::ResourceType;

/// The scope of one call of a driver.
#[derive(Debug, Clone)]
pub struct CallScope {
    /// The name of this installation, on every engine object.
    pub installation: String,
    /// Whether the called function may change anything.
    pub changes: bool,
    /// The instance of the call; `None` for calls about the whole node.
    pub subject: Option<CallSubject>,
    /// The volume of the call; `None` for other calls.
    pub volume: Option<VolumeScope>,
    /// The snapshot of the call; `None` for other calls.
    pub snapshot: Option<SnapshotScope>,
    /// The mark that this call may put into the engine's store.
    pub mark: Option<String>,
    /// The images of blueprints that a survey may ask for. A survey also lists networks of all owners.
    pub survey: Option<Vec<String>>,
    /// Whether the call brings the instance from another node of the cluster.
    pub moves: bool,
    /// Ids that the engine has told in this call, by their name in the file.
    pub learnt: BTreeMap<String, Vec<String>>,
    /// Numbers that the engine has told in this call, by their name in the file.
    pub numbers: BTreeMap<String, u64>,
    /// Facts that the engine has told in this call, as the file names them.
    pub facts: BTreeSet<String>,
}

/// The volume of a call.
#[derive(Debug, Clone)]
pub struct VolumeScope {
    pub id: VolumeId,
    /// The permitted creation, in `make`.
    pub creation: Option<VolumeCreation>,
    /// Whether the call sends its content.
    pub is_sent: bool,
}

/// The permitted creation of a volume.
#[derive(Debug, Clone)]
pub struct VolumeCreation {
    pub size_gib: u32,
    /// Image references for this kind of engine.
    pub images: Vec<String>,
}

/// The snapshot of a call.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotScope {
    pub of: Source,
    pub purpose: SnapshotPurpose,
}

/// The use of a snapshot by a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotPurpose {
    Take,
    Drop,
    Restore,
    /// Its content goes to the host.
    Send,
    /// An instance is created from it, or was.
    Source,
}

/// The instance of a call.
#[derive(Debug, Clone)]
pub struct CallSubject {
    /// Its tag.
    pub tag: Tag,
    /// Its intended size, in calls that have it.
    pub size: Option<Size>,
    /// Its owner's network, in calls that have it.
    pub network: Option<InstanceNetwork>,
    /// The network of its public address.
    pub public_network: Option<InstanceNetwork>,
    /// Its open ports, if it is a virtual machine.
    pub vm_ports: Option<Vec<u16>>,
    /// Its volumes, in calls that change it.
    pub mounts: Option<Vec<Mount>>,
    /// The permitted creation, in `ensure`.
    pub creation: Option<CreateScope>,
}

impl SnapshotScope {
    fn new(snapshot: SnapshotId, instance: Tag, purpose: SnapshotPurpose) -> Option<Self> {
        let of = Source { snapshot, instance };
        Some(Self { of, purpose })
    }
}

impl CallSubject {
    /// An instance with this tag, of which nothing else is known.
    pub fn new(tag: Tag) -> Self {
        Self {
            tag,
            size: None,
            network: None,
            public_network: None,
            vm_ports: None,
            mounts: None,
            creation: None,
        }
    }
}

/// The permitted contents of a creation.
#[derive(Debug, Clone)]
pub struct CreateScope {
    /// Host name inside.
    pub hostname: String,
    /// Image references for this kind of engine.
    pub images: Vec<String>,
    /// Whether the program or the configuration names the image. An installed plugin does not count.
    pub image_is_trusted: bool,
    /// Environment of the first process.
    pub environment: Vec<(String, String)>,
    /// Command of the first process; the image's own if empty.
    pub command: Vec<String>,
    /// Ports of the node.
    pub published: Vec<PublishedPort>,
    /// The node's address of private ports; `None` if they have that of public ones.
    pub private_address: Option<Ipv4Addr>,
    /// Its GPU devices.
    pub gpu_devices: Vec<String>,
    /// Files to put into it before its first start.
    pub files: Vec<BlueprintFile>,
}

impl CallScope {
    /// A call about the whole node that changes nothing.
    pub fn node(installation: &str) -> Self {
        Self {
            installation: installation.to_owned(),
            changes: false,
            subject: None,
            volume: None,
            snapshot: None,
            mark: None,
            survey: None,
            moves: false,
            learnt: BTreeMap::new(),
            numbers: BTreeMap::new(),
            facts: BTreeSet::new(),
        }
    }

    /// The call that surveys the node.
    pub fn survey(installation: &str, images: &[String]) -> Self {
        Self {
            survey: Some(images.to_vec()),
            ..Self::node(installation)
        }
    }

    /// The call that marks the engine's store.
    pub fn mark(installation: &str, mark: &str) -> Self {
        Self {
            changes: true,
            mark: Some(mark.to_owned()),
            ..Self::node(installation)
        }
    }

    /// The call that makes a volume.
    pub fn make_volume(installation: &str, id: VolumeId, size_gib: u32, images: &[String]) -> Self {
        let creation = VolumeCreation {
            size_gib,
            images: images.to_vec(),
        };
        Self::volume(installation, id, Some(creation), false)
    }

    /// The call that removes a volume.
    pub fn unmake_volume(installation: &str, id: VolumeId) -> Self {
        Self::volume(installation, id, None, false)
    }

    /// The call that sends the content of a volume.
    pub fn send_volume(installation: &str, id: VolumeId) -> Self {
        Self::volume(installation, id, None, true)
    }

    fn volume(
        installation: &str,
        id: VolumeId,
        creation: Option<VolumeCreation>,
        is_sent: bool,
    ) -> Self {
        Self {
            changes: true,
            volume: Some(VolumeScope {
                id,
                creation,
                is_sent,
            }),
            ..Self::node(installation)
        }
    }

    /// The call that takes a snapshot of an instance.
    pub fn take_snapshot(installation: &str, target: &DriverTarget, id: SnapshotId) -> Self {
        Self {
            snapshot: SnapshotScope::new(id, target.tag, SnapshotPurpose::Take),
            ..Self::change(installation, target)
        }
    }

    /// The call that removes a snapshot.
    pub fn drop_snapshot(installation: &str, of: Source) -> Self {
        Self {
            changes: true,
            snapshot: SnapshotScope::new(of.snapshot, of.instance, SnapshotPurpose::Drop),
            ..Self::read(installation, of.instance)
        }
    }

    /// The call that sends the content of a snapshot.
    pub fn send_snapshot(installation: &str, of: Source) -> Self {
        Self {
            changes: true,
            snapshot: SnapshotScope::new(of.snapshot, of.instance, SnapshotPurpose::Send),
            ..Self::read(installation, of.instance)
        }
    }

    /// The call that gives an instance the disk of a snapshot of it.
    pub fn restore(installation: &str, spec: &Spec, engine_kind: &str, id: SnapshotId) -> Self {
        Self {
            snapshot: SnapshotScope::new(id, spec.target.tag, SnapshotPurpose::Restore),
            ..Self::create(installation, spec, engine_kind)
        }
    }

    /// A call about one instance that changes nothing.
    pub fn read(installation: &str, tag: Tag) -> Self {
        Self {
            subject: Some(CallSubject::new(tag)),
            ..Self::node(installation)
        }
    }

    /// A call that changes an existing instance.
    pub fn change(installation: &str, target: &DriverTarget) -> Self {
        Self {
            changes: true,
            subject: Some(CallSubject {
                size: Some(target.size),
                network: Some(target.network.clone()),
                public_network: target.public_network.clone(),
                vm_ports: (target.resource_type == ResourceType::Vm)
                    .then(|| target.wan_ports.clone()),
                mounts: Some(target.volumes.clone()),
                ..CallSubject::new(target.tag)
            }),
            ..Self::node(installation)
        }
    }

    /// The call that creates an instance.
    pub fn create(installation: &str, spec: &Spec, engine_kind: &str) -> Self {
        let blueprint = &spec.blueprint;
        let creation = CreateScope {
            hostname: spec.hostname.clone(),
            images: blueprint
                .images
                .iter()
                .filter(|image| image.engine_kind == engine_kind)
                .map(|image| image.reference.clone())
                .collect(),
            image_is_trusted: spec.image_is_trusted,
            environment: blueprint.environment.clone(),
            command: blueprint.command.clone(),
            published: spec.published.clone(),
            private_address: spec.private_address,
            gpu_devices: spec.gpu_devices.clone(),
            files: blueprint.files.clone(),
        };
        let mut scope = Self::change(installation, &spec.target);
        scope.snapshot = spec.source.map(|of| SnapshotScope {
            of,
            purpose: SnapshotPurpose::Source,
        });
        if let Some(subject) = &mut scope.subject {
            subject.creation = Some(creation);
        }
        scope
    }

    /// The call that brings an instance from another node of the cluster. It creates nothing, and writes no
    /// file.
    pub fn moves(installation: &str, spec: &Spec, engine_kind: &str) -> Self {
        Self {
            moves: true,
            ..Self::create(installation, spec, engine_kind)
        }
    }
}
