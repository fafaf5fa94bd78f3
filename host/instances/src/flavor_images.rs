//! The images that flavors need on nodes.

use std::collections::BTreeMap;
use wharf_domain::blueprint::Image;
use wharf_domain::flavor::BlueprintRequest;
use wharf_domain::instance::ResourceType;
use wharf_plugin::Plugins;

/// The images of one flavor for one kind of instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlavorImages {
    pub flavor: String,
    pub resource_type: ResourceType,
    pub images: Vec<Image>,
    /// Whether SSH has a private port, so that nothing else shows if it listens.
    pub has_private_ssh: bool,
}

/// The images of all flavors.
pub async fn images(plugins: &Plugins, login_user: &str) -> Vec<FlavorImages> {
    let mut images = Vec::new();
    for flavor in plugins.flavors() {
        for resource_type in &flavor.resource_types {
            let request = BlueprintRequest {
                flavor: flavor.clone(),
                resource_type: *resource_type,
                size: flavor.minimum,
                n_gpus: 0,
                login_user: login_user.to_owned(),
                public_key: None,
                s3_prefill: false,
                ai: false,
                private_page: false,
            };
            // A flavor without a blueprint for these values has no image to miss.
            let Ok(blueprint) = plugins.blueprint(&request).await else {
                continue;
            };
            images.push(FlavorImages {
                flavor: flavor.name.clone(),
                resource_type: *resource_type,
                images: blueprint.images.clone(),
                has_private_ssh: blueprint.ssh
                    && !flavor.ssh
                    && *resource_type == ResourceType::Container,
            });
        }
    }
    images
}

/// The references of images, by kind of engine.
pub fn by_engine(images: &[FlavorImages]) -> BTreeMap<String, Vec<String>> {
    let mut by_engine: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for image in images.iter().flat_map(|flavor| &flavor.images) {
        let known = by_engine.entry(image.engine_kind.clone()).or_default();
        if !known.contains(&image.reference) {
            known.push(image.reference.clone());
        }
    }
    by_engine
}
