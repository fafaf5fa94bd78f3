//! A disk that changes a bit of a file at rest. What the database then serves is true, or an error.

use super::{Model, Wrong, check};
use crate::dice::Dice;
use crate::disk::SimDisk;
use anyhow::Result;
use std::panic::{AssertUnwindSafe, catch_unwind};
use wharf_db::{Db, Read as _};

impl Model {
    /// Flips a bit of a copy of a disk that no process uses, and compares what the database serves. `open` opens the
    /// database, or fails because the file is damaged.
    pub fn survives_a_flip(
        &self,
        disk: &SimDisk,
        dice: &mut Dice,
        open: impl FnOnce(SimDisk) -> Result<Db>,
    ) -> Result<(), Wrong> {
        let damaged = disk.after_kill();
        let byte = damaged.flip_a_bit(dice);
        let Ok(db) = open(damaged) else {
            return Ok(());
        };
        let same = self.serves_truth(&db, byte);
        // A damaged file may make redb panic when it is closed.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(db)));
        same
    }

    fn serves_truth(&self, db: &Db, byte: usize) -> Result<(), Wrong> {
        for (id, known) in &self.instances {
            // An error is right, and so is the row.
            if let Ok(found) = db.read(|rows| rows.instance(*id)) {
                let same = found.as_ref() == Some(&known.row);
                check(same, || {
                    format!("a flipped bit of byte {byte} changes {id}: {found:?}")
                })?;
            }
            if let Ok(found) = db.read(|rows| rows.claim(*id)) {
                let same = found == known.claim;
                check(same, || {
                    format!("a flipped bit of byte {byte} changes the claim of {id}: {found:?}")
                })?;
            }
        }
        Ok(())
    }
}
