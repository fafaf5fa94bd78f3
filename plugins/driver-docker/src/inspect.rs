//! Phases of instances.

use crate::api::model::{Summary, label};
use crate::context::Context;
use crate::found::{find, is_called};
use crate::{names, phase};
use std::collections::BTreeMap;
use wharf_guest::{During, Error, Observed, Phase, Report, Tag, log};

/// See the `driver` interface. The input has no generation, so the report has generation 0.
pub fn inspect(ctx: &Context, tag: &Tag) -> Result<Report, Error> {
    let phase = find(ctx, tag, false)?.map_or(Phase::Absent, |found| found.phase());
    Ok(Report::settled(0, phase))
}

/// See the `driver` interface.
pub fn list(ctx: &Context) -> Result<Vec<Observed>, Error> {
    let containers = ctx.api.containers()?.during("listing the containers")?;
    let mut all: BTreeMap<(String, u64), Observed> = BTreeMap::new();
    for summary in &containers {
        let Some(observed) = observed(summary) else {
            continue;
        };
        // If an instance has two containers, the one with its name represents it.
        let tag = &observed.tag;
        let key = (tag.instance.clone(), tag.incarnation);
        if is_called(summary, &names::container(tag)) || !all.contains_key(&key) {
            all.insert(key, observed);
        }
    }
    Ok(all.into_values().collect())
}

fn observed(summary: &Summary) -> Option<Observed> {
    let tag = tag(summary);
    if tag.is_none() {
        log!(
            Warn,
            "a container has this installation's label but no instance label: {:?}",
            summary.labels
        );
    }
    Some(Observed {
        tag: tag?,
        phase: phase::of_summary(summary),
    })
}

fn tag(summary: &Summary) -> Option<Tag> {
    Some(Tag {
        instance: label(&summary.labels, names::INSTANCE)?.to_owned(),
        incarnation: label(&summary.labels, names::INCARNATION)?.parse().ok()?,
    })
}
