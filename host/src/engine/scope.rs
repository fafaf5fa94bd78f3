//! What the call in progress is about. The policy allows a guest to touch that and nothing else:
//! a driver that is asked about one instance can't reach another's container.

use crate::domain::blueprint::File;
use crate::domain::driver::{Network, PublishedPort, Spec, Tag, Target};
use crate::domain::instance::ResourceType;

/// One call of a driver, as the policy sees it.
#[derive(Debug, Clone)]
pub struct Scope {
    /// This installation's name, on everything it makes.
    pub installation: String,
    /// Whether the function that was called may change anything.
    pub changes: bool,
    /// The instance the call is for; none for calls about the whole node.
    pub subject: Option<Subject>,
    /// In these, ids that the engine itself has listed with the installation's label.
    pub listed: Vec<String>,
}

/// The instance a call is for.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Which one.
    pub tag: Tag,
    /// Its owner's network, in calls that come with it.
    pub network: Option<Network>,
    /// The network of its public address.
    pub public_network: Option<Network>,
    /// Its open ports, if it is a virtual machine.
    pub vm_ports: Option<Vec<u16>>,
    /// What may be created, in `ensure`.
    pub creation: Option<Creation>,
    /// Ids that the engine itself has listed in this call with the instance's labels.
    pub containers: Vec<String>,
    /// Ids that the engine gave in this call to programs to be run in the instance's container.
    pub programs: Vec<String>,
}

impl Subject {
    fn new(tag: Tag) -> Self {
        Self {
            tag,
            network: None,
            public_network: None,
            vm_ports: None,
            creation: None,
            containers: Vec::new(),
            programs: Vec::new(),
        }
    }
}

/// What `ensure` may put into a creation.
#[derive(Debug, Clone)]
pub struct Creation {
    /// Host name inside.
    pub hostname: String,
    /// Image references for this kind of engine.
    pub images: Vec<String>,
    /// Environment of the first process.
    pub environment: Vec<(String, String)>,
    /// Command of the first process; the image's own if empty.
    pub command: Vec<String>,
    /// Ports of the node.
    pub published: Vec<PublishedPort>,
    /// The node's GPU devices that it gets.
    pub gpu_devices: Vec<String>,
    /// What may be put into it before its first start.
    pub files: Vec<File>,
}

impl Scope {
    /// A call about the whole node that changes nothing.
    pub fn node(installation: &str) -> Self {
        Self {
            installation: installation.to_owned(),
            changes: false,
            subject: None,
            listed: Vec::new(),
        }
    }

    /// A call about one instance that changes nothing.
    pub fn read(installation: &str, tag: Tag) -> Self {
        Self {
            installation: installation.to_owned(),
            changes: false,
            subject: Some(Subject::new(tag)),
            listed: Vec::new(),
        }
    }

    /// A call that changes an existing instance.
    pub fn change(installation: &str, target: &Target) -> Self {
        Self {
            installation: installation.to_owned(),
            changes: true,
            subject: Some(Subject {
                network: Some(target.network.clone()),
                public_network: target.public_network.clone(),
                vm_ports: (target.resource_type == ResourceType::Vm)
                    .then(|| target.wan_ports.clone()),
                ..Subject::new(target.tag)
            }),
            listed: Vec::new(),
        }
    }

    /// The call that creates an instance.
    pub fn create(installation: &str, spec: &Spec, engine_kind: &str) -> Self {
        let blueprint = &spec.blueprint;
        let creation = Creation {
            hostname: spec.hostname.clone(),
            images: blueprint
                .images
                .iter()
                .filter(|image| image.engine_kind == engine_kind)
                .map(|image| image.reference.clone())
                .collect(),
            environment: blueprint.environment.clone(),
            command: blueprint.command.clone(),
            published: spec.published.clone(),
            gpu_devices: spec.gpu_devices.clone(),
            files: blueprint.files.clone(),
        };
        let mut scope = Self::change(installation, &spec.target);
        if let Some(subject) = &mut scope.subject {
            subject.creation = Some(creation);
        }
        scope
    }
}
