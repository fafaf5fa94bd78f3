//! An instance's container as the engine has it.

use crate::api::model::{Details, Labels};
use crate::context::Context;
use crate::names;
use crate::phase;
use wharf_guest::{Error, Phase, Report, Tag};

/// A container that carries an instance's name.
#[derive(Debug)]
pub struct Found {
    /// What the engine says of it.
    pub details: Details,
    /// Its name.
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

/// As [`find`], whatever the incarnation.
///
/// # Errors
/// [`Error::Conflict`] on a container that belongs to someone else.
pub fn named(ctx: &Context, tag: &Tag, size: bool) -> Result<Option<Found>, Error> {
    let name = names::container(tag);
    let details = match ctx.api.details(&name, size)? {
        Ok(details) => details,
        Err(refusal) if refusal.is_not_found() => return Ok(None),
        Err(refusal) => return Err(refusal.during("reading the container")),
    };
    let found = Found { details, name };
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
