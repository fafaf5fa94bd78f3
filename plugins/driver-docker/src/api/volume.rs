//! Requests about volumes: those of instances, and the one that marks the engine's store.

use super::model::{Details, Labels, Summary};
use super::{Api, Reply, accepted};
use serde::Deserialize;
use std::collections::BTreeMap;
use wharf_guest::{Error, NamedRequest};

/// Making and removing a container's disk is slow on a busy engine, ms.
const DISK_WORK_MS: u32 = 60_000;

/// A volume.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Volume {
    /// Its labels; null if it has none.
    pub labels: Labels,
    /// Where its content is; null if the engine keeps it.
    pub options: Option<BTreeMap<String, String>>,
}

/// A list of volumes.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Volumes {
    /// Null if there are none.
    pub volumes: Option<Vec<Volume>>,
}

/// The part of [`Api::make_volume`]'s body that a volume keeps.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VolumeCreation {
    /// Where its content is.
    pub driver_opts: BTreeMap<String, String>,
}

/// The purpose of a container with a limited disk.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    Volume,
    /// A volume whose content comes from a backup.
    Fetched,
    Proof,
}

impl Api<'_> {
    /// Creates the volume with the mark of the call. Success if it exists already.
    pub fn mark_store(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("mark-store"))
    }

    /// Reads the volume with the mark.
    pub fn store(&self) -> Result<Reply<Volume>, Error> {
        self.read(&NamedRequest::new("read-store"))
    }

    /// Reads the volume of the call.
    pub fn volume(&self) -> Result<Reply<Volume>, Error> {
        self.read(&NamedRequest::new("read-volume"))
    }

    /// Reads a volume of the call's instance.
    pub fn mounted(&self, volume: &str) -> Result<Reply<Volume>, Error> {
        self.read(&NamedRequest::new("read-mount").with("mount", volume))
    }

    /// Lists this installation's volumes.
    pub fn volumes(&self) -> Result<Reply<Volumes>, Error> {
        self.read(&NamedRequest::new("list-volumes"))
    }

    /// Lists the containers that hold this installation's volumes.
    pub fn holders(&self) -> Result<Reply<Vec<Summary>>, Error> {
        self.read(&NamedRequest::new("list-holders"))
    }

    /// Reads the container that holds the volume of the call.
    pub fn holder(&self) -> Result<Reply<Details>, Error> {
        self.read(&NamedRequest::new("read-holder"))
    }

    /// Tells the host the size of an image's layers, for the limit of the holder's disk.
    pub fn measure_layers(&self, image: &str) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("read-layers").with("image", image);
        self.send(&request.timeout_ms(DISK_WORK_MS))
    }

    /// Creates the holder, or a container that makes a proof.
    pub fn make_holder(&self, image: &str, purpose: Purpose) -> Result<Reply<()>, Error> {
        let request = NamedRequest::new("create-holder").with("image", image);
        let request = match purpose {
            Purpose::Proof => request.with("proof", true),
            Purpose::Fetched => request.with("fetched", true),
            Purpose::Volume => request,
        };
        self.send(&request.timeout_ms(DISK_WORK_MS))
    }

    /// Runs the holder's command, and tells the host the place of its disk. Returns what the command has printed.
    pub fn run_holder(&self) -> Result<Reply<String>, Error> {
        let ran = self.each(&["start-holder", "wait-for-holder"])?;
        ran.map_or_else(|refusal| Ok(Err(refusal)), |_| self.find_place())
    }

    /// Tells the host the place of the holder's disk. Returns what its command has printed.
    pub fn find_place(&self) -> Result<Reply<String>, Error> {
        self.each(&["read-root", "read-place"])
    }

    /// Sends requests until one is refused. Returns the last answer.
    fn each(&self, requests: &[&str]) -> Result<Reply<String>, Error> {
        let mut printed = String::new();
        for request in requests {
            let answer = NamedRequest::new(request).timeout_ms(DISK_WORK_MS);
            match accepted(answer.send(self.engine)?) {
                Ok(answer) => printed = String::from_utf8_lossy(&answer.body).into_owned(),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        Ok(Ok(printed))
    }

    /// The volume that [`Self::make_volume`] would make; none if its holder has not told a place.
    pub fn planned_volume(&self) -> Result<Option<VolumeCreation>, Error> {
        match NamedRequest::new("create-volume").show(self.engine) {
            Ok(written) => written.json().map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Makes the volume. Success if one of this name exists already, also with other options.
    pub fn make_volume(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("create-volume"))
    }

    /// Removes the volume. Its content stays with its holder.
    pub fn remove_volume(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("delete-volume"))
    }

    /// Removes the holder with the content of the volume.
    pub fn remove_holder(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("delete-holder").timeout_ms(DISK_WORK_MS))
    }
}
