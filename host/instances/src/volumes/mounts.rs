//! The volumes of an instance. A row is the instance's right to a volume: it comes with the write that creates
//! the instance or attaches the volume, and goes once the node was seen without the instance or the volume.

use super::find::{Reader, readable, unknown};
use crate::suspension;
use serde::{Deserialize, Serialize};
use std::path::Path;
use wharf_db::{Changes, Findings, INSTANCES, Read, ReadRows, Rows, Table, VOLUMES, tables};
use wharf_domain::blueprint::{Blueprint, BlueprintFile};
use wharf_domain::capacity::Size;
use wharf_domain::driver::Mount;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::EventKind;
use wharf_domain::ids::{InstanceId, NodeId, VolumeId};
use wharf_domain::kept::KeptStatus;
use wharf_domain::name::Name;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::{MAX_MOUNTS, MountPath, MountRequest, Volume};

tables! {
    /// The volumes of instances.
    pub const MOUNTS: Table<InstanceId, VolumeId, MountRow> =
        Table::bounded(b'i', 8, "8 of an instance",
            "Until the node was seen without the instance or the volume in it")
            .removed_with(&INSTANCES)
            .indexed(|id, volume, _, entries| entries.put(&MOUNTED, (*volume, *id), &()))
            .checked(check);
    /// The instances with a volume.
    pub const MOUNTED: Table<VolumeId, InstanceId, ()> = Table::index_of(&MOUNTS, b'v', 2);
}

/// A volume of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRow {
    pub path: MountPath,
    pub read_only: bool,
    pub progress: MountProgress,
}

/// The progress of a volume in an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MountProgress {
    /// The instance has it, or will have it once it is made.
    Attached,
    /// The existing instance has not been seen to have it.
    Attaching,
    /// The existing instance has not been seen without it.
    Detaching,
}

/// A volume of an instance as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedVolume {
    pub volume: VolumeId,
    /// Name of the volume.
    pub name: String,
    pub path: String,
    pub read_only: bool,
}

/// The rows of an instance with their volumes.
pub(crate) fn rows_of(
    rows: &impl Rows,
    id: InstanceId,
) -> Result<Vec<(VolumeId, MountRow)>, Error> {
    rows.under(&MOUNTS, &id)?.collect()
}

/// The instances that have a volume, those that are being deleted included.
pub(super) fn instances_with(
    rows: &impl Rows,
    volume: VolumeId,
) -> Result<Vec<(InstanceId, MountRow)>, Error> {
    let mut found = Vec::new();
    for id in rows.keys_under(&MOUNTED, &volume)? {
        let id = id?;
        found.extend(rows.get(&MOUNTS, (id, volume))?.map(|mount| (id, mount)));
    }
    Ok(found)
}

/// Whether an instance has volumes.
pub fn has_mounts(rows: &impl Rows, id: InstanceId) -> Result<bool, Error> {
    Ok(rows.keys_under(&MOUNTS, &id)?.next().transpose()?.is_some())
}

/// Whether the node has not been seen to follow a change of an instance's volumes.
pub(crate) fn has_changes(rows: &impl Rows, id: InstanceId) -> Result<bool, Error> {
    let mounts = rows_of(rows, id)?;
    Ok(mounts
        .iter()
        .any(|(_, mount)| mount.progress != MountProgress::Attached))
}

/// The volumes of an instance by path, as its owner sees them.
pub(crate) fn mounted(rows: &impl Rows, id: InstanceId) -> Result<Vec<MountedVolume>, Error> {
    let mut found = Vec::new();
    for (volume, mount) in rows_of(rows, id)? {
        if mount.progress == MountProgress::Detaching {
            continue;
        }
        let row = rows.get(&VOLUMES, volume)?;
        found.push(MountedVolume {
            volume,
            name: row.map_or_else(String::new, |row| row.name.to_string()),
            path: mount.path.as_str().to_owned(),
            read_only: mount.read_only,
        });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The volumes that a driver gives an instance.
pub(crate) fn driver_mounts(rows: &impl Rows, id: InstanceId) -> Result<Vec<Mount>, Error> {
    let wanted = rows_of(rows, id)?.into_iter();
    let wanted = wanted.filter(|(_, mount)| mount.progress != MountProgress::Detaching);
    let mut mounts: Vec<Mount> = wanted
        .map(|(volume, mount)| Mount {
            volume,
            path: mount.path.as_str().to_owned(),
            read_only: mount.read_only,
        })
        .collect();
    mounts.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(mounts)
}

/// Whether an instance can start with its volumes.
pub(crate) enum Usable {
    Yes,
    /// A volume is being made.
    Soon,
    /// A backup copies the volume with this name, which the instance would write.
    Copied(String),
    /// The volume with this name is of no use any more.
    No(String),
}

/// Whether an instance can start with its volumes.
pub(crate) fn usable(rows: &impl Rows, id: InstanceId) -> Result<Usable, Error> {
    let mut usable = Usable::Yes;
    for (volume, mount) in rows_of(rows, id)? {
        if mount.progress == MountProgress::Detaching {
            continue;
        }
        let row = rows.get(&VOLUMES, volume)?;
        match row.as_ref().map(Volume::status) {
            Some(KeptStatus::Ready) => {
                let copied = row.filter(|row| !mount.read_only && is_at_rest(row));
                if let Some(row) = copied {
                    usable = Usable::Copied(row.name.to_string());
                }
            }
            Some(KeptStatus::Creating) => usable = Usable::Soon,
            _ => {
                let name = row.map_or_else(|| volume.to_string(), |row| row.name.to_string());
                return Ok(Usable::No(name));
            }
        }
    }
    Ok(usable)
}

/// Whether a backup copies a volume that nothing may write meanwhile.
fn is_at_rest(volume: &Volume) -> bool {
    volume.of.copy.is_some_and(|copy| copy.at_rest)
}

/// The volumes of a new instance, with its rights to them.
#[derive(Default)]
pub(crate) struct NewMounts(Vec<(Volume, MountRow)>);

impl NewMounts {
    /// Adds a volume of an instance that is created again.
    pub(crate) fn add(&mut self, volume: Volume, path: MountPath, read_only: bool) {
        let mount = MountRow {
            path,
            read_only,
            progress: MountProgress::Attached,
        };
        self.0.push((volume, mount));
    }

    /// The names of the volumes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().map(|(volume, _)| &volume.name)
    }

    /// The node that has the volumes.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.0.first().map(|(volume, _)| volume.node.clone())
    }

    /// The rows, and an event for each. The row of the instance is among the changes.
    pub(crate) fn record(self, mut changes: Changes, now: Timestamp) -> Result<Changes, Error> {
        for (volume, mount) in self.0 {
            let instance = changes.instance()?;
            let (id, what) = (instance.id, attached(&volume, &mount));
            changes = changes
                .put(&MOUNTS, (id, volume.id), mount)
                .record(instance, now, what);
        }
        Ok(changes)
    }
}

/// Adds the volumes that bind an instance of a size to its node to the shortfall of that node. Without volumes
/// and fields, the shortfall is the vCPUs and the RAM of the instance.
pub(crate) fn name_volumes<'a>(
    error: Error,
    size: Size,
    names: impl Iterator<Item = &'a Name>,
) -> Error {
    let mut error = error;
    if let Error::Insufficient(short) = &mut error {
        short.volumes = names.map(Name::to_string).collect();
        let bound = short.volumes.len() as u64;
        if bound > 0 {
            short.fields.push(("volumes", bound, 0));
        } else if short.fields.is_empty() {
            // A snapshot or content binds it to nodes that take nothing now.
            let compute = [("n_vcpus", size.n_vcpus), ("mem_gib", size.mem_gib)];
            let none = compute.map(|(field, wanted)| (field, u64::from(wanted), 0_u64));
            short.fields.extend(none);
        }
    }
    error
}

/// The event of a volume that an instance has now.
pub(crate) fn attached(volume: &Volume, mount: &MountRow) -> EventKind {
    EventKind::VolumeAttached {
        volume: volume.id,
        name: volume.name.to_string(),
        path: mount.path.as_str().to_owned(),
        read_only: mount.read_only,
    }
}

/// Resolves the volumes of a request and decides the reader's right to each: all of them are usable, on one
/// node, and have no other writer, or no other reader beside a writer.
pub(crate) fn new_mounts(
    rows: &impl Rows,
    reader: &Reader,
    requests: &[MountRequest],
    blueprint: &Blueprint,
) -> Result<NewMounts, Error> {
    let mut found: Vec<(Volume, MountRow)> = Vec::new();
    let mut errors = FieldErrors::default();
    if requests.len() > MAX_MOUNTS {
        errors.add("volumes", format!("at most {MAX_MOUNTS} volumes"));
    }
    for request in requests {
        if let Err(message) = check_files(blueprint, &request.path) {
            errors.add("volumes", message);
        }
        match claim(rows, reader, request)? {
            Ok((volume, _)) if found.iter().any(|(other, _)| other.id == volume.id) => {
                errors.add("volumes", format!("{} is named twice", volume.name));
            }
            Ok((volume, _)) if found.iter().any(|(other, _)| other.node != volume.node) => {
                let first = found.first().map_or("", |(other, _)| other.name.as_str());
                errors.add(
                    "volumes",
                    format!("{} and {first} are on two hosts", volume.name),
                );
            }
            Ok(claimed) => found.push(claimed),
            Err(message) => errors.add("volumes", message),
        }
    }
    errors.into_result()?;
    Ok(NewMounts(found))
}

/// Checks that no file of an instance's first start is in a directory, or around it. The file would go into the
/// volume, whose later readers would see its secrets, and into a volume that is only read it cannot go.
pub(super) fn check_files(blueprint: &Blueprint, path: &MountPath) -> Result<(), String> {
    let directory = Path::new(path.as_str());
    let overlaps = |file: &&BlueprintFile| {
        let file = Path::new(&file.path);
        file.starts_with(directory) || directory.starts_with(file)
    };
    match blueprint.files.iter().find(overlaps) {
        Some(file) => Err(format!(
            "{} cannot be in a volume, because the flavor has the file {}",
            path.as_str(),
            file.path
        )),
        None => Ok(()),
    }
}

/// Decides the right to one volume. The inner error is a message for the user.
pub(crate) fn claim(
    rows: &impl Rows,
    reader: &Reader,
    request: &MountRequest,
) -> Result<Result<(Volume, MountRow), String>, Error> {
    let named = &request.volume;
    let Some(volume) = readable(rows, reader, named)? else {
        return Ok(Err(unknown(rows, reader, named)?));
    };
    let is_own = volume.owner == reader.user;
    let mount = MountRow {
        path: request.path.clone(),
        // Another user's volume can only be read.
        read_only: request.read_only.unwrap_or(!is_own),
        progress: MountProgress::Attached,
    };
    let name = &volume.name;
    if !is_own && !mount.read_only {
        let message = format!("{name} is another user's: set `read_only` to true");
        return Ok(Err(message));
    }
    if !is_own && suspension::check_user(rows, volume.owner).is_err() {
        return Ok(Err(format!("the owner of {name} is suspended")));
    }
    if let Some(reason) = volume.reason() {
        return Ok(Err(format!("{name} cannot be used. {reason}")));
    }
    if !mount.read_only && is_at_rest(&volume) {
        return Ok(Err(format!("{name} is read-only until its backup is done")));
    }
    for (id, other) in instances_with(rows, volume.id)? {
        if other.read_only && mount.read_only {
            continue;
        }
        let instance = rows.get(&INSTANCES, id)?;
        let instance = instance.filter(|instance| instance.owner == reader.user);
        let whose = instance.map_or_else(
            || "an instance of another user".to_owned(),
            |instance| format!("instance {}", instance.name),
        );
        let verb = if other.read_only { "reads" } else { "writes" };
        return Ok(Err(format!(
            "{whose} {verb} {name}: a volume has one instance that writes it, or any number that read it"
        )));
    }
    Ok(Ok((volume, mount)))
}

/// Each mounted volume exists, is on the node of the instance, and has one writer or only readers.
fn check(rows: &ReadRows, findings: &mut Findings) -> Result<(), Error> {
    let mut rights: std::collections::BTreeMap<VolumeId, (usize, usize)> = Default::default();
    for row in rows.all(&MOUNTS)? {
        let Ok((id, volume, mount)) = row else {
            continue;
        };
        let (readers, writers) = rights.entry(volume).or_default();
        *(if mount.read_only { readers } else { writers }) += 1;
        let (Ok(Some(instance)), Ok(found)) = (rows.instance(id), rows.get(&VOLUMES, volume))
        else {
            continue;
        };
        match found {
            None => findings.push(format!("{id}: its volume {volume} does not exist")),
            Some(row) if row.deleted => {
                findings.push(format!("{id}: its volume {volume} was deleted"));
            }
            Some(row) if row.node != instance.node => {
                findings.push(format!("{id}: its volume {volume} is on another node"));
            }
            Some(_) => {}
        }
    }
    for (volume, (readers, writers)) in rights {
        if writers > 1 || (writers == 1 && readers > 0) {
            findings.push(format!(
                "volume {volume} has {writers} writers and {readers} readers"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_files;
    use wharf_domain::blueprint::{Blueprint, BlueprintFile, FileContent, Health};
    use wharf_domain::volume::MountPath;

    #[test]
    fn no_file_of_the_first_start_goes_into_a_volume() {
        let file = |path: &str| BlueprintFile {
            path: path.to_owned(),
            mode: 0o600,
            uid: 0,
            gid: 0,
            content: FileContent::Bytes(Vec::new()),
        };
        let blueprint = Blueprint {
            images: Vec::new(),
            files: vec![file("/opt/tool/secrets/key"), file("/srv/start")],
            environment: Vec::new(),
            command: Vec::new(),
            health: Health::Ssh,
            ssh: true,
            web_port: None,
        };
        for (path, is_free) in [
            ("/opt/tool", false),
            ("/opt/tool/secrets", false),
            ("/opt/tool/secrets/key", false),
            ("/srv", false),
            ("/srv/start/data", false),
            ("/opt/tool/secret", true),
            ("/opt/tool/secrets/other", true),
            ("/srv/started", true),
            ("/data", true),
        ] {
            let path = MountPath::parse(path).unwrap();
            let checked = check_files(&blueprint, &path);
            assert_eq!(checked.is_ok(), is_free, "{path:?}: {checked:?}");
        }
    }
}
