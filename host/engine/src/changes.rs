//! The list of a container's changes to its image, read in pieces. A tenant decides its length, so only
//! the deletions at the top are kept.

use super::outgoing::ProgressSink;
use super::tar_stream::{MAX_AT_TOP, MAX_NAME, Malformed};
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use std::borrow::Cow;
use tracing::warn;

/// Longest entry of the list, bytes. The longest path has 4096, each written as `\u00xx`.
const MAX_ENTRY: usize = 64 << 10;
/// The kept beginning of an answer, bytes. An engine's error fits.
const MAX_KEPT: usize = 64 << 10;
/// The kind of a deletion.
const DELETED: u8 = 2;

/// Reads the list while it arrives.
#[derive(Debug, Default)]
pub struct ChangeListReader(Mutex<Scan>);

#[derive(Debug, Default)]
struct Scan {
    /// Open brackets. The list is the first level, an entry the second.
    depth: u32,
    in_text: bool,
    escaped: bool,
    /// The current entry.
    entry: Vec<u8>,
    gone: Vec<String>,
    crowded: bool,
    invalid: bool,
    /// The beginning of the answer.
    kept: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ChangedPath<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    kind: u8,
}

impl ChangeListReader {
    /// Top-level entries of the image that were deleted. The archive replaces all other entries, but
    /// does not mention these.
    pub fn gone(&self) -> Result<Vec<String>, Malformed> {
        let mut scan = self.0.lock();
        if scan.crowded {
            return Err(Malformed::Crowded);
        }
        if scan.invalid || scan.depth > 0 {
            warn!(
                "deleted top-level entries of a container are unknown and return with its larger disk"
            );
            return Ok(Vec::new());
        }
        Ok(std::mem::take(&mut scan.gone))
    }
}

impl ProgressSink for ChangeListReader {
    fn chunk(&self, bytes: &[u8]) {
        let mut scan = self.0.lock();
        let room = MAX_KEPT.saturating_sub(scan.kept.len());
        let beginning = bytes.get(..room).unwrap_or(bytes);
        scan.kept.extend_from_slice(beginning);
        for byte in bytes {
            scan.take(*byte);
        }
    }

    fn kept(&self) -> Bytes {
        std::mem::take(&mut self.0.lock().kept).into()
    }
}

impl Scan {
    fn take(&mut self, byte: u8) {
        if self.invalid || self.crowded {
            return;
        }
        let ends = !self.in_text && matches!(byte, b'}' | b']');
        if self.in_text {
            self.in_text = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
        } else {
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                _ => {}
            }
        }
        if self.depth > 1 {
            self.entry.push(byte);
            self.invalid = self.entry.len() > MAX_ENTRY;
        }
        if ends {
            self.depth = self.depth.saturating_sub(1);
            if self.depth == 1 {
                self.ended();
            }
        }
    }

    fn ended(&mut self) {
        match serde_json::from_slice::<ChangedPath<'_>>(&self.entry) {
            Ok(change) if change.kind == DELETED => {
                let name = change.path.strip_prefix('/').unwrap_or_default();
                if !name.is_empty() && name.len() <= MAX_NAME && !name.contains('/') {
                    let name = name.to_owned();
                    self.crowded = self.gone.len() >= MAX_AT_TOP;
                    self.gone.push(name);
                }
            }
            Ok(_) => {}
            Err(_) => self.invalid = true,
        }
        self.entry.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(list: &[u8], size: usize) -> Result<Vec<String>, Malformed> {
        let changes = ChangeListReader::default();
        list.chunks(size).for_each(|piece| changes.chunk(piece));
        changes.gone()
    }

    #[test]
    fn only_what_is_gone_at_the_top_is_named() {
        let changes = br#"[{"Path":"/etc","Kind":0},{"Path":"/etc/motd","Kind":2},
            {"Path":"/opt","Kind":2},{"Path":"/new","Kind":1},{"Path":"/a\u00e9","Kind":2},
            {"Path":"/q\"}]\\","Kind":2}]"#;
        for size in [1, 7, 4096] {
            assert_eq!(gone(changes, size).unwrap(), ["opt", "aé", "q\"}]\\"]);
        }
        assert!(gone(b"null\n", 9).unwrap().is_empty());
        assert!(
            gone(b"[{\"Path\":\"/opt\",\"Kind\":2},{\"Path\":\"/o", 9)
                .unwrap()
                .is_empty()
        );
        assert!(
            gone(b"[{\"Path\":\"/opt\",\"Kind\":2},{\"P\":\"/o\"}]", 9)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn memory_is_bounded() {
        let changes = ChangeListReader::default();
        changes.chunk(b"[{\"Path\":\"/");
        for _ in 0..100 {
            changes.chunk(&[b'x'; 10_000]);
        }
        assert!(changes.0.lock().entry.len() <= MAX_ENTRY + 1);
        assert!(changes.kept().len() <= MAX_KEPT);

        let changes = ChangeListReader::default();
        changes.chunk(b"[");
        for n in 0..2 * MAX_AT_TOP {
            changes.chunk(format!("{{\"Path\":\"/{n}\",\"Kind\":2}},").as_bytes());
        }
        changes.chunk(b"]");
        assert!(changes.0.lock().gone.len() <= MAX_AT_TOP + 1);
        assert_eq!(changes.gone(), Err(Malformed::Crowded));
    }
}
