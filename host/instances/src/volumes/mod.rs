//! The use cases of volumes, one file each.

mod attach;
mod copy;
mod create;
mod delete;
mod find;
mod mounts;
mod read;
mod rename;
mod shares;

pub use copy::refuse_writers;
pub use create::CreateVolume;
pub use mounts::{MOUNTED, MOUNTS, MountProgress, MountRow, MountedVolume, has_mounts};
pub use read::{Attachment, VolumeCondition, VolumeView};
pub use shares::VolumeShare;

pub use find::Reader;
pub(crate) use mounts::{
    NewMounts, Usable, attached, claim, driver_mounts, has_changes, mounted, name_volumes,
    new_mounts, rows_of, usable,
};

pub use mounts::TABLES as MOUNT_TABLES;
pub use shares::TABLES as SHARE_TABLES;
