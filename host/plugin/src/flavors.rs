//! Flavor providers: the flavors they offer, read once, and a blueprint for each instance.

use super::bindings::FlavorProviderPre;
use super::cache::Cache;
use super::call::{Call, CallRunner, TRANSFER};
use super::convert::{blueprint as convert, error_from_guest, flavor as convert_flavor};
use super::embedded::EMBEDDED;
use super::error::LoadError;
use super::guest::Guest;
use super::load::{first_call, flavor_provider};
use super::own::OwnFlavor;
use std::collections::HashMap;
use std::sync::Arc;
use wharf_domain::blueprint::Blueprint;
use wharf_domain::driver::PluginError;
use wharf_domain::flavor::{BlueprintRequest, Flavor};

/// The flavors of all providers.
#[derive(Default)]
pub struct Flavors {
    list: Vec<Arc<Flavor>>,
    providers: HashMap<String, Arc<Provider>>,
    own: HashMap<String, OwnFlavor>,
}

struct Provider {
    name: Arc<str>,
    pre: FlavorProviderPre<Guest>,
    is_embedded: bool,
}

impl Flavors {
    /// The flavors on offer, by name.
    pub fn list(&self) -> &[Arc<Flavor>] {
        &self.list
    }

    /// Loads a provider and adds its flavors.
    pub async fn add(
        &mut self,
        runner: &CallRunner,
        cache: &Cache,
        name: &str,
        wasm: &[u8],
    ) -> Result<(), LoadError> {
        let pre = flavor_provider(runner, cache, name, wasm)?;
        let once = pre.clone();
        let offered = runner
            .run(
                first_call(runner, name, "flavors"),
                |mut store| async move {
                    let guest = once.instantiate_async(&mut store).await?;
                    guest.wharf_plugin_flavors().call_flavors(&mut store).await
                },
            )
            .await
            .and_then(convert_flavor::list)
            .map_err(|error| LoadError::FirstCall {
                plugin: name.to_owned(),
                why: error.to_string(),
            })?;
        let provider = Arc::new(Provider {
            name: name.into(),
            pre,
            is_embedded: EMBEDDED.contains(&(name, wasm)),
        });
        for flavor in offered {
            if let Some(other) = self
                .providers
                .insert(flavor.name.clone(), Arc::clone(&provider))
            {
                return Err(LoadError::DuplicateFlavor {
                    flavor: flavor.name,
                    first: other.name.to_string(),
                    second: name.to_owned(),
                });
            }
            self.list.push(Arc::new(flavor));
        }
        self.list.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    /// Adds a flavor of the operator's.
    pub fn add_own(&mut self, own: OwnFlavor) -> Result<(), LoadError> {
        let name = own.flavor.name.clone();
        if let Some(provider) = self.providers.get(&name) {
            return Err(LoadError::OwnFlavor {
                flavor: name,
                plugin: provider.name.to_string(),
            });
        }
        self.list.push(Arc::new(own.flavor.clone()));
        self.list.sort_by(|a, b| a.name.cmp(&b.name));
        self.own.insert(name, own);
        Ok(())
    }

    /// The operator's flavor with this name.
    pub fn own(&self, name: &str) -> Option<&OwnFlavor> {
        self.own.get(name)
    }

    /// Whether the program or the configuration names the images of this flavor. An installed plugin does not count.
    pub fn has_trusted_images(&self, name: &str) -> bool {
        let provider = self.providers.get(name);
        self.own.contains_key(name) || provider.is_some_and(|provider| provider.is_embedded)
    }

    /// Asks the flavor's provider for a blueprint.
    pub async fn blueprint(
        &self,
        runner: &CallRunner,
        request: &BlueprintRequest,
    ) -> Result<Arc<Blueprint>, PluginError> {
        let provider = self
            .providers
            .get(&request.flavor.name)
            .ok_or(PluginError::NotFound)?;
        let call = Call {
            plugin: Arc::clone(&provider.name),
            node: None,
            function: "blueprint",
            access: None,
            wall: runner.limits().wall,
            transfer: TRANSFER,
        };
        let pre = provider.pre.clone();
        let given = convert_flavor::request(request);
        let blueprint = runner
            .run(call, |mut store| async move {
                let guest = pre.instantiate_async(&mut store).await?;
                guest
                    .wharf_plugin_flavors()
                    .call_blueprint(&mut store, &given)
                    .await
            })
            .await?
            .map_err(error_from_guest)?;
        convert::from_guest(blueprint, request).map(Arc::new)
    }
}
