//! Conversion of flavors and of requests for blueprints.

use super::{
    clean, is_kebab, nonsense, resource_type_from_guest, resource_type_to_guest, size_from_guest,
    size_to_guest,
};
use crate::bindings::{flavors as wit, types};
use wharf_domain::driver::PluginError;
use wharf_domain::flavor::{BlueprintRequest, Flavor, WebAuth};

/// Most flavors of one provider.
const MAX_FLAVORS: usize = 256;
/// Longest name, bytes.
const MAX_NAME: usize = 63;
/// Longest description, bytes.
const MAX_DESCRIPTION: usize = 500;

/// From a guest: the flavors of a provider.
pub fn list(offered: Vec<wit::Flavor>) -> Result<Vec<Flavor>, PluginError> {
    if offered.len() > MAX_FLAVORS {
        return Err(nonsense(format!("{} flavors", offered.len())));
    }
    let mut flavors: Vec<Flavor> = Vec::with_capacity(offered.len());
    for flavor in offered {
        let flavor = from_guest(flavor)?;
        if flavors.iter().any(|other| other.name == flavor.name) {
            return Err(nonsense(format!("flavor {:?} twice", flavor.name)));
        }
        flavors.push(flavor);
    }
    Ok(flavors)
}

fn from_guest(flavor: wit::Flavor) -> Result<Flavor, PluginError> {
    if !is_kebab(&flavor.name, MAX_NAME) {
        return Err(nonsense(format!(
            "flavor name {:?} is not kebab-case",
            clean(&flavor.name, MAX_NAME)
        )));
    }
    let name = flavor.name;
    let mut resource_types = Vec::new();
    for kind in flavor
        .resource_types
        .into_iter()
        .map(resource_type_from_guest)
    {
        if resource_types.contains(&kind) {
            return Err(nonsense(format!("flavor {name}: {} twice", kind.as_str())));
        }
        resource_types.push(kind);
    }
    if resource_types.is_empty() {
        return Err(nonsense(format!("flavor {name}: no resource type")));
    }
    if !flavor.ssh && !flavor.web {
        return Err(nonsense(format!(
            "flavor {name}: neither SSH nor a web page"
        )));
    }
    let web_auth = web_auth_from_guest(flavor.web_auth);
    if !flavor.web && web_auth != WebAuth::None {
        return Err(nonsense(format!(
            "flavor {name}: a credential for a web page that it lacks"
        )));
    }
    Ok(Flavor {
        name,
        description: clean(&flavor.description, MAX_DESCRIPTION),
        resource_types,
        ssh: flavor.ssh,
        web: flavor.web,
        web_auth,
        s3_prefill: flavor.s3_prefill,
        ai: flavor.ai,
        gpu_aware: flavor.gpu_aware,
        minimum: size_from_guest(flavor.minimum),
    })
}

fn web_auth_from_guest(auth: wit::WebAuth) -> WebAuth {
    match auth {
        wit::WebAuth::None => WebAuth::None,
        wit::WebAuth::Bearer => WebAuth::Bearer,
        wit::WebAuth::Basic => WebAuth::Basic,
        wit::WebAuth::Token => WebAuth::Token,
    }
}

/// To a guest.
pub fn request(request: &BlueprintRequest) -> wit::BlueprintRequest {
    let size: types::Size = size_to_guest(request.size);
    wit::BlueprintRequest {
        flavor: request.flavor.name.clone(),
        resource_type: resource_type_to_guest(request.resource_type),
        size,
        n_gpus: request.n_gpus,
        login_user: request.login_user.clone(),
        public_key: request.public_key.clone(),
        s3_prefill: request.s3_prefill,
        ai: request.ai,
        private_page: request.private_page,
    }
}
