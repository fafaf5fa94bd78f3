//! The networks of the engine, of any owner, the images that it lacks, and the contents of others.

use crate::api::model::{Image, NetworkDetails, label};
use crate::context::Context;
use crate::settings::Lxcfs;
use crate::{lxcfs, names};
use wharf_guest::{During, EngineNetwork, Error, ImageContent, Surroundings};

/// The registry that no engine can pull from.
const LOCAL: &str = "localhost/";

/// See the `survey` interface.
pub fn look(ctx: &Context, images: &[String]) -> Result<Surroundings, Error> {
    let networks = ctx.api.networks()?.during("listing the networks")?;
    let info = ctx.api.info()?.during("reading the node's resources")?;
    let (mut missing_images, mut images_without_ssh) = (Vec::new(), Vec::new());
    let mut image_contents = Vec::new();
    for reference in images {
        let image = ctx.settings.image(reference);
        let is_local = image.starts_with(LOCAL);
        let Some(image) = find(ctx, &image)? else {
            if is_local {
                missing_images.push(reference.clone());
            }
            continue;
        };
        if is_local && !image.has_ssh() {
            images_without_ssh.push(reference.clone());
        }
        image_contents.extend(image.content().map(|content| ImageContent {
            image: reference.clone(),
            content: content.to_owned(),
        }));
    }
    Ok(Surroundings {
        networks: networks.into_iter().map(network).collect(),
        missing_images,
        images_without_ssh,
        image_contents,
        own_view: match ctx.settings.lxcfs {
            Lxcfs::Auto => lxcfs::is_shown(ctx)?,
            Lxcfs::Off => None,
        },
        machine: (!info.is_rootless() && !info.name.is_empty()).then_some(info.name),
    })
}

fn find(ctx: &Context, image: &str) -> Result<Option<Image>, Error> {
    match ctx.api.find_image(image)? {
        Ok(image) => Ok(Some(image)),
        Err(refusal) if refusal.is_not_found() || refusal.is_no_image() => Ok(None),
        // Its pull tells the reason.
        Err(_) if !image.starts_with(LOCAL) => Ok(None),
        Err(refusal) => Err(refusal.during("looking for an image")),
    }
}

fn network(found: NetworkDetails) -> EngineNetwork {
    let subnets = found.ipam.config.iter().flatten();
    EngineNetwork {
        subnets: subnets.map(|config| config.subnet.clone()).collect(),
        installation: label(&found.labels, names::INSTALLATION).map(str::to_owned),
        name: found.name,
    }
}
