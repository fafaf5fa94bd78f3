//! An instance's container as the engine has it.

use crate::api::model::{Details, Labels, Summary};
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
    if let Some(found) = called(ctx, &names::container(tag), size)? {
        return own(ctx, tag, found).map(Some);
    }
    match itself(&listed(ctx, tag)?, tag) {
        Some(summary) => by_id(ctx, tag, &summary.id, size),
        None => Ok(None),
    }
}

/// Of the containers with an instance's labels, the one that is not to replace another.
fn itself<'a>(listed: &'a [Summary], tag: &Tag) -> Option<&'a Summary> {
    listed.iter().find(|one| !is_called(one, &names::part(tag)))
}

/// Any container with the instance's labels, those that were to replace it last.
///
/// # Errors
/// [`Error::Conflict`] on a container that belongs to someone else.
pub fn any(ctx: &Context, tag: &Tag) -> Result<Option<Found>, Error> {
    let by_name = by_id(ctx, tag, &names::container(tag), false)?;
    if by_name.as_ref().and_then(Found::incarnation) == Some(tag.incarnation) {
        return Ok(by_name);
    }
    let listed = listed(ctx, tag)?;
    match itself(&listed, tag).or(listed.first()) {
        Some(summary) => by_id(ctx, tag, &summary.id, false),
        None => Ok(None),
    }
}

/// The container with this id or name.
///
/// # Errors
/// [`Error::Conflict`] on a container that belongs to someone else.
pub fn by_id(ctx: &Context, tag: &Tag, id: &str, size: bool) -> Result<Option<Found>, Error> {
    let found = called(ctx, id, size)?;
    found.map(|found| own(ctx, tag, found)).transpose()
}

fn own(ctx: &Context, tag: &Tag, found: Found) -> Result<Found, Error> {
    if found.label(names::INSTALLATION) == Some(ctx.installation)
        && found.label(names::INSTANCE) == Some(&tag.instance)
    {
        return Ok(found);
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

/// The containers with the instance's labels.
///
/// # Errors
/// When the engine gives no list.
pub fn listed(ctx: &Context, tag: &Tag) -> Result<Vec<Summary>, Error> {
    let labels = [
        (names::INSTALLATION, ctx.installation),
        (names::INSTANCE, tag.instance.as_str()),
    ];
    let mut containers = ctx
        .api
        .containers(&labels)?
        .map_err(|refusal| refusal.during("looking for the container"))?;
    let incarnation = tag.incarnation.to_string();
    containers.retain(|one| label(&one.labels, names::INCARNATION) == Some(&incarnation));
    Ok(containers)
}

/// Whether a line of a list is about the container of this name.
#[must_use]
pub fn is_called(summary: &Summary, name: &str) -> bool {
    let mut names = summary.names.iter().flatten();
    names.any(|own| own.strip_prefix('/').unwrap_or(own) == name)
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
        phase::of_state(&self.details.state, &self.details.config.labels)
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
