//! The container of an instance on the engine.

use crate::api::model::{Details, Summary, label};
use crate::context::Context;
use crate::names;
use crate::phase;
use wharf_guest::{During, Error, Phase, Tag};

/// The container of an instance.
#[derive(Debug)]
pub struct Found {
    /// The engine's description.
    pub details: Details,
    /// The name, or the id if someone has renamed the container.
    pub name: String,
}

/// Finds the container of an instance. A container of another incarnation does not count; one of
/// another installation is off limits.
///
/// # Errors
/// [`Error::Conflict`] if the container belongs to another installation.
pub fn find(ctx: &Context, tag: &Tag, size: bool) -> Result<Option<Found>, Error> {
    Ok(named(ctx, tag, size)?.filter(|found| found.incarnation() == Some(tag.incarnation)))
}

/// Like [`find`], with any incarnation. The lookup by name is fast. A container that was renamed by
/// hand is found by its labels, which determine the instance.
///
/// # Errors
/// [`Error::Conflict`] if the container belongs to another installation.
pub fn named(ctx: &Context, tag: &Tag, size: bool) -> Result<Option<Found>, Error> {
    if let Some(found) = called(ctx, &names::container(tag), size)? {
        return own(ctx, tag, found).map(Some);
    }
    match itself(&listed(ctx, tag)?, tag) {
        Some(summary) => by_id(ctx, tag, &summary.id, size),
        None => Ok(None),
    }
}

/// Picks the instance's current container, not its replacement.
fn itself<'a>(listed: &'a [Summary], tag: &Tag) -> Option<&'a Summary> {
    listed.iter().find(|one| !is_called(one, &names::part(tag)))
}

/// Finds any container with the instance's labels; replacements come last.
///
/// # Errors
/// [`Error::Conflict`] if the container belongs to another installation.
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

/// Reads the container with this id or name.
///
/// # Errors
/// [`Error::Conflict`] if the container belongs to another installation.
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

/// Lists the containers with the instance's labels.
///
/// # Errors
/// When the engine does not return a list.
pub fn listed(ctx: &Context, tag: &Tag) -> Result<Vec<Summary>, Error> {
    let mut containers = ctx
        .api
        .containers_of_instance()?
        .during("looking for the container")?;
    let incarnation = tag.incarnation.to_string();
    containers.retain(|one| label(&one.labels, names::INCARNATION) == Some(&incarnation));
    Ok(containers)
}

/// Returns whether an entry of a list has this name.
pub fn is_called(summary: &Summary, name: &str) -> bool {
    let mut names = summary.names.iter().flatten();
    names.any(|own| own.strip_prefix('/').unwrap_or(own) == name)
}

impl Found {
    /// Returns one label of the container.
    pub fn label(&self, key: &str) -> Option<&str> {
        label(&self.details.config.labels, key)
    }

    /// Returns the incarnation from the container's label.
    pub fn incarnation(&self) -> Option<u64> {
        self.label(names::INCARNATION)?.parse().ok()
    }

    /// Returns the container's phase.
    pub fn phase(&self) -> Phase {
        phase::of_state(&self.details.state, &self.details.config.labels)
    }

    /// Returns whether the processes stand still, mostly for a copy.
    pub fn is_paused(&self) -> bool {
        self.details.state.status == "paused"
    }

    /// Returns whether the container is made from this image and has never run.
    pub fn is_new_from(&self, image: &str) -> bool {
        let state = self.details.state.status.as_str();
        matches!(state, "created" | "configured" | "initialized")
            && self.details.config.image == image
    }

    /// Returns whether the container's processes run.
    pub fn is_up(&self) -> bool {
        self.phase().is_up()
    }
}
