//! A flavor as the catalog describes it.

use wharf_guest::{Flavor, ResourceType, Size, WebAuth};

/// The web page of a flavor.
#[derive(Debug, Clone, Copy)]
pub struct Web {
    /// The port of the web server in the instance.
    pub port: u16,
    /// A path that answers without a login once the page works.
    pub health: &'static str,
    /// Whether the web server checks the password itself and needs it in clear text. Otherwise it
    /// uses the login account's hash.
    pub clear_password: bool,
    /// The credential that the host adds to requests for the page.
    pub auth: WebAuth,
}

/// One flavor. `Flavor` is its form in the WIT interface.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name in the REST interface.
    pub name: &'static str,
    /// One sentence for display.
    pub description: &'static str,
    /// Whether the flavor also runs as a virtual machine. All run as containers.
    pub vm: bool,
    /// Whether it has a public SSH port. A flavor without it has a web page. All run an SSH server.
    pub ssh: bool,
    /// The web page, if it has one.
    pub web: Option<Web>,
    /// Whether it supports the S3 prefill.
    pub s3_prefill: bool,
    /// Whether it passes the AI key to an assistant.
    pub ai: bool,
    /// Whether it has libraries that use a GPU.
    pub gpu_aware: bool,
}

/// The smallest instance that the service offers; every environment starts in it. A higher minimum
/// would refuse requests that the interface allows.
const MINIMUM: Size = Size {
    n_vcpus: 1,
    mem_gib: 1,
    disk_size_gib: 10,
};

impl Entry {
    /// Returns the description for the host.
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
            web_auth: self.web.map_or(WebAuth::None, |web| web.auth),
            s3_prefill: self.s3_prefill,
            ai: self.ai,
            gpu_aware: self.gpu_aware,
            minimum: MINIMUM,
        }
    }

    /// Returns whether the flavor runs as this resource type.
    pub fn runs_as(&self, resource_type: ResourceType) -> bool {
        match resource_type {
            ResourceType::Container => true,
            ResourceType::Vm => self.vm,
        }
    }
}
