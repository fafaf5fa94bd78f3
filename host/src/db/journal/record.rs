//! What a transaction did to the tables, as bytes from which it can be done again. Every change is of
//! a whole row, so that doing it twice is the same as once.

use super::super::codec::internal;
use crate::domain::error::Error;
use serde::{Deserialize, Serialize, Serializer};

/// The changes of one transaction, in their order.
#[derive(Debug, Default)]
pub struct Record(Vec<u8>);

/// One of them.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step<'a> {
    /// The table's name.
    pub table: &'a str,
    /// Whether the row is there after it.
    pub there: bool,
    /// The row's key.
    #[serde(serialize_with = "as_bytes")]
    pub key: &'a [u8],
    /// Its value; empty if it is not there.
    #[serde(serialize_with = "as_bytes")]
    pub value: &'a [u8],
}

fn as_bytes<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

impl Record {
    /// One more.
    pub fn add(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let bytes = std::mem::take(&mut self.0);
        self.0 = postcard::to_extend(step, bytes).map_err(internal)?;
        Ok(())
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The steps of a record's bytes.
pub fn steps(mut bytes: &[u8]) -> impl Iterator<Item = Result<Step<'_>, Error>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let (step, rest) = match postcard::take_from_bytes(bytes) {
            Ok(read) => read,
            Err(error) => {
                bytes = &[];
                return Some(Err(internal(error)));
            }
        };
        bytes = rest;
        Some(Ok(step))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Record, Step, steps};

    #[test]
    fn steps_come_back_as_they_were() {
        let long = vec![7; 100_000];
        let all = [
            ("meta", true, &b"next_seq"[..], &[1, 0][..]),
            ("details", true, &[0xff; 16], &long),
            ("on_node", false, &[], &[]),
        ];
        let all = all.map(|(table, there, key, value)| Step {
            table,
            there,
            key,
            value,
        });
        let mut record = Record::default();
        for step in &all {
            record.add(step).unwrap();
        }
        let again: Result<Vec<_>, _> = steps(record.bytes()).collect();
        assert_eq!(again.unwrap(), all);
        let cut = &record.bytes()[..record.bytes().len() - 4];
        let again: Vec<_> = steps(cut).collect();
        assert!(again.len() == 3 && again[..2].iter().all(Result::is_ok) && again[2].is_err());
        assert_eq!(steps(&[]).count(), 0);
    }
}
