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
    use wharf_domain::volume::OfVolume;

    #[test]
    fn a_volume_of_an_earlier_version_has_no_backup() {
        let row = (7_u8, OfVolume::default());
        let now = encode(&row).unwrap();
        for missing in 0..=2 {
            let earlier = &now[..now.len() - missing];
            assert_eq!(decode::<(u8, OfVolume)>(earlier).unwrap(), row);
        }
    }
}
