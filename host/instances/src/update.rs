//! `PATCH`: renames instances and resizes containers. A request takes effect as a whole or not at
//! all.

use super::find::{Selector, find};
use super::{
    App, InstanceCondition, InstanceView, SharedInventory, labels, moves, quota, snapshots,
    suspension,
};
use wharf_db::{Changes, Read, View};
use wharf_domain::capacity::Size;
use wharf_domain::driver::{DiskGrow, Features};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::EventKind;
use wharf_domain::instance::{Instance, Intent, PendingResize, Progress, ResourceType};
use wharf_domain::name::Name;
use wharf_domain::quota::QuotaLimits;
use wharf_domain::request::UpdateRequest;
use wharf_domain::state::InstanceState;
use wharf_ground::caller::Caller;

/// The facts about an instance's node that decide an update.
struct NodeFacts {
    features: Option<Features>,
    /// The reason why it is out of reach, if it is.
    away: Option<String>,
}

impl App {
    /// Changes the name, the size, or both.
    ///
    /// `errors` has the fields that could not be parsed. If there are any, the remaining fields are
    /// checked too, and nothing changes.
    pub async fn update(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
        request: UpdateRequest,
        mut errors: FieldErrors,
    ) -> Result<InstanceView, Error> {
        let owner = caller.user;
        let (id, node) = self.db.read(|rows| {
            let instance = find(rows, owner, selector)?;
            let features = self.nodes.features(&instance.node);
            if !errors.0.is_empty() {
                check_fields(rows, &instance, &request, features, &mut errors)?;
            }
            let away = self.nodes.is_away(&instance.node);
            let away = away.then(|| self.nodes.state(&instance.node).to_string());
            Ok((instance.id, NodeFacts { features, away }))
        })?;
        errors.into_result()?;
        let (inventory, defaults) = (self.inventory.clone(), self.config().quota.limits());
        let target = self.target(caller, &Selector::Id(id), condition);
        let (instance, size) = self
            .change(caller, "instance.update", move |view| {
                let instance = target.find(view.rows)?;
                let limits = quota::limits(view.rows, owner, defaults)?;
                decide(view, &inventory, limits, instance, &request, &node)
            })
            .await
            .map_err(|error| self.with_freeing(error))?;
        let Some(size) = size else {
            return Ok(self.view(caller, instance));
        };
        self.nudge(caller, id).await;
        self.wait_settled(&instance).await;
        self.withdraw(caller, &instance).await?;
        let after = self.db.read(|rows| find(rows, owner, &Selector::Id(id)))?;
        if after.size != size {
            return Err(self.refusal(&instance)?);
        }
        Ok(self.view(caller, after))
    }

    /// Cancels a resize that the node has not confirmed in time. The old size stays, and is sent to the
    /// node again.
    async fn withdraw(&self, caller: &Caller, asked: &Instance) -> Result<(), Error> {
        let (id, generation) = (asked.id, asked.generation);
        let withdrawn = self
            .db
            .write_essential(move |view| match view.rows.instance(id)? {
                Some(mut row) if row.generation == generation && row.resize.is_some() => {
                    let deadline = row.deadline;
                    row.resize = None;
                    row.intend(Intent::Run, deadline);
                    let message = "the node did not answer in time".to_owned();
                    let refused = EventKind::ResizeRefused {
                        field: None,
                        message,
                    };
                    Ok((true, Changes::none().record(row, view.now, refused)))
                }
                _ => Ok((false, Changes::none())),
            })
            .await?;
        if withdrawn {
            self.nudge(caller, id).await;
        }
        Ok(())
    }

    /// Returns the reason why a resize did not take effect.
    fn refusal(&self, asked: &Instance) -> Result<Error, Error> {
        let since = usize::try_from(asked.events).unwrap_or(usize::MAX);
        let events = self.db.read(|rows| rows.events(asked.id))?;
        let refused = events
            .into_iter()
            .skip(since)
            .find_map(|event| match event.what {
                EventKind::ResizeRefused { field, message } => Some(match field {
                    Some(field) => FieldErrors::one(&field, message).into(),
                    None => Error::NodeUnreachable(message),
                }),
                EventKind::ResizeShort(short) => Some(Error::Insufficient(short.into())),
                _ => None,
            });
        let replaced = "a later change of this instance replaced this one";
        Ok(refused.unwrap_or(Error::NotApplicable(replaced)))
    }
}

/// Returns the updated instance, and the new size if the node must confirm it first.
fn decide(
    view: &View<'_>,
    inventory: &SharedInventory,
    limits: QuotaLimits,
    mut instance: Instance,
    request: &UpdateRequest,
    node: &NodeFacts,
) -> Result<((Instance, Option<Size>), Changes), Error> {
    let mut errors = FieldErrors::default();
    let name = check_fields(view.rows, &instance, request, node.features, &mut errors)?;
    errors.into_result()?;
    let size = request.size_over(instance.size);
    if size == instance.size {
        let Some(name) = name else {
            return Ok(((instance, None), Changes::none()));
        };
        instance.name = name;
        // This name also replaces a name that still waits for a resize.
        if let Some(resize) = &mut instance.resize {
            resize.name = None;
        }
        let changes = labels::assign(view.rows, &instance)?;
        let changes = changes.record(instance, view.now, EventKind::Renamed);
        return Ok(((changes.instance()?, None), changes));
    }
    suspension::check(view.rows, &instance)?;
    moves::check(view.rows, &instance)?;
    snapshots::refuse_restoring(view.rows, instance.id)?;
    check_state(&instance)?;
    let mut claim = view
        .rows
        .claim(instance.id)?
        .ok_or_else(|| Error::internal(format!("{} has no claim", instance.id)))?;
    quota::grow(inventory, limits, &claim, size)?;
    inventory.grow(&claim, size)?;
    let changes = Changes::none();
    if instance.intent == Intent::Stop {
        // A stop in progress claims the maximum of both sizes; a restart claims the rest.
        claim.size = if claim.compute {
            claim.size.max(size)
        } else {
            size
        };
        let changes = changes.put_claim(instance.id, claim);
        instance.size = size;
        instance.name = name.unwrap_or(instance.name);
        let changes = changes.with(labels::assign(view.rows, &instance)?);
        let changes = changes.record(instance, view.now, EventKind::Resized);
        return Ok(((changes.instance()?, None), changes));
    }
    // The node must confirm the size, so that one out of reach refuses it at once.
    if let Some(away) = &node.away {
        return Err(Error::NodeUnreachable(away.clone()));
    }
    claim.size = claim.size.max(size);
    let deadline = instance.deadline;
    instance.intend(Intent::Run, deadline);
    instance.resize = Some(PendingResize { size, name });
    let changes = changes.put_claim(instance.id, claim).put_instance(instance);
    Ok(((changes.instance()?, Some(size)), changes))
}

/// Checks the fields against the current instance. Returns the name if it changes.
fn check_fields(
    rows: &impl Read,
    instance: &Instance,
    request: &UpdateRequest,
    features: Option<Features>,
    errors: &mut FieldErrors,
) -> Result<Option<Name>, Error> {
    let name = request.name.clone().filter(|name| *name != instance.name);
    if let Some(name) = &name
        && rows.id_of_name(name.as_str())?.is_some()
    {
        errors.add("name", "is already taken");
    }
    request.check(instance, errors);
    let grows = request.disk_size_gib > Some(instance.size.disk_size_gib);
    if grows
        && instance.resource_type == ResourceType::Container
        && let Some(why) = features.and_then(|f| cannot_grow(f, instance.intent))
    {
        errors.add("disk_size_gib", why);
    }
    if instance.resource_type == ResourceType::Container
        && instance.intent == Intent::Run
        && features.is_some_and(|f| !f.live_resize)
    {
        let (old, new) = (instance.size, request.size_over(instance.size));
        for (field, changes) in [
            ("n_vcpus", new.n_vcpus != old.n_vcpus),
            ("mem_gib", new.mem_gib != old.mem_gib),
        ] {
            if changes {
                errors.add(field, NO_LIVE_RESIZE);
            }
        }
    }
    Ok(name)
}

const NO_LIVE_RESIZE: &str = "this instance's node cannot resize a running container; \
     stop it first, and restart it after the change";

/// Returns the reason why the disk cannot grow now, if any.
///
/// If the engine does not enforce disk sizes, growing only changes the claim. The driver still
/// refuses it for a container that has a limit.
fn cannot_grow(features: Features, intent: Intent) -> Option<&'static str> {
    match features.disk_grow {
        _ if !features.disk_limit => None,
        DiskGrow::Running => None,
        DiskGrow::Stopped if intent != Intent::Run => None,
        DiskGrow::Stopped => Some(
            "this instance's node cannot grow the disk of a running container; stop it first, \
             and restart it after the change",
        ),
        DiskGrow::No => Some("this instance's node cannot grow the disk of an existing container"),
    }
}

fn check_state(instance: &Instance) -> Result<(), Error> {
    let state = instance.state();
    if !matches!(state, InstanceState::Running | InstanceState::Exited) {
        return Err(Error::State {
            verb: "resize",
            state,
            needed: "running or exited",
        });
    }
    if instance.intent != Intent::Stop && instance.progress == Progress::Pending {
        return Err(Error::NotApplicable(
            "an earlier change of this instance is still under way; try again shortly",
        ));
    }
    Ok(())
}
