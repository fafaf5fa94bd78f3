//! Findings about flavors whose images differ between nodes.

use super::{ConfigFinding, Severity, Surveys};
use wharf_config::Config;
use wharf_domain::ids::NodeId;
use wharf_instances::flavor_images::FlavorImages;

/// The findings about flavors with different contents on nodes, one for each kind of instance.
pub fn differences(
    config: &Config,
    images: &[FlavorImages],
    surveys: &Surveys,
) -> Vec<ConfigFinding> {
    let finding = |flavor: &FlavorImages| {
        let contents = config.node.iter().filter_map(|node| {
            let survey = surveys.get(&NodeId(node.name.clone()))?.as_ref().ok()?;
            let mut images = flavor.images.iter();
            let content = images.find_map(|image| survey.image_contents.get(&image.reference))?;
            (!node.retired).then_some((&node.name, content))
        });
        let contents: Vec<_> = contents.collect();
        let (first, here) = contents.first()?;
        let (other, there) = contents.iter().find(|(_, content)| content != here)?;
        Some(ConfigFinding {
            severity: Severity::Warning,
            setting: format!("node.{other}.endpoint"),
            problem: format!(
                "the flavor {} is {there} here, and {here} on the node {first}",
                flavor.flavor
            ),
            remedy: "make the images of the flavor from one source on all nodes".to_owned(),
        })
    };
    images.iter().filter_map(finding).collect()
}
