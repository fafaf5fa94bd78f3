//! The instance on the engine.

use crate::api::Reply;
use crate::api::model::Instance;
use crate::context::Context;
use crate::{names, phase};
use wharf_guest::{Error, Phase, Tag};

/// An instance on the engine.
#[derive(Debug)]
pub struct Found {
    /// The engine's description.
    pub details: Instance,
    /// Its name.
    pub name: String,
}

/// The place of an instance in the cluster.
#[derive(Debug)]
pub enum Place {
    /// No member has it.
    Absent,
    /// This member has it.
    Here(Found),
    /// Another member has it.
    Elsewhere(Found),
}

/// Looks for the instance of the call, in the whole cluster.
///
/// # Errors
/// [`Error::Conflict`] if another installation has it.
pub fn look(ctx: &Context, tag: &Tag) -> Result<Place, Error> {
    place(ctx, tag, ctx.api.details()?)
}

fn place(ctx: &Context, tag: &Tag, reply: Reply<Instance>) -> Result<Place, Error> {
    let name = names::instance(ctx.installation, tag);
    let details = match reply {
        Ok(details) => details,
        Err(refusal) if refusal.is_not_found() => return Ok(Place::Absent),
        Err(refusal) => return Err(refusal.during("reading the instance")),
    };
    let owner = details.config.get(names::INSTALLATION);
    if owner.is_none_or(|owner| owner != ctx.installation) {
        return Err(Error::Conflict(format!("{name} belongs to someone else")));
    }
    let is_here = details.location == ctx.settings.member;
    let found = Found { details, name };
    Ok(if is_here {
        Place::Here(found)
    } else {
        Place::Elsewhere(found)
    })
}

/// Finds the instance of the call on this member.
///
/// # Errors
/// [`Error::Conflict`] if another installation or another member has it.
pub fn find(ctx: &Context, tag: &Tag) -> Result<Option<Found>, Error> {
    here(look(ctx, tag)?)
}

/// Finds an instance on this member whose disk has been listed.
///
/// # Errors
/// As those of [`find`].
pub fn find_listed(ctx: &Context, tag: &Tag) -> Result<Option<Found>, Error> {
    let name = names::instance(ctx.installation, tag);
    here(place(ctx, tag, ctx.api.listed(&name)?)?)
}

fn here(place: Place) -> Result<Option<Found>, Error> {
    match place {
        Place::Absent => Ok(None),
        Place::Here(found) => Ok(Some(found)),
        Place::Elsewhere(found) => Err(Error::Conflict(format!(
            "{} is on the member {}",
            found.name, found.details.location
        ))),
    }
}

impl Found {
    /// Returns the instance's phase.
    pub fn phase(&self) -> Phase {
        phase::of(&self.details)
    }

    /// Returns the phase of an instance of another member.
    pub fn elsewhere(&self) -> Phase {
        Phase::Elsewhere(format!("member {}", self.details.location))
    }

    /// Returns the owner's network that the instance is on, in OVN mode.
    pub fn network(&self, installation: &str) -> Option<&str> {
        let network = self.details.devices.get("eth0")?.get("network")?;
        names::is_network(installation, network).then_some(network.as_str())
    }

    /// Returns whether the instance's processes run.
    pub fn is_up(&self) -> bool {
        self.phase().is_up()
    }
}
