//! The audit log: append-only, in the order of the writes. Each record has the SHA-256 of its own bytes
//! and of the record before, so that a changed or removed record breaks the chain.

use super::codec::encode;
use super::draft::Draft;
use super::findings::Findings;
use super::read::Read;
use super::rows::{AuditHead, AuditRow};
use super::tables as t;
use super::tree::{ReadRows, Rows};
use super::wakes::AUDIT;
use sha2::{Digest, Sha256};
use wharf_domain::audit::AuditRecord;
use wharf_domain::error::Error;

impl Draft<'_> {
    /// Appends a record.
    pub fn append_audit(&mut self, record: &AuditRecord) -> Result<(), Error> {
        let last = self.last_under(&t::AUDIT, &())?;
        let head = last.map_or_else(AuditHead::default, |(number, row)| AuditHead {
            number,
            hash: row.hash,
        });
        let number = head.number + 1;
        let bytes = encode(record)?;
        let hash = link(&head.hash, number, &bytes);
        let row = AuditRow {
            record: bytes,
            hash,
        };
        self.put(&t::AUDIT, number, &row)?;
        let owner = record.owner.map(|owner| (owner, AUDIT));
        self.woken.topics.extend(owner);
        Ok(())
    }
}

impl Draft<'_> {
    /// Removes the records up to a number, except for the last record. The chain goes on from the hash
    /// of the last one removed.
    pub(super) fn drop_audit(&mut self, to: u64) -> Result<(), Error> {
        let last = self.last_under(&t::AUDIT, &())?;
        let to = to.min(last.map_or(0, |(number, _)| number).saturating_sub(1));
        let rows = self.under(&t::AUDIT, &())?;
        let old = rows.take_while(|row| row.as_ref().map_or(true, |(number, _)| *number <= to));
        let mut anchor = None;
        for (number, row) in old.collect::<Result<Vec<(u64, AuditRow)>, _>>()? {
            self.remove(&t::AUDIT, number)?;
            let hash = row.hash;
            anchor = Some(AuditHead { number, hash });
        }
        if let Some(anchor) = anchor {
            self.put(&t::AUDIT_ANCHOR, (), &anchor)?;
        }
        Ok(())
    }
}

fn link(before: &[u8; 32], number: u64, record: &[u8]) -> [u8; 32] {
    let digest = Sha256::new()
        .chain_update(before)
        .chain_update(number.to_be_bytes())
        .chain_update(record);
    digest.finalize().into()
}

/// Follows the chain, for `wharf fsck`.
pub(super) fn check(rows: &ReadRows, wrong: &mut Findings) -> Result<(), Error> {
    let (_, lines) = verify(rows, None)?;
    lines.into_iter().for_each(|line| wrong.push(line));
    Ok(())
}

/// Follows the chain. Returns its end, and a line for each contradiction. `known` is an end that was
/// seen earlier.
pub(super) fn verify(
    rows: &impl Read,
    known: Option<AuditHead>,
) -> Result<(AuditHead, Vec<String>), Error> {
    let anchor = rows.audit_anchor()?;
    let (mut head, mut wrong) = (anchor, Vec::new());
    let mut known_is_there = known.is_none_or(|k| k.number == 0);
    known_is_there |= known == Some(anchor);
    for row in rows.under(&t::AUDIT, &())? {
        let (number, row) = row?;
        if number != head.number + 1 {
            let (from, to) = (head.number + 1, number - 1);
            wrong.push(format!("audit: records {from} to {to} are missing"));
        }
        if row.hash != link(&head.hash, number, &row.record) {
            wrong.push(format!(
                "audit: record {number} or the one before it was changed"
            ));
        }
        head = AuditHead {
            number,
            hash: row.hash,
        };
        known_is_there |= known == Some(head);
        if row.read().is_err() {
            wrong.push(format!("audit: record {number} cannot be read"));
        }
    }
    if !known_is_there && let Some(known) = known {
        let number = known.number;
        wrong.push(if number < anchor.number {
            format!(
                "audit: record {number} was removed by retention, as all records up to {} were",
                anchor.number
            )
        } else {
            format!("audit: record {number} is missing or has another hash")
        });
    }
    Ok((head, wrong))
}
