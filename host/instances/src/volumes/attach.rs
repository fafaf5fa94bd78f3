//! `attach-volume/` and `detach-volume/`: volumes of an instance that exists, on engines that can do it.

use super::find::{MISSING, Reader, of_owner, readable};
use super::mounts::{MOUNTS, MountProgress, MountRow, check_files, claim, rows_of};
use crate::{App, InstanceCondition, InstanceView, Selector, moves, snapshots, suspension};
use wharf_db::{Changes, Read as _, Rows as _, VOLUMES, View};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::VolumeId;
use wharf_domain::instance::{Instance, Intent, Progress, ResourceType};
use wharf_domain::kept::KeptStatus;
use wharf_domain::name::Name;
use wharf_domain::state::InstanceState;
use wharf_domain::volume::{MAX_MOUNTS, MountRequest, Volume, check_paths};
use wharf_ground::caller::Caller;

const NOT_LATE: Error = Error::NotApplicable(
    "the engine of this instance attaches volumes at creation only, and detaches none",
);

const OTHER_NODE: &str = "is on another host than the instance";

impl App {
    /// Attaches a volume to an existing instance. Attaching it again changes nothing.
    pub async fn attach_volume(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
        request: MountRequest,
    ) -> Result<(InstanceView, String), Error> {
        let target = self.target(caller, selector, condition);
        let (reader, nodes) = (Reader::from(caller), self.late_nodes());
        let decided = self.change(caller, "instance.attach-volume", move |view| {
            let instance = target.find(view.rows)?;
            let named = readable(view.rows, &reader, &request.volume)?;
            let mounts = rows_of(view.rows, instance.id)?;
            if let Some(volume) = &named {
                let is_own = volume.owner == reader.user;
                let read_only = request.read_only.unwrap_or(!is_own);
                let present = mounts.iter().find(|(id, _)| *id == volume.id);
                let equal = |mount: &MountRow| {
                    mount.path == request.path
                        && mount.read_only == read_only
                        && mount.progress != MountProgress::Detaching
                };
                match present {
                    Some((_, mount)) if equal(mount) => {
                        let pending = mount.progress == MountProgress::Attaching;
                        return Ok(((instance, volume.id, pending), Changes::none()));
                    }
                    Some((_, mount)) => {
                        let path = mount.path.as_str();
                        let message = format!("is attached at {path}; detach it first");
                        return Err(FieldErrors::one("volume", message).into());
                    }
                    None => {}
                }
            }
            suspension::check(view.rows, &instance)?;
            ready_for_change(view, &instance)?;
            let (volume, mut mount) = match claim(view.rows, &reader, &request)? {
                Ok(claimed) => claimed,
                Err(message) => return Err(FieldErrors::one("volume", message).into()),
            };
            if volume.node != instance.node {
                return Err(FieldErrors::one("volume", OTHER_NODE).into());
            }
            if !nodes.contains(&instance.node) {
                return Err(NOT_LATE);
            }
            if volume.status() != KeptStatus::Ready {
                return Err(FieldErrors::one("volume", "is not ready yet").into());
            }
            if mounts.len() >= MAX_MOUNTS {
                let message = format!("an instance has at most {MAX_MOUNTS} volumes");
                return Err(FieldErrors::one("volume", message).into());
            }
            let paths = mounts.iter().map(|(_, mount)| &mount.path);
            check_paths(paths.chain([&mount.path]))
                .map_err(|message| FieldErrors::one("path", message))?;
            if let Some(spec) = view.rows.provisioning_spec(instance.id)? {
                check_files(&spec.blueprint, &mount.path)
                    .map_err(|message| FieldErrors::one("path", message))?;
            }
            mount.progress = MountProgress::Attaching;
            let id = instance.id;
            let changes = intend(instance).put(&MOUNTS, (id, volume.id), mount);
            Ok(((changes.instance()?, volume.id, true), changes))
        });
        let (instance, volume, pending) = decided.await?;
        if pending {
            self.carry_out(caller, &instance).await;
        }
        self.attached(caller, &instance, volume)
    }

    /// Detaches a volume from an existing instance. Detaching it again changes nothing.
    pub async fn detach_volume(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
        named: String,
    ) -> Result<(InstanceView, String), Error> {
        let target = self.target(caller, selector, condition);
        let (reader, nodes) = (Reader::from(caller), self.late_nodes());
        let decided = self.change_essential(caller, "instance.detach-volume", move |view| {
            let instance = target.find(view.rows)?;
            let mounts = rows_of(view.rows, instance.id)?;
            let Some((volume, mount)) = mount_named(view, &reader, mounts, &named)? else {
                let volume = readable(view.rows, &reader, &named)?;
                let message = "you have no such volume";
                let volume = volume.ok_or_else(|| FieldErrors::one("volume", message))?;
                return Ok(((instance, volume.id, false), Changes::none()));
            };
            if mount.progress == MountProgress::Detaching {
                return Ok(((instance, volume, true), Changes::none()));
            }
            ready_for_change(view, &instance)?;
            if !nodes.contains(&instance.node) {
                return Err(NOT_LATE);
            }
            let id = instance.id;
            let progress = MountProgress::Detaching;
            let changes =
                intend(instance).put(&MOUNTS, (id, volume), MountRow { progress, ..mount });
            Ok(((changes.instance()?, volume, true), changes))
        });
        let (instance, volume, pending) = decided.await?;
        if pending {
            self.carry_out(caller, &instance).await;
        }
        self.detached(caller, &instance, volume)
    }

    /// The nodes whose engines change the volumes of existing instances.
    fn late_nodes(&self) -> Vec<wharf_domain::ids::NodeId> {
        let late = |node: &&wharf_domain::ids::NodeId| {
            let features = self.nodes.features(node);
            features.is_some_and(|features| features.late_attach)
        };
        self.drivers.keys().filter(late).cloned().collect()
    }

    async fn carry_out(&self, caller: &Caller, instance: &Instance) {
        self.nudge(caller, instance.id).await;
        self.wait_settled(instance).await;
    }

    /// The instance, the volume and its mount after a change of volumes.
    fn after_change(
        &self,
        caller: &Caller,
        instance: &Instance,
        volume: VolumeId,
    ) -> Result<(InstanceView, Option<Volume>, Option<MountRow>), Error> {
        let (now, row, mount) = self.db.read(|rows| {
            let now = rows.instance(instance.id)?;
            let mount = rows.get(&MOUNTS, (instance.id, volume))?;
            Ok::<_, Error>((now, rows.get(&VOLUMES, volume)?, mount))
        })?;
        let view = self.view(caller, now.unwrap_or_else(|| instance.clone()));
        Ok((view, row, mount))
    }

    /// The answer to an attachment, once the node has taken or refused it.
    fn attached(
        &self,
        caller: &Caller,
        instance: &Instance,
        volume: VolumeId,
    ) -> Result<(InstanceView, String), Error> {
        let (view, row, mount) = self.after_change(caller, instance, volume)?;
        let (Some(mount), Some(row)) = (mount, row) else {
            return Err(Error::NotApplicable("the host could not attach the volume"));
        };
        let (name, path) = (row.name, mount.path.as_str());
        let text = match mount.progress {
            MountProgress::Attached => format!("Volume {name} is attached at {path}."),
            MountProgress::Attaching => under_way(&name, &format!("attached at {path}")),
            // A later request detaches it.
            MountProgress::Detaching => under_way(&name, "detached"),
        };
        Ok((view, text))
    }

    /// The answer to a detachment, once the node has taken or refused it.
    fn detached(
        &self,
        caller: &Caller,
        instance: &Instance,
        volume: VolumeId,
    ) -> Result<(InstanceView, String), Error> {
        let (view, row, mount) = self.after_change(caller, instance, volume)?;
        let name = row.ok_or(MISSING)?.name;
        let text = match mount.map(|mount| mount.progress) {
            None => format!("Volume {name} is detached."),
            Some(MountProgress::Detaching) => under_way(&name, "detached"),
            Some(MountProgress::Attached | MountProgress::Attaching) => {
                return Err(Error::NotApplicable(
                    "the host could not detach the volume; programs in the instance may use it",
                ));
            }
        };
        Ok((view, text))
    }
}

/// The words for a change that the node has not confirmed.
fn under_way(name: &Name, done: &str) -> String {
    format!("Volume {name} is being {done}; its host has not confirmed it yet.")
}

/// Fails unless the volumes of the instance can change now.
fn ready_for_change(view: &View<'_>, instance: &Instance) -> Result<(), Error> {
    if instance.resource_type == ResourceType::Vm {
        return Err(Error::NotApplicable(
            "volumes can be attached to containers only; this instance is a VM",
        ));
    }
    moves::check(view.rows, instance)?;
    snapshots::refuse_restoring(view.rows, instance.id)?;
    let state = instance.state();
    if !matches!(state, InstanceState::Running | InstanceState::Exited) {
        return Err(Error::State {
            verb: "change the volumes of",
            state,
            needed: "running or exited",
        });
    }
    if instance.progress == Progress::Pending || instance.intent == Intent::Start {
        return Err(Error::NotApplicable(
            "an earlier change of this instance is still under way; try again shortly",
        ));
    }
    Ok(())
}

/// The volume of an instance that a user names. A share may have ended, and the instance keeps the volume.
fn mount_named(
    view: &View<'_>,
    reader: &Reader,
    mounts: Vec<(VolumeId, MountRow)>,
    named: &str,
) -> Result<Option<(VolumeId, MountRow)>, Error> {
    let named_id = match VolumeId::parse(named) {
        Some(id) => Some(id),
        None => of_owner(view.rows, named)?,
    };
    let mut others = Vec::new();
    for (id, mount) in mounts {
        if named_id == Some(id) {
            return Ok(Some((id, mount)));
        }
        match view.rows.get(&VOLUMES, id)? {
            Some(row) if row.name.as_str() != named => {}
            Some(row) if row.owner == reader.user => return Ok(Some((id, mount))),
            Some(_) => others.push((id, mount)),
            None => {}
        }
    }
    if others.len() > 1 {
        let message = "two volumes of this instance have this name; give the UUID";
        return Err(FieldErrors::one("volume", message).into());
    }
    Ok(others.pop())
}

/// Starts a new generation, in which the node gets the volumes.
fn intend(mut instance: Instance) -> Changes {
    let (intent, deadline) = (instance.intent, instance.deadline);
    instance.intend(intent, deadline);
    Changes::none().put_instance(instance)
}
