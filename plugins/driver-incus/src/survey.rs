//! The images that the project lacks, and the contents of others. A client that is restricted to a project
//! does not see the addresses of the server's networks.

use crate::context::Context;
use wharf_guest::{During, Error, ImageContent, Surroundings};

/// The property of an image with its content, for users.
const CONTENT: &str = "io.wharf.content";

/// See the `survey` interface.
pub fn look(ctx: &Context, images: &[String]) -> Result<Surroundings, Error> {
    let present = ctx.api.images()?.during("listing the images")?;
    let (mut missing_images, mut image_contents) = (Vec::new(), Vec::new());
    for reference in images {
        let mut present = present.iter();
        let found =
            present.find(|image| image.aliases.iter().any(|alias| alias.name == *reference));
        match found {
            None => missing_images.push(reference.clone()),
            Some(image) => {
                image_contents.extend(image.properties.get(CONTENT).map(|content| ImageContent {
                    image: reference.clone(),
                    content: content.clone(),
                }));
            }
        }
    }
    Ok(Surroundings {
        networks: Vec::new(),
        missing_images,
        // Its images have no labels.
        images_without_ssh: Vec::new(),
        image_contents,
        own_view: None,
        machine: None,
    })
}
