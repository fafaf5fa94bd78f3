//! Rewrites a tar archive for a container that has content already. Engines unpack an archive over that
//! content, which must go. A file replaces a directory of its name and everything in it, so an empty
//! file precedes each top-level directory.
//!
//! The stream buffers only the header that it reads.

#[cfg(test)]
mod tests;

use super::image_form::ImageForm;
use super::tar_header::{BLOCK, entry, is_header, link};
use super::tar_path::{at_the_top, below_root, is_attribute_of_engines, is_mounted, leaves};
use super::tar_records::records;
use super::tar_root;
use std::collections::HashSet;
use tar::{EntryType, Header};

/// Longest header extension, bytes: a path, a link's target, extended attributes.
const MAX_EXTENSION: u64 = 1 << 20;
/// Most top-level directories that are emptied. No image comes near; a tenant might.
pub const MAX_AT_TOP: usize = 4096;
/// Longest name in a plain header, bytes.
pub const MAX_NAME: usize = 99;
/// A directory that cannot be removed.
const EMPTIED: u32 = 0o755;

/// A link that engines make in every container. With remapped user namespaces its owner does not exist
/// inside, and an export leaves it out.
const MTAB: (&[u8], &[u8]) = (b"etc/mtab", b"/proc/mounts");

/// Directories of every image, which users remove now and then.
const USUAL: [&str; 8] = ["boot", "home", "media", "mnt", "opt", "root", "srv", "tmp"];

/// An invalid archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A header's check sum is wrong.
    #[error("not a tar archive")]
    NoHeader,
    /// A header extension is longer than any engine's.
    #[error("a header of the archive is too long")]
    TooLong,
    /// A header extension without a header.
    #[error("a header of the archive is missing")]
    Missing,
    /// More top-level directories than [`MAX_AT_TOP`].
    #[error("more than {MAX_AT_TOP} directories in the root directory")]
    Crowded,
    /// An entry of an archive from outside that no engine writes.
    #[error("an entry of the archive is not one of an engine")]
    Foreign,
}

impl Malformed {
    /// Whether a tenant's content is the cause, so that another attempt fails too.
    pub fn is_of_content(self) -> bool {
        matches!(self, Self::TooLong | Self::Crowded | Self::Foreign)
    }
}

/// The differences between an archive and its rewritten form.
#[derive(Debug, Default)]
pub struct Rewrite {
    /// Top-level entries that become empty in the target.
    pub gone: Vec<String>,
    /// Absolute paths with mounts of the target. Their content stays.
    pub kept: Vec<String>,
    /// Whether the archive comes from outside, so that its entries may be forged.
    pub is_foreign: bool,
    /// The directory of the archive that has the content. All other entries are left out.
    pub root: Option<String>,
    /// The directory of the rewritten archive that gets the content.
    pub below: Option<String>,
    /// Whether the target is empty. It has no mounts yet.
    pub into_empty: bool,
    /// Whether the content is that of a volume, of which no directory is special.
    pub is_volume: bool,
    /// The form that the target takes.
    pub form: Option<ImageForm>,
}

/// The kind of the next bytes.
#[derive(Debug, Default)]
enum Part {
    /// Headers.
    #[default]
    Header,
    /// Content of a file.
    Content,
    /// Content of a file that is left out.
    Dropped,
    /// An extension of the next header.
    Extension(EntryType),
}

/// The state of the rewriting.
#[derive(Debug, Default)]
pub struct TarStream {
    part: Part,
    /// Remaining bytes of the content or extension, with the padding.
    left: u64,
    /// Remaining bytes without the padding.
    extent: usize,
    block: Vec<u8>,
    /// Extensions of the next header, unchanged.
    held: Vec<u8>,
    extension: Vec<u8>,
    path: Option<Vec<u8>>,
    size: Option<u64>,
    emptied: HashSet<Vec<u8>>,
    /// Without the first slash.
    kept: Vec<Vec<u8>>,
    is_foreign: bool,
    root: Option<Vec<u8>>,
    below: Option<Vec<u8>>,
    into_empty: bool,
    is_volume: bool,
    zero_blocks: u8,
}

impl TarStream {
    /// Begins a rewritten archive. `out` receives its first bytes.
    pub fn begin(rewrite: &Rewrite, out: &mut Vec<u8>) -> Result<Self, Malformed> {
        let kept = rewrite.kept.iter();
        let mut stream = Self {
            kept: kept
                .map(|path| below_root(path.as_bytes()).to_vec())
                .collect(),
            is_foreign: rewrite.is_foreign,
            root: rewrite.root.clone().map(String::into_bytes),
            below: rewrite.below.clone().map(String::into_bytes),
            into_empty: rewrite.into_empty,
            is_volume: rewrite.is_volume,
            ..Self::default()
        };
        for name in &rewrite.gone {
            let name = name.as_bytes();
            if rewrite.is_foreign && at_the_top(name) != Some(name) {
                return Err(Malformed::Foreign);
            }
            if !is_mounted(name) && stream.empty(name, out)? {
                out.extend_from_slice(&entry(name, EntryType::Directory, EMPTIED));
            }
        }
        Ok(stream)
    }

    /// The usual top-level directories that the archive does not have.
    pub fn lacking(&self) -> impl Iterator<Item = &'static str> {
        let has = |name: &str| self.is_volume || self.emptied.contains(name.as_bytes());
        USUAL.into_iter().filter(move |name| !has(name))
    }

    /// Whether the archive has ended.
    pub fn is_whole(&self) -> bool {
        self.zero_blocks == 2
    }

    /// Takes the next piece, and appends the bytes to send to `out`.
    pub fn push(&mut self, mut piece: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        while !piece.is_empty() && !self.is_whole() {
            match self.part {
                Part::Header => {
                    let (head, rest) =
                        piece.split_at(piece.len().min(BLOCK.saturating_sub(self.block.len())));
                    self.block.extend_from_slice(head);
                    piece = rest;
                    if self.block.len() == BLOCK {
                        let block = std::mem::take(&mut self.block);
                        self.header(&block, out)?;
                    }
                }
                Part::Content => {
                    let (content, rest) = piece.split_at(self.most(piece));
                    out.extend_from_slice(content);
                    piece = rest;
                    self.came(content.len());
                }
                Part::Dropped => {
                    let (content, rest) = piece.split_at(self.most(piece));
                    piece = rest;
                    self.came(content.len());
                }
                Part::Extension(kind) => {
                    let (content, rest) = piece.split_at(self.most(piece));
                    self.extension.extend_from_slice(content);
                    piece = rest;
                    self.came(content.len());
                    if self.left == 0 {
                        self.extended(kind)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn most(&self, piece: &[u8]) -> usize {
        usize::try_from(self.left).map_or(piece.len(), |left| left.min(piece.len()))
    }

    fn came(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes as u64);
        if self.left == 0 && matches!(self.part, Part::Content | Part::Dropped) {
            self.part = Part::Header;
        }
    }

    fn header(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        if block.iter().all(|byte| *byte == 0) {
            if !self.held.is_empty() {
                return Err(Malformed::Missing);
            }
            self.zero_blocks = self.zero_blocks.saturating_add(1);
            out.extend_from_slice(block);
            return Ok(());
        }
        let header = Header::from_byte_slice(block);
        if self.zero_blocks != 0 || !is_header(header, block) {
            return Err(Malformed::NoHeader);
        }
        let size = header.entry_size().map_err(|_| Malformed::NoHeader)?;
        let kind = header.entry_type();
        if kind.is_pax_local_extensions() || kind.is_gnu_longname() || kind.is_gnu_longlink() {
            if size > MAX_EXTENSION || self.held.len() as u64 > 2 * MAX_EXTENSION {
                return Err(Malformed::TooLong);
            }
            // Programs differ in what two of them mean.
            if self.is_foreign && kind.is_pax_local_extensions() && !self.held.is_empty() {
                return Err(Malformed::Foreign);
            }
            self.held.extend_from_slice(block);
            self.content(size, Part::Extension(kind));
            if size == 0 {
                self.part = Part::Header;
            }
            return Ok(());
        }
        let path = self
            .path
            .take()
            .unwrap_or_else(|| header.path_bytes().into_owned());
        let size = self.size.take().unwrap_or(size);
        let header_only = kind.is_dir()
            || kind.is_hard_link()
            || kind.is_symlink()
            || kind.is_fifo()
            || kind.is_character_special()
            || kind.is_block_special();
        let has_content = !header_only && size > 0;
        // Programs differ in where the next header is after others, and in what names with a slash at the end are.
        let is_plain = if header_only {
            size == 0
        } else {
            kind.is_file() && !path.ends_with(b"/")
        };
        if self.is_foreign && (leaves(&path) || !is_plain) {
            return Err(Malformed::Foreign);
        }
        let mut header = header.clone();
        let mut is_elsewhere = false;
        let path = match &self.root {
            None => path,
            Some(root) => match tar_root::below(root, &path) {
                Some(path) => {
                    tar_root::strip(root, &mut header, &mut self.held)?;
                    path.to_vec()
                }
                None => {
                    is_elsewhere = true;
                    path
                }
            },
        };
        let is_left_out = if self.into_empty {
            self.is_foreign && is_device(&header)
        } else {
            is_mounted(&path)
        };
        if is_elsewhere || is_left_out || self.is_kept(&path) {
            self.held.clear();
            if has_content {
                self.content(size, Part::Dropped);
            }
            return Ok(());
        }
        let name = at_the_top(&path).filter(|_| kind.is_dir() && !self.is_volume);
        let emptied = match name {
            Some(name) => self.empty(name, out)?,
            None => false,
        };
        if let Some(below) = &self.below {
            tar_root::put(below, &path, &mut header, &mut self.held)?;
        }
        out.append(&mut self.held);
        out.extend_from_slice(header.as_bytes());
        if emptied && name == Some(b"etc") {
            out.extend_from_slice(&link(MTAB.0, MTAB.1));
        }
        if has_content {
            self.content(size, Part::Content);
        }
        Ok(())
    }

    fn content(&mut self, size: u64, part: Part) {
        self.left = size.div_ceil(BLOCK as u64).saturating_mul(BLOCK as u64);
        self.extent = usize::try_from(size).unwrap_or(usize::MAX);
        self.part = part;
    }

    /// The path and size of the next entry, if they did not fit into its header.
    fn extended(&mut self, kind: EntryType) -> Result<(), Malformed> {
        let whole = std::mem::take(&mut self.extension);
        let own = whole.get(..self.extent).unwrap_or(&whole);
        if kind.is_gnu_longname() {
            let end = own.iter().position(|byte| *byte == 0).unwrap_or(own.len());
            self.path = own.get(..end).map(<[u8]>::to_vec);
        } else if kind.is_pax_local_extensions() {
            for (key, value) in records(own).ok_or(Malformed::NoHeader)? {
                match key {
                    b"path" => self.path = Some(value.to_vec()),
                    b"size" => {
                        let number = std::str::from_utf8(value).ok();
                        let number = number.and_then(|number| number.parse().ok());
                        self.size = Some(number.ok_or(Malformed::NoHeader)?);
                    }
                    // Those of an own engine are left out with the root.
                    key if self.is_foreign
                        && self.root.is_none()
                        && is_attribute_of_engines(key) =>
                    {
                        return Err(Malformed::Foreign);
                    }
                    _ => {}
                }
            }
        }
        self.held.extend_from_slice(&whole);
        self.part = Part::Header;
        Ok(())
    }

    /// Whether a path is that of a mount, or below it.
    fn is_kept(&self, path: &[u8]) -> bool {
        let path = below_root(path);
        let path = path.strip_suffix(b"/").unwrap_or(path);
        self.kept.iter().any(|kept| {
            let rest = path.strip_prefix(kept.as_slice());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    }

    /// Replaces a directory by an empty file, once. False if that has been done, or if the name does not
    /// fit into a plain header, which no image has.
    fn empty(&mut self, name: &[u8], out: &mut Vec<u8>) -> Result<bool, Malformed> {
        // A mount below the directory would lose its content.
        let holds = |kept: &Vec<u8>| kept.split(|byte| *byte == b'/').next() == Some(name);
        if self.kept.iter().any(holds) {
            return Ok(false);
        }
        if name.len() > MAX_NAME || !name.is_ascii() || self.emptied.contains(name) {
            return Ok(false);
        }
        if self.emptied.len() >= MAX_AT_TOP {
            return Err(Malformed::Crowded);
        }
        self.emptied.insert(name.to_vec());
        if self.into_empty {
            return Ok(false);
        }
        out.extend_from_slice(&entry(name, EntryType::Regular, 0o600));
        Ok(true)
    }
}

/// Whether an entry is a device. Users make none but the one with two zeros, which no driver has.
fn is_device(header: &Header) -> bool {
    let kind = header.entry_type();
    let is_none = |number: std::io::Result<Option<u32>>| number.is_ok_and(|n| n.unwrap_or(0) == 0);
    (kind.is_character_special() || kind.is_block_special())
        && !(is_none(header.device_major()) && is_none(header.device_minor()))
}
