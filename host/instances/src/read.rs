//! `GET` of one instance and of the list. Neither waits for a driver.

use super::App;
use super::find::{Selector, find};
use super::flavor_images::FlavorImages;
use super::host_keys::known_keys;
use super::labels::label_of;
use super::volumes::{MountedVolume, mounted};
use std::collections::BTreeSet;
use std::sync::Arc;
use wharf_config::Config;
use wharf_config::host::in_url;
use wharf_db::{Read, Rows};
use wharf_domain::error::Error;
use wharf_domain::flavor::Flavor;
use wharf_domain::host_key::HostKey;
use wharf_domain::ids::InstanceId;
use wharf_domain::instance::Instance;
use wharf_domain::name::Name;
use wharf_domain::secret::SecretText;
use wharf_ground::caller::Caller;
use wharf_ground::vault::Vault;

/// The data of an instance that its owner may see.
#[derive(Debug, Clone)]
pub struct InstanceView {
    pub instance: Instance,
    pub owner_email: Arc<str>,
    /// Decrypted `original_service_password`; empty if it cannot be decrypted.
    pub password: SecretText,
    /// Address of the page, if it has one.
    pub web_url: Option<String>,
    /// By path.
    pub volumes: Vec<MountedVolume>,
}

/// Makes views for one caller, also within a write.
pub(super) struct Viewer {
    vault: Vault,
    owner_email: Arc<str>,
    config: Arc<Config>,
}

impl Viewer {
    pub(super) fn view(&self, rows: &impl Read, instance: Instance) -> InstanceView {
        InstanceView {
            password: self.vault.password(&instance),
            web_url: self.web_url(&instance, || label_of(rows, instance.id, None)),
            volumes: volumes_of(rows, instance.id),
            instance,
            owner_email: Arc::clone(&self.owner_email),
        }
    }

    /// The address of the page of an instance: by its label, or at its port.
    fn web_url(
        &self,
        instance: &Instance,
        label: impl FnOnce() -> Result<String, Error>,
    ) -> Option<String> {
        let port = instance.web_port?;
        if self.config.pages.is_none() {
            let host = in_url(&self.config.web.host);
            return Some(format!("http://{host}:{port}/"));
        }
        match label() {
            Ok(label) => self.config.page_url(&label),
            Err(error) => {
                tracing::error!(error = %error.chain(), "a label cannot be read");
                None
            }
        }
    }
}

/// The volumes of an instance; none if they cannot be read.
fn volumes_of(rows: &impl Rows, id: InstanceId) -> Vec<MountedVolume> {
    let volumes = mounted(rows, id).inspect_err(
        |error| tracing::error!(error = %error.chain(), "the volumes of an instance cannot be read"),
    );
    volumes.unwrap_or_default()
}

impl App {
    pub(super) fn viewer(&self, caller: &Caller) -> Viewer {
        Viewer {
            vault: self.vault.clone(),
            owner_email: Arc::clone(&caller.email),
            config: self.config(),
        }
    }

    pub(super) fn view(&self, caller: &Caller, instance: Instance) -> InstanceView {
        let password = self.vault.password(&instance);
        self.view_with(caller, instance, password)
    }

    pub(super) fn view_with(
        &self,
        caller: &Caller,
        instance: Instance,
        password: SecretText,
    ) -> InstanceView {
        let label = || self.db.read(|rows| label_of(rows, instance.id, None));
        InstanceView {
            web_url: self.viewer(caller).web_url(&instance, label),
            volumes: (self.db.read(|rows| Ok(volumes_of(rows, instance.id)))).unwrap_or_default(),
            instance,
            owner_email: Arc::clone(&caller.email),
            password,
        }
    }

    /// Returns one of the caller's instances.
    pub fn get(&self, caller: &Caller, selector: &Selector) -> Result<InstanceView, Error> {
        let viewer = self.viewer(caller);
        (self.db).read(|rows| Ok(viewer.view(rows, find(rows, caller.user, selector)?)))
    }

    /// Returns the SSH host keys of one of the caller's instances, as the host was shown them last.
    pub fn host_keys(&self, caller: &Caller, selector: &Selector) -> Result<Vec<HostKey>, Error> {
        self.db.read(|rows| {
            let instance = find(rows, caller.user, selector)?;
            known_keys(rows, instance.id)
        })
    }

    /// Returns the caller's instances, oldest first, with the version of the list. Returns `None` if the
    /// version is `known`.
    pub fn list(
        &self,
        caller: &Caller,
        known: Option<u64>,
    ) -> Result<Option<(u64, Vec<InstanceView>)>, Error> {
        let viewer = self.viewer(caller);
        // Read both in one snapshot, so that the version matches the rows.
        self.db.read(|rows| {
            let version = rows.owner_version(caller.user)?;
            if known == Some(version) {
                return Ok(None);
            }
            let instances = rows.owned_by(caller.user)?.into_iter();
            let views = instances.map(|instance| viewer.view(rows, instance));
            Ok(Some((version, views.collect())))
        })
    }

    /// The version of the caller's list.
    pub fn list_version(&self, caller: &Caller) -> Result<u64, Error> {
        self.db.read(|rows| rows.owner_version(caller.user))
    }

    /// At most `limit` of the caller's instances, oldest first, from the one that follows `after` on.
    pub fn list_page(
        &self,
        caller: &Caller,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<InstanceView>, Error> {
        let viewer = self.viewer(caller);
        self.db.read(|rows| {
            let found = rows.owned_after(caller.user, after, limit)?.into_iter();
            Ok(found.map(|instance| viewer.view(rows, instance)).collect())
        })
    }

    /// Returns the available flavors.
    pub fn flavors(&self) -> &[Arc<Flavor>] {
        self.plugins.flavors()
    }

    /// Returns whether a node that takes new instances has the images of a flavor, for any kind of
    /// instance. A flavor counts as available until nodes are surveyed.
    pub fn is_available(&self, flavor: &Flavor) -> bool {
        let known = self.flavor_images.load();
        let mut kinds = known.iter().filter(|known| known.flavor == flavor.name);
        let lacks = |known: &FlavorImages| {
            let images = known.references();
            self.inventory.lacks_image(known.resource_type, &images)
        };
        kinds.clone().next().is_none() || kinds.any(|known| !lacks(known))
    }

    /// Returns the contents of a flavor's images on the nodes that take new instances and have them. It is
    /// empty until nodes are surveyed, and for images without a content.
    pub fn contents(&self, flavor: &Flavor) -> BTreeSet<String> {
        let known = self.flavor_images.load();
        let kinds = known.iter().filter(|known| known.flavor == flavor.name);
        let contents = |known: &FlavorImages| {
            let images = known.references();
            self.inventory.contents(known.resource_type, &images)
        };
        kinds.flat_map(contents).collect()
    }

    /// Returns the GPU models of all nodes.
    pub fn gpu_models(&self) -> Vec<String> {
        let config = self.config();
        let gpus = config.node.iter().flat_map(|node| &node.gpus);
        let models: BTreeSet<_> = gpus.map(|gpu| gpu.model.clone()).collect();
        models.into_iter().collect()
    }

    /// Returns whether a living instance of any owner has a name.
    pub fn name_taken(&self, name: &Name) -> Result<bool, Error> {
        self.db
            .read(|rows| Ok(rows.id_of_name(name.as_str())?.is_some()))
    }
}
