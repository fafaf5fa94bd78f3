//! What the catalog says of one flavor.

use wharf_guest::{Flavor, ResourceType, Size};

/// The web page of a flavor.
#[derive(Debug, Clone, Copy)]
pub struct Web {
    /// Where it listens inside.
    pub port: u16,
    /// A path that answers without a login once the page works.
    pub health: &'static str,
    /// Its server checks the password itself and needs it in clear; else the login account's hash
    /// serves.
    pub clear_password: bool,
}

/// One flavor. `Flavor` is its description on the wire.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// As users name it.
    pub name: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// Runs as a virtual machine too, not only as a container.
    pub vm: bool,
    /// Reached over SSH. One that is not has a web page.
    pub ssh: bool,
    /// Its web page.
    pub web: Option<Web>,
    /// Takes the S3 prefill.
    pub s3_prefill: bool,
    /// Hands the AI key to an assistant.
    pub ai: bool,
    /// Has libraries that use a GPU.
    pub gpu_aware: bool,
}

/// Every environment starts within the smallest instance that the service sells; larger ones are
/// the user's choice. A minimum above it would refuse requests that the interface allows.
const MINIMUM: Size = Size {
    n_vcpus: 1,
    mem_gib: 1,
    disk_size_gib: 10,
};

impl Entry {
    /// Its description for the host.
    #[must_use]
    pub fn describe(&self) -> Flavor {
        let mut resource_types = vec![ResourceType::Container];
        if self.vm {
            resource_types.push(ResourceType::Vm);
        }
        Flavor {
            name: self.name.into(),
            description: self.description.into(),
            resource_types,
            ssh: self.ssh,
            web: self.web.is_some(),
            s3_prefill: self.s3_prefill,
            ai: self.ai,
            gpu_aware: self.gpu_aware,
            minimum: MINIMUM,
        }
    }

    /// Whether it runs as this.
    #[must_use]
    pub fn runs_as(&self, resource_type: ResourceType) -> bool {
        match resource_type {
            ResourceType::Container => true,
            ResourceType::Vm => self.vm,
        }
    }
}
