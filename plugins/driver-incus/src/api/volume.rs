//! Requests to the member's storage pool.

use super::model::{Pool, PoolResources, Volume, VolumeState};
use super::{Api, Reply};
use serde::Serialize;
use wharf_guest::{Call, Error, Path};

impl Api<'_> {
    fn pool(&self) -> Path {
        Path::new("/1.0/storage-pools").segment(&self.pool)
    }

    fn volumes(&self, kind: &str) -> Path {
        self.pool().segment("volumes").segment(kind)
    }

    /// Lists the names of the instances whose disks are on this member, running or not.
    pub fn disks(&self) -> Result<Reply<Vec<String>>, Error> {
        let path = self.at_member(self.in_project(self.volumes("container")));
        let listed = self.get::<Option<Vec<String>>>(&path)?;
        Ok(listed.map(|paths| paths.iter().flatten().map(|path| name(path)).collect()))
    }

    /// Reads the pool.
    pub fn pool_details(&self) -> Result<Reply<Pool>, Error> {
        self.get(&self.pool())
    }

    /// Reads the size of the pool on this member.
    pub fn pool_resources(&self) -> Result<Reply<PoolResources>, Error> {
        self.get(&self.at_member(self.pool().segment("resources")))
    }

    /// Reads a volume of this member that no instance has made.
    pub fn volume(&self, name: &str) -> Result<Reply<Volume>, Error> {
        let path = self.volumes("custom").segment(name);
        self.get(&self.at_member(self.in_project(path)))
    }

    /// Reads the usage of such a volume, which the engine looks up in the pool.
    pub fn volume_usage(&self, name: &str) -> Result<Reply<VolumeState>, Error> {
        let path = self.volumes("custom").segment(name).segment("state");
        self.get(&self.at_member(self.in_project(path)))
    }

    /// Creates such a volume.
    pub fn create_volume<T: Serialize>(&self, body: &T) -> Result<Reply<()>, Error> {
        let path = self.at_member(self.in_project(self.volumes("custom")));
        self.send(&Call::post(&path).json(body)?)
    }
}

/// The last part of `/1.0/storage-pools/POOL/volumes/container/NAME?project=P&target=M`.
fn name(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}
