//! Phases of instances.

use crate::context::Context;
use crate::found::{Place, find_listed, look};
use crate::{metrics, names};
use wharf_guest::{During, Error, Observed, Phase, Report, Tag};

/// See the `driver` interface. The input has no generation, so the report has generation 0.
pub fn inspect(ctx: &Context, tag: &Tag) -> Result<Report, Error> {
    Ok(Report::settled(
        0,
        match look(ctx, tag)? {
            Place::Absent => Phase::Absent,
            Place::Here(found) => found.phase(),
            Place::Elsewhere(found) => found.elsewhere(),
        },
    ))
}

/// See the `driver` interface. The disks on the member tell which instances it has, and the metrics,
/// which the engine keeps for seconds, which of them run. Only the others are read one by one.
pub fn list(ctx: &Context) -> Result<Vec<Observed>, Error> {
    let disks = ctx.api.disks()?.during("listing the disks")?;
    let tags: Vec<Tag> = disks
        .iter()
        .filter_map(|name| names::tag(ctx.installation, name))
        .collect();
    if tags.is_empty() {
        return Ok(Vec::new());
    }
    let metrics = ctx.api.metrics()?.during("reading the metrics")?;
    let running = metrics::running(&metrics);
    let mut all = Vec::new();
    for tag in tags {
        let phase = if running.contains(names::instance(ctx.installation, &tag).as_str()) {
            Phase::Ready
        } else {
            match find_listed(ctx, &tag) {
                Ok(Some(found)) => found.phase(),
                Ok(None) => continue,
                // Its disk is here: another member has taken it over since.
                Err(Error::Conflict(_)) => continue,
                Err(other) => return Err(other),
            }
        };
        all.push(Observed { tag, phase });
    }
    Ok(all)
}
