//! An instance's container as the engine has it.

use crate::api::model::{Details, Labels};
use crate::context::Context;
use crate::names;
use crate::phase;
use wharf_guest::{Error, Phase, Report, Tag};

/// The container of an instance.
#[derive(Debug)]
pub struct Found {
    /// What the engine says of it.
    pub details: Details,
    /// Its name; its id, if someone gave it another name.
    pub name: String,
}

/// Reads the container of an instance. One of another incarnation is not it; one of another
/// installation is nobody's here to touch.
///
/// # Errors
/// [`Error::Conflict`] on a container that belongs to someone else.
pub fn find(ctx: &Context, tag: &Tag, size: bool) -> Result<Option<Found>, Error> {
    Ok(named(ctx, tag, size)?.filter(|found| found.incarnation() == Some(tag.incarnation)))
}

/// As [`find`], whatever the incarnation. Names are quick to look up, but it is the labels that say
/// whose a container is: one that was renamed by hand is found by them.
///
/// # Errors
/// [`Error::Conflict`] on a container that belongs to someone else.
pub fn named(ctx: &Context, tag: &Tag, size: bool) -> Result<Option<Found>, Error> {
    let found = match called(ctx, &names::container(tag), size)? {
        Some(found) => found,
        None => match renamed(ctx, tag)? {
            Some(id) => match called(ctx, &id, size)? {
                Some(found) => found,
                None => return Ok(None),
            },
            None => return Ok(None),
        },
    };
    if found.label(names::INSTALLATION) == Some(ctx.installation)
        && found.label(names::INSTANCE) == Some(&tag.instance)
    {
        return Ok(Some(found));
    }
    Err(Error::Conflict(format!(
        "container {} belongs to someone else",
        found.name
    )))
}

fn called(ctx: &Context, name: &str, size: bool) -> Result<Option<Found>, Error> {
    match ctx.api.details(name, size)? {
        Ok(details) => Ok(Some(Found {
            details,
            name: name.to_owned(),
        })),
        Err(refusal) if refusal.is_not_found() => Ok(None),
        Err(refusal) => Err(refusal.during("reading the container")),
    }
}

/// The id of a container with the instance's labels.
fn renamed(ctx: &Context, tag: &Tag) -> Result<Option<String>, Error> {
    let labels = [
        (names::INSTALLATION, ctx.installation),
        (names::INSTANCE, tag.instance.as_str()),
    ];
    let containers = ctx
        .api
        .containers(&labels)?
        .map_err(|refusal| refusal.during("looking for the container"))?;
    let incarnation = tag.incarnation.to_string();
    let own = containers
        .into_iter()
        .find(|summary| label(&summary.labels, names::INCARNATION) == Some(&incarnation));
    Ok(own.map(|summary| summary.id))
}

/// One label of an object.
#[must_use]
pub fn label<'a>(labels: &'a Labels, key: &str) -> Option<&'a str> {
    labels.as_ref()?.get(key).map(String::as_str)
}

impl Found {
    /// One of its labels.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        label(&self.details.config.labels, key)
    }

    /// Which creation of the instance it is, if its label says.
    #[must_use]
    pub fn incarnation(&self) -> Option<u64> {
        self.label(names::INCARNATION)?.parse().ok()
    }

    /// Where it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        phase::of_state(&self.details.state)
    }

    /// Whether its processes run.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self.phase(), Phase::Ready | Phase::Booting)
    }
}

/// A report that leaves nothing to do.
#[must_use]
pub fn settled(generation: u64, phase: Phase) -> Report {
    Report {
        generation,
        phase,
        again_ms: None,
    }
}

/// A report after which it is worth asking again.
#[must_use]
pub fn again(generation: u64, phase: Phase, ms: u32) -> Report {
    Report {
        generation,
        phase,
        again_ms: Some(ms),
    }
}
