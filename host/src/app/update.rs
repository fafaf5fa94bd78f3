//! `PATCH`: rename, and live resize of containers. All of it holds or none.

use super::clock::now;
use super::find::{Selector, find};
use super::{App, Caller, InstanceView};
use crate::db::{Change, Changes, Read, View};
use crate::domain::capacity::Size;
use crate::domain::driver::{DiskGrow, Features};
use crate::domain::error::{Error, FieldErrors};
use crate::domain::event::What;
use crate::domain::instance::{Instance, Intent, Progress, Resize, ResourceType};
use crate::domain::name::Name;
use crate::domain::request::UpdateRequest;
use crate::domain::state::InstanceState;

impl App {
    /// Changes a name, sizes, or both. `errors` has the fields that could not even be read: nothing
    /// is changed then, and what is wrong with the others is reported with them.
    pub async fn update(
        &self,
        caller: &Caller,
        selector: &Selector,
        request: UpdateRequest,
        mut errors: FieldErrors,
    ) -> Result<InstanceView, Error> {
        let owner = caller.user;
        let (id, features) = self.db.read(|rows| {
            let instance = find(rows, owner, selector)?;
            let features = self.features.get(&instance.node);
            if !errors.0.is_empty() {
                check_fields(rows, &instance, &request, features, &mut errors)?;
            }
            Ok((instance.id, features))
        })?;
        errors.into_result()?;
        let (instance, size) = self
            .db
            .write(move |view| {
                let instance = find(view.rows, owner, &Selector::Id(id))?;
                decide(view, instance, &request, features)
            })
            .await?;
        let Some(size) = size else {
            return self.view(caller, instance);
        };
        self.nudge(caller, id);
        self.wait_settled(&instance).await;
        self.withdraw(caller, &instance).await?;
        let after = self.db.read(|rows| find(rows, owner, &Selector::Id(id)))?;
        if after.size != size {
            return Err(self.refusal(&instance)?);
        }
        self.view(caller, after)
    }

    /// A change that the node has not answered by now is taken back: the old sizes hold, and are
    /// sent again.
    async fn withdraw(&self, caller: &Caller, asked: &Instance) -> Result<(), Error> {
        let (id, generation) = (asked.id, asked.generation);
        let withdrawn = self
            .db
            .write(move |view| match view.rows.instance(id)? {
                Some(mut row) if row.generation == generation && row.resize.is_some() => {
                    let deadline = row.deadline;
                    row.resize = None;
                    row.intend(Intent::Run, deadline);
                    let message = "the node did not answer in time".to_owned();
                    let refused = What::ResizeRefused {
                        field: None,
                        message,
                    };
                    Ok((true, Changes::none().record(row, now(), refused)))
                }
                _ => Ok((false, Changes::none())),
            })
            .await?;
        if withdrawn {
            self.nudge(caller, id);
        }
        Ok(())
    }

    /// Why the change that was asked for does not hold.
    fn refusal(&self, asked: &Instance) -> Result<Error, Error> {
        let since = usize::try_from(asked.events).unwrap_or(usize::MAX);
        let events = self.db.read(|rows| rows.events(asked.id))?;
        let refused = events
            .into_iter()
            .skip(since)
            .find_map(|event| match event.what {
                What::ResizeRefused { field, message } => Some(match field {
                    Some(field) => FieldErrors::one(&field, message).into(),
                    None => Error::NodeUnreachable(message),
                }),
                What::ResizeShort(short) => Some(Error::Insufficient(short.into())),
                _ => None,
            });
        let overtaken = "a later change of this instance came in between";
        Ok(refused.unwrap_or(Error::NotApplicable(overtaken)))
    }
}

/// What the instance is from now on, and the size that its node is to give it first.
fn decide(
    view: &View<'_>,
    mut instance: Instance,
    request: &UpdateRequest,
    features: Option<Features>,
) -> Result<((Instance, Option<Size>), Changes), Error> {
    let mut errors = FieldErrors::default();
    let name = check_fields(view.rows, &instance, request, features, &mut errors)?;
    errors.into_result()?;
    let size = request.size_over(instance.size);
    if size == instance.size {
        let Some(name) = name else {
            return Ok(((instance, None), Changes::none()));
        };
        instance.name = name;
        // Of two new names the later holds, also where the other still waits for its size.
        if let Some(resize) = &mut instance.resize {
            resize.name = None;
        }
        let changes = Changes::none().record(instance, now(), What::Renamed);
        return Ok(((changes.instance()?, None), changes));
    }
    check_state(&instance)?;
    let mut claim = view
        .rows
        .claim(instance.id)?
        .ok_or_else(|| Error::internal(format!("{} has no claim", instance.id)))?;
    view.inventory
        .grow(&claim, size)
        .map_err(Error::Insufficient)?;
    let changes = Changes::none();
    if instance.intent == Intent::Stop {
        // A stop that still runs holds the larger of both; the rest is claimed at restart.
        claim.size = if claim.compute {
            claim.size.max(size)
        } else {
            size
        };
        let changes = changes.with(Change::PutClaim(instance.id, claim));
        instance.size = size;
        instance.name = name.unwrap_or(instance.name);
        let changes = changes.record(instance, now(), What::Resized);
        return Ok(((changes.instance()?, None), changes));
    }
    claim.size = claim.size.max(size);
    let deadline = instance.deadline;
    instance.intend(Intent::Run, deadline);
    instance.resize = Some(Resize { size, name });
    let changes = changes
        .with(Change::PutClaim(instance.id, claim))
        .with(Change::PutInstance(Box::new(instance)));
    Ok(((changes.instance()?, Some(size)), changes))
}

/// Names the fields that are wrong for the instance as it is; the name, if it is to be another.
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
        let (is, then) = (instance.size, request.size_over(instance.size));
        for (field, changes) in [
            ("n_vcpus", then.n_vcpus != is.n_vcpus),
            ("mem_gib", then.mem_gib != is.mem_gib),
        ] {
            if changes {
                errors.add(field, KEEPS_SIZE);
            }
        }
    }
    Ok(name)
}

const KEEPS_SIZE: &str = "this instance's node cannot change the size of a container that runs; \
     stop it first, and restart it after the change";

/// Why its disk cannot grow now. Where the engine enforces no disk size, growing it is a matter of the
/// claim alone; a driver refuses it for a single container that has a limit all the same.
fn cannot_grow(features: Features, intent: Intent) -> Option<&'static str> {
    match features.disk_grow {
        _ if !features.disk_limit => None,
        DiskGrow::Running => None,
        DiskGrow::Stopped if intent == Intent::Stop => None,
        DiskGrow::Stopped => Some(
            "this instance's node cannot grow the disk of a container that runs; stop it first, \
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
    if instance.intent == Intent::Run && instance.progress == Progress::Pending {
        return Err(Error::NotApplicable(
            "an earlier change of this instance is still under way; try again shortly",
        ));
    }
    Ok(())
}
