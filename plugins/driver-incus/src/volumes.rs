//! Volumes: custom volumes of the pool, on the node's member. The engine holds their sizes, attaches and
//! detaches them while an instance runs, and translates the ids of each instance.

use crate::api::Reply;
use crate::api::model::{Instance, Pool, Server};
use crate::context::Context;
use crate::found;
use crate::names;
use std::collections::BTreeMap;
use wharf_guest::{During, Error, ObservedVolume, Target, Volume, VolumeReport, VolumeState, log};

/// The extension of the interface by which a new volume belongs to the login user.
const EXTENSION: &str = "storage_initial_owner";
/// The names of the devices of volumes begin with it.
const DEVICE: &str = "vol-";
/// The key of a volume's configuration until the engine has made all of it.
const INCOMPLETE: &str = "user.wharf.incomplete";
/// The type of a device that takes the place of another one.
const EMPTY: &str = "none";
/// Delay while the engine is at work on the instance, ms.
const BUSY_AGAIN_MS: u32 = 500;

/// The pools that limit the size of a disk or a volume in use.
pub const LIMITING: [&str; 2] = ["btrfs", "zfs"];

/// Whether the node makes volumes.
pub fn are_made(server: &Server, pool: &Pool) -> bool {
    let mut extensions = server.api_extensions.iter();
    LIMITING.contains(&pool.driver.as_str()) && extensions.any(|extension| extension == EXTENSION)
}

/// Reads the pool of the node.
pub fn pool(ctx: &Context) -> Result<Pool, Error> {
    ctx.api.pool_details()?.during("reading settings.pool")
}

/// See the `volumes` interface.
pub fn make(ctx: &Context, volume: &Volume) -> Result<VolumeReport, Error> {
    let wanted = format!("{}GiB", volume.size_gib);
    match ctx.api.volume()? {
        Ok(found) if found.config.get("size") != Some(&wanted) => {
            let why = format!("volume {} exists with another size", volume.id);
            return Err(Error::Conflict(why));
        }
        // No instance has had it.
        Ok(found)
            if found
                .config
                .get(INCOMPLETE)
                .is_some_and(|set| !set.is_empty()) =>
        {
            log!(Warn, "volume {} is incomplete, and made again", volume.id);
            removed(ctx.api.remove_volume()?)?;
            return Err(Error::RetryLater(BUSY_AGAIN_MS));
        }
        Ok(_) => {
            let state = ctx
                .api
                .volume_usage()?
                .during("reading the volume's usage")?;
            if state.usage.is_some() {
                return Ok(settled(VolumeState::Ready));
            }
            // A pool that lacks quotas or its disks for a while leaves this, so that the volume may have content.
            let why = "the engine has the volume, and the pool shows no content of it".to_owned();
            log!(
                Warn,
                "volume {}: {why}; it is left alone until its owner deletes it",
                volume.id
            );
            return Ok(settled(VolumeState::Failed(why)));
        }
        Err(refusal) if refusal.is_not_found() => {}
        Err(refusal) => return Err(refusal.during("reading the volume")),
    }
    let server = ctx.api.server()?.during("reading the version")?;
    if !are_made(&server, &pool(ctx)?) {
        return Err(Error::Unsupported(
            "volumes: they need a pool of btrfs or zfs, and an Incus that gives a volume its owner"
                .to_owned(),
        ));
    }
    match ctx.api.make_volume()? {
        // Only a usage tells that the pool has the volume and counts what is in it. Without quotas it has none, and
        // no size.
        Ok(()) => {
            let state = ctx.api.volume_usage()?;
            let state = state.during("reading the new volume's usage")?;
            if state.usage.is_none() {
                let why = "the pool counts no content of the new volume".to_owned();
                log!(Warn, "volume {}: {why}", volume.id);
                return Ok(settled(VolumeState::Failed(why)));
            }
            let completed = ctx.api.complete_volume()?;
            completed.during("noting that the volume is complete")?;
            Ok(settled(VolumeState::Ready))
        }
        // Another call made it meanwhile.
        Err(refusal) if refusal.is_name_taken() => Err(Error::RetryLater(BUSY_AGAIN_MS)),
        Err(refusal) if refusal.is_over_project() || refusal.is_final() => {
            let why = format!("the engine refuses to make it: {}", refusal.message);
            log!(Warn, "volume {}: {why}", volume.id);
            Ok(settled(VolumeState::Failed(why)))
        }
        Err(refusal) => Err(refusal.during("making the volume")),
    }
}

/// See the `volumes` interface.
pub fn unmake(ctx: &Context) -> Result<VolumeReport, Error> {
    match ctx.api.remove_volume()? {
        Err(refusal) if refusal.is_in_use() => Ok(settled(VolumeState::InUse)),
        reply => removed(reply).map(|()| settled(VolumeState::Absent)),
    }
}

fn removed(reply: Reply<()>) -> Result<(), Error> {
    match reply {
        Ok(()) => Ok(()),
        Err(refusal) if refusal.is_not_found() => Ok(()),
        // The removal of an interrupted call goes on.
        Err(refusal) if refusal.is_being_removed() => Err(Error::RetryLater(BUSY_AGAIN_MS)),
        Err(refusal) => Err(refusal.during("removing the volume")),
    }
}

/// See the `volumes` interface. Names are enough: the mark of the store tells of a pool without its content.
pub fn list(ctx: &Context) -> Result<Vec<ObservedVolume>, Error> {
    let listed = ctx.api.volumes()?.during("listing the volumes")?;
    let ids = listed
        .iter()
        .filter_map(|name| names::volume(ctx.installation, name));
    let observed = |id: &str| ObservedVolume {
        id: id.to_owned(),
        state: VolumeState::Ready,
    };
    Ok(ids.map(observed).collect())
}

/// See the `volumes` interface.
pub fn set(ctx: &Context, target: &Target) -> Result<(), Error> {
    let found = found::find(ctx, &target.tag)?.ok_or(Error::NotFound)?;
    let wanted = ctx.api.attached()?;
    for device in surplus(&found.details, &wanted) {
        changed(ctx.api.detach(device)?, "detaching a volume")?;
    }
    let has = |device: (&String, &BTreeMap<String, String>)| {
        found.details.devices.get(device.0) == Some(device.1)
    };
    if !wanted.devices.iter().all(has) {
        changed(ctx.api.attach()?, "attaching the volumes")?;
    }
    Ok(())
}

/// The devices of volumes that an instance has and should not have.
fn surplus<'a>(instance: &'a Instance, wanted: &Instance) -> Vec<&'a str> {
    let devices = instance.devices.iter();
    let is_attached =
        |device: &BTreeMap<String, String>| device.get("type").is_some_and(|kind| kind != EMPTY);
    devices
        .filter(|(name, device)| name.starts_with(DEVICE) && is_attached(device))
        .filter(|(name, _)| !wanted.devices.contains_key(*name))
        .map(|(name, _)| name.as_str())
        .collect()
}

fn changed(reply: Reply<()>, doing: &str) -> Result<(), Error> {
    match reply {
        Ok(()) => Ok(()),
        Err(refusal) if refusal.is_not_found() => Err(Error::NotFound),
        Err(refusal) if refusal.is_busy() => Err(Error::RetryLater(BUSY_AGAIN_MS)),
        Err(refusal) => Err(refusal.during(doing)),
    }
}

fn settled(state: VolumeState) -> VolumeReport {
    VolumeReport {
        state,
        again_ms: None,
    }
}

#[cfg(test)]
mod tests {
    use super::surplus;
    use crate::api::model::Instance;
    use serde_json::json;

    #[test]
    fn only_attached_volumes_that_are_not_wanted_are_surplus() {
        let of =
            |devices| serde_json::from_value::<Instance>(json!({ "devices": devices })).unwrap();
        let has = of(json!({
            "root": { "type": "disk" },
            "vol-a": { "type": "disk", "path": "/a" },
            "vol-b": { "type": "disk", "path": "/b" },
            "vol-c": { "type": "none" },
        }));
        let wanted = of(json!({ "vol-b": { "type": "disk", "path": "/other" } }));
        assert_eq!(surplus(&has, &wanted), ["vol-a"]);
    }
}
