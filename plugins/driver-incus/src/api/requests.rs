//! The requests of `requests.toml`, by their names. The host writes them, and knows the instance of the call.

use super::model::{
    Acl, Forward, Image, Instance, Member, Network, Pool, PoolResources, Project, Resources,
    Server, Snapshot, State, Volume, VolumeState,
};
use super::{Api, Outcome, Reply};
use serde::Deserialize;
use wharf_guest::NamedRequest;
use wharf_guest::{Error, File};

/// The engine walks the machine's devices, ms.
const RESOURCES_MS: u32 = 30_000;
/// The engine unpacks an image into its pool at the first use, which takes many seconds.
const CREATE_ROUNDS: u32 = 6;
/// A move copies a disk. The host asks again.
const MOVE_ROUNDS: u32 = 2;
/// Starts and removals of many instances at once are slow.
const CHANGE_ROUNDS: u32 = 6;
/// Time for the engine to kill and clean up after the grace of a stop, ms.
const STOP_MARGIN_MS: u32 = 20_000;
/// In the list of disks, the names of snapshots follow those of their instances.
const SNAPSHOTS: &str = "/snapshots/";
/// Milliseconds of one wait.
const ROUND_MS: u32 = 5_000;
/// A change of limits of an instance, ms. The engine waits for other changes of the instance.
const CHANGE_MS: u32 = 30_000;
/// The first file of an instance mounts its disk, ms.
const FILE_MS: u32 = 30_000;
/// A network changes on all members of the cluster, ms.
const NETWORK_MS: u32 = 30_000;

/// The node.
impl Api<'_> {
    /// Reads the server's version and name.
    pub fn server(&self) -> Result<Reply<Server>, Error> {
        self.get("server")
    }

    /// Reads the member's machine.
    pub fn resources(&self) -> Result<Reply<Resources>, Error> {
        self.read(&NamedRequest::new("resources").timeout_ms(RESOURCES_MS))
    }

    /// Reads the member's state in the cluster.
    pub fn member(&self) -> Result<Reply<Member>, Error> {
        self.get("member")
    }

    /// Reads the bridge of bridge mode.
    pub fn bridge(&self) -> Result<Reply<Network>, Error> {
        self.get("bridge")
    }

    /// Reads the operator's network behind the owners' networks.
    pub fn uplink(&self) -> Result<Reply<Network>, Error> {
        self.get("uplink")
    }

    /// Reads the rules of the owners' networks.
    pub fn acl(&self) -> Result<Reply<Acl>, Error> {
        self.get("acl")
    }

    /// Reads the project.
    pub fn project(&self) -> Result<Reply<Project>, Error> {
        self.get("project")
    }

    /// Reads the pool.
    pub fn pool_details(&self) -> Result<Reply<Pool>, Error> {
        self.get("pool")
    }

    /// Reads the size of the pool on this member.
    pub fn pool_resources(&self) -> Result<Reply<PoolResources>, Error> {
        self.get("pool-resources")
    }

    /// Lists the project's images.
    pub fn images(&self) -> Result<Reply<Vec<Image>>, Error> {
        self.list(&NamedRequest::new("images"))
    }

    /// Lists the names of the instances whose disks are on this member, running or not.
    pub fn disks(&self) -> Result<Reply<Vec<String>>, Error> {
        let listed = self.list::<String>(&NamedRequest::new("disks"))?;
        let disks = |paths: Vec<String>| {
            let disks = paths.iter().filter(|path| !path.contains(SNAPSHOTS));
            disks.map(|path| name(path)).collect()
        };
        Ok(listed.map(disks))
    }

    /// Reads the metrics of all running instances of this member.
    pub fn metrics(&self) -> Result<Reply<Vec<u8>>, Error> {
        let answer = self.accepted(&NamedRequest::new("metrics"))?;
        Ok(answer.map(|answer| answer.body))
    }

    /// Reads the volume with the mark.
    pub fn marked_volume(&self) -> Result<Reply<Volume>, Error> {
        self.get("read-mark")
    }

    /// Reads the usage of that volume, which the engine looks up in the pool.
    pub fn marked_volume_usage(&self) -> Result<Reply<VolumeState>, Error> {
        self.get("use-of-mark")
    }

    /// Creates that volume.
    pub fn write_mark(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("write-mark"))
    }

    /// Reads an instance that [`Api::disks`] has listed.
    pub fn listed(&self, name: &str) -> Result<Reply<Instance>, Error> {
        self.read(&NamedRequest::new("read-listed").with("instance", name))
    }
}

/// The instance of the call.
impl Api<'_> {
    /// Creates the instance, without a start.
    pub fn create(&self, digest: &str) -> Result<Reply<Outcome>, Error> {
        self.operate(
            &NamedRequest::new("create").with("digest", digest),
            CREATE_ROUNDS,
        )
    }

    /// Reads the instance.
    pub fn details(&self) -> Result<Reply<Instance>, Error> {
        self.get("read")
    }

    /// Reads the usage of the instance.
    pub fn state(&self) -> Result<Reply<State>, Error> {
        self.get("usage")
    }

    /// Gives the instance its size, before a start if that follows.
    pub fn change(&self, before_start: bool) -> Result<Reply<()>, Error> {
        self.send(&sized(before_start).timeout_ms(CHANGE_MS))
    }

    /// The configuration and the devices of that change.
    pub fn changed(&self, before_start: bool) -> Result<Instance, Error> {
        sized(before_start).show(self.engine)?.json()
    }

    /// Lets the engine choose another range of ids, if the text differs from the present one.
    pub fn choose_ids(&self, text: &str) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("choose-ids").with("isolated", text);
        self.send(&request.timeout_ms(CHANGE_MS))
    }

    /// Notes that the instance's start has ended.
    pub fn note_start(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("note-start").timeout_ms(CHANGE_MS))
    }

    /// Brings the stopped instance from another member to this one.
    pub fn move_here(&self) -> Result<Reply<Outcome>, Error> {
        self.operate(&NamedRequest::new("move-here"), MOVE_ROUNDS)
    }

    /// Gives the moved instance its addresses, ports and GPUs on this member.
    pub fn readdress(&self, digest: &str) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("readdress").with("digest", digest);
        self.send(&request.timeout_ms(CHANGE_MS))
    }

    /// Starts the instance.
    pub fn start(&self) -> Result<Reply<Outcome>, Error> {
        self.operate(&NamedRequest::new("start"), CHANGE_ROUNDS)
    }

    /// Stops the instance within the grace.
    pub fn stop(&self, grace_ms: u32) -> Result<Reply<Outcome>, Error> {
        let request = NamedRequest::new("stop").with("grace", grace_ms.div_ceil(1_000));
        self.operate(&request, grace_ms.saturating_add(STOP_MARGIN_MS) / ROUND_MS)
    }

    /// Stops the instance without grace.
    pub fn kill(&self) -> Result<Reply<Outcome>, Error> {
        self.operate(&NamedRequest::new("kill"), CHANGE_ROUNDS)
    }

    /// Removes the instance with its disk.
    pub fn remove(&self) -> Result<Reply<Outcome>, Error> {
        self.operate(&NamedRequest::new("delete"), CHANGE_ROUNDS)
    }

    /// Makes a directory in the instance, unless it has the directory.
    pub fn make_directory(&self, directory: &str) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("make-directory").with("directory", directory);
        self.send(&request.timeout_ms(FILE_MS))
    }

    /// Writes a file of the instance.
    pub fn write(&self, file: &File) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("write-file").with("file", &file.path);
        self.send(&request.timeout_ms(FILE_MS))
    }
}

/// Volumes.
impl Api<'_> {
    /// Lists the names of the volumes on this member.
    pub fn volumes(&self) -> Result<Reply<Vec<String>>, Error> {
        let listed = self.list::<String>(&NamedRequest::new("list-volumes"))?;
        Ok(listed.map(|paths| paths.iter().map(|path| name(path)).collect()))
    }

    /// Reads the volume of the call.
    pub fn volume(&self) -> Result<Reply<Volume>, Error> {
        self.get("read-volume")
    }

    /// Reads its usage, which the engine looks up in the pool.
    pub fn volume_usage(&self) -> Result<Reply<VolumeState>, Error> {
        self.get("use-of-volume")
    }

    /// Makes it.
    pub fn make_volume(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("create-volume").timeout_ms(CHANGE_MS))
    }

    /// Notes that the volume is complete.
    pub fn complete_volume(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("complete-volume").timeout_ms(CHANGE_MS))
    }

    /// Removes it with its content.
    pub fn remove_volume(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("delete-volume").timeout_ms(CHANGE_MS))
    }

    /// The devices of the volumes that the instance of the call should have.
    pub fn attached(&self) -> Result<Instance, Error> {
        NamedRequest::new("attach").show(self.engine)?.json()
    }

    /// Gives the instance these devices.
    pub fn attach(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("attach").timeout_ms(CHANGE_MS))
    }

    /// Takes a volume from the instance.
    pub fn detach(&self, device: &str) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("detach").with("device", device);
        self.send(&request.timeout_ms(CHANGE_MS))
    }
}

/// Proofs of limits.
impl Api<'_> {
    /// The names of the instances of a proof: the one that is written, and its copy.
    pub fn probes(&self) -> Result<[String; 2], Error> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let copy = NamedRequest::new("copy-probe").show(self.engine)?;
        let probe = NamedRequest::new("create-probe").show(self.engine)?;
        Ok([probe.json::<Named>()?.name, copy.json::<Named>()?.name])
    }

    /// Makes the instance, or its copy.
    pub fn make_probe(&self, copy: bool) -> Result<Reply<Outcome>, Error> {
        let request = if copy { "copy-probe" } else { "create-probe" };
        self.operate(&NamedRequest::new(request), CHANGE_ROUNDS)
    }

    /// Writes a part on its disk. Only [`Self::probe_length`] tells how much of it.
    pub fn write_probe(&self, part: &str) -> Result<(), Error> {
        let request = NamedRequest::new("write-probe").with("part", part);
        self.send(&request.timeout_ms(FILE_MS)).map(drop)
    }

    /// Reads the length of a part, in bytes; 0 if it does not exist.
    pub fn probe_length(&self, part: &str) -> Result<u64, Error> {
        let request = NamedRequest::new("read-probe").with("part", part);
        let answer = request.timeout_ms(FILE_MS).send(self.engine)?;
        let length = answer
            .header("content-length")
            .filter(|_| answer.is_success());
        Ok(length.and_then(|length| length.parse().ok()).unwrap_or(0))
    }

    /// Removes the instance, or its copy.
    pub fn remove_probe(&self, name: &str) -> Result<Reply<Outcome>, Error> {
        self.operate(
            &NamedRequest::new("delete-probe").with("probe", name),
            CHANGE_ROUNDS,
        )
    }
}

/// Snapshots.
impl Api<'_> {
    /// Lists the snapshots on this member, by the names of their instances.
    pub fn snapshots(&self) -> Result<Reply<Vec<(String, String)>>, Error> {
        let listed = self.list::<String>(&NamedRequest::new("disks"))?;
        let names = |path: &String| {
            let (instance, snapshot) = path.split_once(SNAPSHOTS)?;
            Some((name(instance), name(snapshot)))
        };
        Ok(listed.map(|paths| paths.iter().filter_map(names).collect()))
    }

    /// Reads the snapshot of the call.
    pub fn snapshot(&self) -> Result<Reply<Snapshot>, Error> {
        self.get("read-snapshot")
    }

    /// Lists the snapshots of the instance of the call.
    pub fn own_snapshots(&self) -> Result<Reply<Vec<String>>, Error> {
        self.list(&NamedRequest::new("count-snapshots"))
    }

    /// Notes the snapshot, and the most bytes that its data can take.
    pub fn note_snapshot(&self, bytes: u64) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("note-snapshot").with("bytes", bytes);
        self.send(&request.timeout_ms(CHANGE_MS))
    }

    /// Gives the disk its size, or room beyond that.
    pub fn set_root(&self, roomy: bool) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("set-root").flag("roomy", roomy);
        self.send(&request.timeout_ms(CHANGE_MS))
    }

    /// Takes the snapshot.
    pub fn take_snapshot(&self) -> Result<Reply<Outcome>, Error> {
        self.operate(&NamedRequest::new("take-snapshot"), MOVE_ROUNDS)
    }

    /// Removes the snapshot.
    pub fn drop_snapshot(&self) -> Result<Reply<Outcome>, Error> {
        self.operate(&NamedRequest::new("drop-snapshot"), MOVE_ROUNDS)
    }

    /// Creates the instance from the snapshot.
    pub fn create_clone(&self, digest: &str, bytes: u64) -> Result<Reply<Outcome>, Error> {
        let request = NamedRequest::new("create-clone").with("digest", digest);
        self.operate(&request.with("bytes", bytes), CREATE_ROUNDS)
    }

    /// Notes that the restore has begun.
    pub fn note_restore(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("note-restore").timeout_ms(CHANGE_MS))
    }

    /// Notes the disk that an interrupted restore has left: this one, if it has begun.
    pub fn note_left_over(&self, has_begun: bool) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("note-restore").flag("not", !has_begun);
        self.send(&request.flag("left-over", true).timeout_ms(CHANGE_MS))
    }

    /// Restores the snapshot.
    pub fn restore(&self) -> Result<Reply<Outcome>, Error> {
        self.operate(&NamedRequest::new("restore"), CHANGE_ROUNDS)
    }

    /// Takes the volumes, GPUs and ports from the instance, of which there is at least one.
    pub fn mask(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("mask").timeout_ms(CHANGE_MS))
    }

    /// Gives the instance with the disk of the snapshot what is its own.
    pub fn furnish(&self, digest: &str, restored: bool) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("furnish").with("digest", digest);
        self.send(&request.flag("restored", restored).timeout_ms(CHANGE_MS))
    }
}

/// Images with content.
impl Api<'_> {
    /// Lists images, among them those of the instance of the call.
    pub fn images_of_instance(&self) -> Result<Reply<Vec<Image>>, Error> {
        self.list(&NamedRequest::new("images-of-instance"))
    }

    /// Lists images, among them those of the snapshot of the call.
    pub fn images_of_snapshot(&self) -> Result<Reply<Vec<Image>>, Error> {
        self.list(&NamedRequest::new("images-of-snapshot"))
    }

    /// Makes an image of the stopped instance.
    pub fn publish(&self) -> Result<Reply<Outcome>, Error> {
        self.operate(&NamedRequest::new("publish"), MOVE_ROUNDS)
    }

    /// Makes an image of the snapshot.
    pub fn publish_snapshot(&self) -> Result<Reply<Outcome>, Error> {
        self.operate(&NamedRequest::new("publish-snapshot"), MOVE_ROUNDS)
    }

    /// Deletes an image that has been listed.
    pub fn delete_image(&self, image: &str) -> Result<Reply<Outcome>, Error> {
        let request = NamedRequest::new("delete-image").with("image", image);
        self.operate(&request, CHANGE_ROUNDS)
    }

    /// Creates the instance from the image with its content.
    pub fn create_fetched(
        &self,
        digest: &str,
        image: &str,
        bytes: u64,
        moved: bool,
    ) -> Result<Reply<Outcome>, Error> {
        let request = NamedRequest::new("create-fetched").with("digest", digest);
        let request = request.with("image", image).with("bytes", bytes);
        self.operate(&request.flag("moved", moved), CREATE_ROUNDS)
    }
}

/// Networks of owners, and forwards of published ports.
impl Api<'_> {
    /// Reads the network of the owner.
    pub fn owner_network(&self) -> Result<Reply<Network>, Error> {
        self.get("read-network")
    }

    /// The configuration of that network.
    pub fn owner_network_to_be(&self) -> Result<Network, Error> {
        NamedRequest::new("create-network")
            .show(self.engine)?
            .json()
    }

    /// Creates that network on all members.
    pub fn create_network(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("create-network").timeout_ms(NETWORK_MS))
    }

    /// Removes an unused network with its forwards.
    pub fn remove_network(&self, name: &str) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("delete-network").with("network", name);
        self.send(&request.timeout_ms(NETWORK_MS))
    }

    /// Lists the forwards of a network.
    pub fn forwards(&self, network: &str) -> Result<Reply<Vec<Forward>>, Error> {
        self.list(&NamedRequest::new("forwards").with("network", network))
    }

    /// Creates the forward of a published port.
    pub fn create_forward(&self, node_port: u16) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("create-forward").with("port", node_port);
        self.send(&request.timeout_ms(NETWORK_MS))
    }

    /// Replaces the forward of a published port.
    pub fn replace_forward(&self, node_port: u16) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("replace-forward").with("port", node_port);
        self.send(&request.timeout_ms(NETWORK_MS))
    }

    /// Removes a forward that [`Api::forwards`] has listed.
    pub fn remove_forward(&self, network: &str, address: &str) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("delete-forward").with("network", network);
        self.send(&request.with("address", address).timeout_ms(NETWORK_MS))
    }
}

fn sized(before_start: bool) -> NamedRequest {
    NamedRequest::new("change").flag("before-start", before_start)
}

/// The last part of `/1.0/storage-pools/POOL/volumes/container/NAME?project=P&target=M`.
fn name(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}
