//! The operator's part of OVN mode: the uplink, the rules and the project.

use crate::api::model::Project;
use crate::context::Context;
use crate::settings::Ovn;
use wharf_guest::{During, Error};

/// The kind of network that leads every member to the same link.
const PHYSICAL: &str = "physical";

/// Checks the operator's part.
///
/// # Errors
/// [`Error::Unsupported`] with the setting whose part is missing or unfit.
pub fn check(ctx: &Context, ovn: &Ovn) -> Result<(), Error> {
    let (uplink, acl) = (&ovn.uplink, &ovn.acl);
    let found = match ctx.api.uplink()? {
        Ok(found) => found,
        Err(refusal) if refusal.is_not_found() => {
            return unfit("uplink", &format!("the cluster has no network {uplink:?}"));
        }
        Err(refusal) => return Err(refusal.during("reading settings.uplink")),
    };
    if found.r#type != PHYSICAL {
        let why = format!(
            "the network {uplink:?} is of the type {:?}; it must be {PHYSICAL:?}, because the bridge of a \
             member does not answer on the others",
            found.r#type
        );
        return unfit("uplink", &why);
    }
    let project = ctx.api.project()?.during("reading settings.project")?;
    fits(&project, ovn)?;
    match ctx.api.acl()? {
        Ok(_) => Ok(()),
        Err(refusal) if refusal.is_not_found() => unfit(
            "acl",
            &format!("the project {:?} has no network ACL {acl:?}", project.name),
        ),
        Err(refusal) => Err(refusal.during("reading settings.acl")),
    }
}

/// Checks that a project has networks of its own, with this uplink and these addresses.
fn fits(project: &Project, ovn: &Ovn) -> Result<(), Error> {
    let name = &project.name;
    let value = |key: &str| project.config.get(key).map_or("", String::as_str);
    if value("features.networks") != "true" {
        return unfit(
            "project",
            &format!("OVN mode needs `features.networks=true` of the project {name:?}"),
        );
    }
    if value("restricted") != "true" {
        return Ok(());
    }
    let uplink = ovn.uplink.as_str();
    let mut uplinks = value("restricted.networks.uplinks")
        .split(',')
        .map(str::trim);
    if !uplinks.any(|allowed| allowed == uplink) {
        return unfit(
            "uplink",
            &format!("the project {name:?} needs {uplink:?} in `restricted.networks.uplinks`"),
        );
    }
    let mut subnets = value("restricted.networks.subnets")
        .split(',')
        .map(str::trim);
    let covers = |subnet: &str| {
        let (of, cidr) = subnet.split_once(':').unwrap_or_default();
        of == uplink && ovn.publish.is_within(cidr)
    };
    if subnets.any(covers) {
        Ok(())
    } else {
        unfit(
            "publish_cidr",
            &format!(
                "the project {name:?} needs these addresses in `restricted.networks.subnets`, as \
                 \"{uplink}:CIDR\""
            ),
        )
    }
}

fn unfit(setting: &str, why: &str) -> Result<(), Error> {
    Err(Error::Unsupported(format!("settings.{setting}: {why}")))
}
