//! Flavor providers: what they offer, read once, and their blueprints, asked for per instance.

use super::bindings::FlavorProviderPre;
use super::blueprints::{Blueprints, is_pure};
use super::cache::Cache;
use super::call::{Call, Caller, TRANSFER};
use super::convert::{blueprint as convert, error as convert_error, flavor as convert_flavor};
use super::error::LoadError;
use super::guest::Guest;
use super::load::{first_call, flavor_provider};
use crate::domain::blueprint::Blueprint;
use crate::domain::driver::PluginError;
use crate::domain::flavor::{BlueprintRequest, Flavor};
use std::collections::HashMap;
use std::sync::Arc;

/// Everything that is on offer.
#[derive(Default)]
pub struct Flavors {
    list: Vec<Flavor>,
    providers: HashMap<String, Arc<Provider>>,
    given: Blueprints,
}

struct Provider {
    name: Arc<str>,
    pre: FlavorProviderPre<Guest>,
    /// See [`Blueprints`].
    pure: bool,
}

impl Flavors {
    /// What is on offer, by name.
    pub fn list(&self) -> &[Flavor] {
        &self.list
    }

    /// Loads a provider and adds what it offers.
    pub async fn add(
        &mut self,
        caller: &Caller,
        cache: &Cache,
        name: &str,
        wasm: &[u8],
    ) -> Result<(), LoadError> {
        let pre = flavor_provider(caller, cache, name, wasm)?;
        let once = pre.clone();
        let offered = caller
            .run(
                first_call(caller, name, "flavors"),
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
            pure: is_pure(pre.instance_pre().component(), caller.engine()),
            pre,
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
            self.list.push(flavor);
        }
        self.list.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    /// What a provider that could say nothing else has said before.
    pub fn given(&self, request: &BlueprintRequest) -> Option<Arc<Blueprint>> {
        self.given.get(request)
    }

    /// Remembers an answer, if its provider could say nothing else.
    pub fn remember(&self, request: &BlueprintRequest, blueprint: &Arc<Blueprint>) {
        let provider = self.providers.get(&request.flavor);
        if provider.is_some_and(|provider| provider.pure) {
            self.given.put(request, blueprint);
        }
    }

    /// Asks a flavor's provider what an instance is made of.
    pub async fn blueprint(
        &self,
        caller: &Caller,
        request: &BlueprintRequest,
    ) -> Result<Arc<Blueprint>, PluginError> {
        let provider = self
            .providers
            .get(&request.flavor)
            .ok_or(PluginError::NotFound)?;
        let flavor = self
            .list
            .iter()
            .find(|flavor| flavor.name == request.flavor)
            .ok_or(PluginError::NotFound)?;
        let call = Call {
            plugin: Arc::clone(&provider.name),
            node: None,
            function: "blueprint",
            access: None,
            wall: caller.limits().wall,
            transfer: TRANSFER,
        };
        let pre = provider.pre.clone();
        let given = convert_flavor::request(request);
        let blueprint = caller
            .run(call, |mut store| async move {
                let guest = pre.instantiate_async(&mut store).await?;
                guest
                    .wharf_plugin_flavors()
                    .call_blueprint(&mut store, &given)
                    .await
            })
            .await?
            .map_err(convert_error::from_guest)?;
        convert::from_guest(blueprint, flavor, request).map(Arc::new)
    }
}
