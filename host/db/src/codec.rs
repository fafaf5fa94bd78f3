//! Rows as bytes: one version byte, then postcard. A changed row type gets the next version and
//! keeps a reader for the last.

use serde::{Serialize, de::DeserializeOwned};
use wharf_domain::error::Error;

const VERSION: u8 = 1;
/// Most rows are shorter.
const USUAL: usize = 512;

/// A row's bytes.
pub fn encode<T: Serialize>(row: &T) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::with_capacity(USUAL);
    bytes.push(VERSION);
    postcard::to_extend(row, bytes).map_err(internal)
}

/// A row from its bytes.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => postcard::from_bytes(rest).map_err(internal),
        Some((version, _)) => Err(Error::internal(format!("row of unknown version {version}"))),
        None => Err(Error::internal("empty row")),
    }
}

/// Wraps an error of the database, which is an internal error to users.
pub fn internal(error: impl Into<wharf_domain::error::Cause>) -> Error {
    Error::caused("database", error)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use uuid::Uuid;
    use wharf_domain::backup::{BackedUp, Backup, BackupState};
    use wharf_domain::capacity::{CpuTier, Size};
    use wharf_domain::ids::{BackupId, BucketId, InstanceId, UserId};
    use wharf_domain::name::Name;
    use wharf_domain::time::Timestamp;

    #[test]
    fn a_backup_of_an_earlier_version_was_not_planned() {
        let mut backup = Backup {
            id: BackupId(Uuid::nil()),
            owner: UserId(1),
            bucket: BucketId(Uuid::nil()),
            of: BackedUp {
                instance: InstanceId(Uuid::nil()),
                name: Name::generate(1),
                flavor: "base".to_owned(),
                cpu_tier: CpuTier::GeneralPurpose,
                size: Size {
                    n_vcpus: 1,
                    mem_gib: 1,
                    disk_size_gib: 1,
                },
                engine_kind: "docker".to_owned(),
            },
            created_at: Timestamp(1),
            state: BackupState::Failed,
            work: None,
            reason: None,
            verified_at: Some(Timestamp(2)),
            planned: None,
        };
        // The last byte says that there is no time of a plan.
        let mut row = encode(&backup).unwrap();
        assert_eq!(row.pop(), Some(0));
        assert_eq!(decode::<Backup>(&row).unwrap(), backup);
        backup.planned = Some(Timestamp(3));
        let row = encode(&backup).unwrap();
        assert_eq!(decode::<Backup>(&row).unwrap(), backup);
    }
}
