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
    /// Whether the program or the configuration names them. An installed plugin does not count.
    pub are_trusted: bool,
    /// Whether SSH has a private port, so that nothing else shows if it listens.
    pub has_private_ssh: bool,
}

impl FlavorImages {
    /// The references of the images, for engines of all kinds.
    pub fn references(&self) -> Vec<String> {
        let images = self.images.iter();
        images.map(|image| image.reference.clone()).collect()
    }
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
                are_trusted: plugins.has_trusted_images(&flavor.name),
                has_private_ssh: blueprint.ssh
                    && !flavor.ssh
                    && *resource_type == ResourceType::Container,
            });
        }
    }
    images
}

/// The references of the images that may hold a volume on engines of this kind. The engine of the node resolves
/// the directory of a volume on the disk of such an image, so a link in the image would lead to any directory of
/// the node. A flavor provider reaches nothing, and therefore names no image for this.
pub fn holders(images: &[FlavorImages], engine_kind: &str) -> Vec<String> {
    let trusted = images.iter().filter(|flavor| flavor.are_trusted);
    let trusted: Vec<FlavorImages> = trusted.cloned().collect();
    by_engine(&trusted).remove(engine_kind).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::{FlavorImages, holders};
    use wharf_domain::blueprint::Image;
    use wharf_domain::instance::ResourceType;

    #[test]
    fn only_images_of_the_program_and_the_operator_hold_volumes() {
        let flavor = |reference: &str, are_trusted| FlavorImages {
            flavor: reference.to_owned(),
            resource_type: ResourceType::Container,
            images: ["docker", "incus"]
                .map(|kind| Image {
                    engine_kind: kind.to_owned(),
                    reference: format!("{kind}/{reference}"),
                })
                .to_vec(),
            are_trusted,
            has_private_ssh: false,
        };
        let images = [flavor("plugin", false), flavor("base", true)];
        assert_eq!(holders(&images, "docker"), ["docker/base"]);
        assert_eq!(holders(&images[..1], "docker"), [""; 0]);
    }
}
