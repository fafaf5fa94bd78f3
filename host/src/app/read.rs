//! Get and list. Neither ever waits for a driver.

use super::find::{Selector, find};
use super::{App, Caller};
use crate::db::Read;
use crate::domain::error::Error;
use crate::domain::flavor::Flavor;
use crate::domain::instance::Instance;
use crate::domain::name::Name;
use crate::domain::secret::SecretText;
use std::sync::Arc;

/// An instance as its owner may see it.
#[derive(Debug, Clone)]
pub struct InstanceView {
    /// The instance.
    pub instance: Instance,
    /// Its owner's e-mail address.
    pub owner_email: Arc<str>,
    /// `original_service_password`.
    pub password: SecretText,
    /// Host of web pages.
    pub web_host: Arc<str>,
}

impl App {
    pub(super) fn view(&self, caller: &Caller, instance: Instance) -> Result<InstanceView, Error> {
        let password = self.vault.open_text(instance.id, &instance.password)?;
        Ok(self.view_with(caller, instance, password))
    }

    pub(super) fn view_with(
        &self,
        caller: &Caller,
        instance: Instance,
        password: SecretText,
    ) -> InstanceView {
        InstanceView {
            instance,
            owner_email: Arc::clone(&caller.email),
            password,
            web_host: Arc::clone(&self.web_host),
        }
    }

    /// One of the caller's instances.
    pub fn get(&self, caller: &Caller, selector: &Selector) -> Result<InstanceView, Error> {
        let found = self.db.read(|rows| find(rows, caller.user, selector))?;
        self.view(caller, found)
    }

    /// All of the caller's instances, oldest first.
    pub fn list(&self, caller: &Caller) -> Result<Vec<InstanceView>, Error> {
        self.db
            .read(|rows| rows.owned_by(caller.user))?
            .into_iter()
            .map(|instance| self.view(caller, instance))
            .collect()
    }

    /// What can be asked for.
    pub fn flavors(&self) -> &[Arc<Flavor>] {
        self.plugins.flavors()
    }

    /// GPU models that some node has.
    pub fn gpu_models(&self) -> Vec<String> {
        let gpus = self.config.node.iter().flat_map(|node| &node.gpus);
        let models: std::collections::BTreeSet<_> = gpus.map(|gpu| gpu.model.clone()).collect();
        models.into_iter().collect()
    }

    /// Whether a living instance of anyone has this name.
    pub fn name_taken(&self, name: &Name) -> Result<bool, Error> {
        self.db
            .read(|rows| Ok(rows.id_of_name(name.as_str())?.is_some()))
    }
}
