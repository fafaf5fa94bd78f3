//! Rewrites a tar archive for a container that has content already. Engines unpack an archive over that
//! content, which must go. A file replaces a directory of its name and everything in it, so an empty
//! file precedes each top-level directory.
//!
//! The stream buffers only the header that it reads.

use super::tar_header::{BLOCK, entry, is_header, link};
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

/// Directories on which every container has mounts. Their entries in an export are mount points, which
/// cannot be replaced.
const MOUNTED: [&[u8]; 2] = [b"proc", b"sys"];

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
}

impl Malformed {
    /// Whether a tenant's content is the cause, so that another attempt fails too.
    pub fn is_of_content(self) -> bool {
        matches!(self, Self::TooLong | Self::Crowded)
    }
}

/// The differences between an archive and its rewritten form.
#[derive(Debug, Default)]
pub struct Rewrite {
    /// Top-level entries that become empty in the target.
    pub gone: Vec<String>,
    /// Absolute paths with mounts of the target. Their content stays.
    pub kept: Vec<String>,
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
            ..Self::default()
        };
        for name in &rewrite.gone {
            let name = name.as_bytes();
            if !is_mounted(name) && stream.empty(name, out)? {
                out.extend_from_slice(&entry(name, EntryType::Directory, EMPTIED));
            }
        }
        Ok(stream)
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
                        self.extended(kind);
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
        if is_mounted(&path) || self.is_kept(&path) {
            self.held.clear();
            if has_content {
                self.content(size, Part::Dropped);
            }
            return Ok(());
        }
        let name = at_the_top(&path).filter(|_| kind.is_dir());
        let emptied = match name {
            Some(name) => self.empty(name, out)?,
            None => false,
        };
        out.append(&mut self.held);
        out.extend_from_slice(block);
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
    fn extended(&mut self, kind: EntryType) {
        let whole = std::mem::take(&mut self.extension);
        let own = whole.get(..self.extent).unwrap_or(&whole);
        if kind.is_gnu_longname() {
            let end = own.iter().position(|byte| *byte == 0).unwrap_or(own.len());
            self.path = own.get(..end).map(<[u8]>::to_vec);
        } else if kind.is_pax_local_extensions() {
            for record in tar::PaxExtensions::new(own).flatten() {
                match record.key_bytes() {
                    b"path" => self.path = Some(record.value_bytes().to_vec()),
                    b"size" => self.size = record.value().ok().and_then(|n| n.parse().ok()),
                    _ => {}
                }
            }
        }
        self.held.extend_from_slice(&whole);
        self.part = Part::Header;
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
        out.extend_from_slice(&entry(name, EntryType::Regular, 0o600));
        Ok(true)
    }
}

/// `./etc/motd`, `/etc/motd` → `etc/motd`
fn below_root(path: &[u8]) -> &[u8] {
    let path = path.strip_prefix(b".").map_or(path, |rest| {
        if rest.is_empty() || rest.starts_with(b"/") {
            rest
        } else {
            path
        }
    });
    path.strip_prefix(b"/").unwrap_or(path)
}

/// Whether a path is one of [`MOUNTED`], or below it.
fn is_mounted(path: &[u8]) -> bool {
    let top = below_root(path).split(|byte| *byte == b'/').next();
    top.is_some_and(|top| MOUNTED.contains(&top))
}

/// `etc`, `./etc/` → `etc`
fn at_the_top(path: &[u8]) -> Option<&[u8]> {
    let path = below_root(path);
    let path = path.strip_suffix(b"/").unwrap_or(path);
    (!path.is_empty() && path != b".." && !path.contains(&b'/')).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use tar::Builder;

    fn archive() -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        let mut add = |path: &str, kind: EntryType, content: &[u8]| {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(0o755);
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, path, content).unwrap();
        };
        add("etc/", EntryType::Directory, b"");
        add("etc/motd", EntryType::Regular, b"hello");
        // Mount points are left out, with their content.
        add("proc/", EntryType::Directory, b"");
        add("proc/cpuinfo", EntryType::Regular, b"vendor_id");
        add("sys/devices/online", EntryType::Regular, b"");
        // A plain header would cut this name, and it would become a top-level directory.
        add(&format!("{}/", "x".repeat(150)), EntryType::Directory, b"");
        add("srv/etc/", EntryType::Directory, b"");
        add("etc/", EntryType::Directory, b"");
        builder.into_inner().unwrap()
    }

    fn passed(tar: &[u8], gone: &[String], size: usize) -> (Vec<u8>, bool) {
        let gone = gone.to_vec();
        let kept = Vec::new();
        rewritten(tar, &Rewrite { gone, kept }, size)
    }

    fn rewritten(tar: &[u8], rewrite: &Rewrite, size: usize) -> (Vec<u8>, bool) {
        let mut out = Vec::new();
        let mut stream = TarStream::begin(rewrite, &mut out).unwrap();
        for piece in tar.chunks(size) {
            stream.push(piece, &mut out).unwrap();
        }
        (out, stream.is_whole())
    }

    fn listed(tar: &[u8]) -> Vec<(String, EntryType, String)> {
        let mut archive = tar::Archive::new(tar);
        let entries = archive.entries().unwrap();
        entries
            .map(|entry| {
                let mut entry = entry.unwrap();
                let path = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                (path, entry.header().entry_type(), text)
            })
            .collect()
    }

    #[test]
    fn directories_at_the_top_are_emptied_once_before_they_come() {
        use EntryType::{Directory, Regular};
        let long = format!("{}/", "x".repeat(150));
        let expected = [
            ("opt", Regular, ""),
            ("opt", Directory, ""),
            ("etc", Regular, ""),
            ("etc/", Directory, ""),
            ("etc/mtab", EntryType::Symlink, ""),
            ("etc/motd", Regular, "hello"),
            (&long, Directory, ""),
            ("srv/etc/", Directory, ""),
            ("etc/", Directory, ""),
        ]
        .map(|(path, kind, text)| (path.to_owned(), kind, text.to_owned()));
        for size in [1, 7, 512, 513, 1 << 20] {
            let (out, whole) = passed(&archive(), &["opt".to_owned(), "sys".to_owned()], size);
            assert!(whole, "{size}");
            assert_eq!(listed(&out), expected, "{size}");
        }
    }

    #[test]
    fn a_mount_and_the_directory_around_it_are_not_emptied() {
        let gone = vec!["srv".to_owned()];
        let kept = vec!["/srv/etc".to_owned(), "/etc/motd".to_owned()];
        let (out, whole) = rewritten(&archive(), &Rewrite { gone, kept }, 512);
        assert!(whole);
        let paths: Vec<_> = listed(&out).into_iter().map(|entry| entry.0).collect();
        assert_eq!(
            paths,
            [
                "etc/".to_owned(),
                format!("{}/", "x".repeat(150)),
                "etc/".to_owned()
            ]
        );
    }

    #[test]
    fn a_path_in_an_extension_is_the_one_that_counts() {
        let mut builder = Builder::new(Vec::new());
        let path = "é/etc/".as_bytes();
        builder
            .append_pax_extensions([("path", path), ("mtime", b"1.5")])
            .unwrap();
        let mut out = builder.into_inner().unwrap();
        out.truncate(out.len() - 2 * BLOCK);
        // Go leaves non-ASCII characters out of the plain header.
        out.extend_from_slice(&entry(b"/etc/", EntryType::Directory, 0o755));
        out.extend_from_slice(&[0; 2 * BLOCK]);
        assert_eq!(passed(&out, &[], 100), (out.clone(), true));
    }

    #[test]
    fn what_ends_early_or_is_no_archive_is_known_as_such() {
        let tar = archive();
        assert!(!passed(&tar[..tar.len() - 2 * BLOCK], &[], 512).1);
        assert!(!passed(&tar[..700], &[], 512).1);
        let mut stream = TarStream::default();
        let noise = [7; BLOCK];
        assert_eq!(
            stream.push(&noise, &mut Vec::new()),
            Err(Malformed::NoHeader)
        );
    }

    #[test]
    fn directories_at_the_top_are_bounded() {
        let (mut stream, mut out) = (TarStream::default(), Vec::new());
        let mut push = |name: String| {
            out.clear();
            let header = entry(name.as_bytes(), EntryType::Directory, EMPTIED);
            stream.push(&header, &mut out)
        };
        for n in 0..MAX_AT_TOP {
            push(format!("d{n}/")).unwrap();
        }
        push("d0/".to_owned()).unwrap();
        push("d0/below/".to_owned()).unwrap();
        assert_eq!(push("more/".to_owned()), Err(Malformed::Crowded));
    }

    #[test]
    fn the_top_is_told_from_what_is_below() {
        for (path, name) in [
            ("etc", Some("etc")),
            ("etc/", Some("etc")),
            ("./etc/", Some("etc")),
            ("/etc", Some("etc")),
            (".ssh/", Some(".ssh")),
            ("./", None),
            (".", None),
            ("/", None),
            ("..", None),
            ("etc/ssh/", None),
        ] {
            assert_eq!(
                at_the_top(path.as_bytes()),
                name.map(str::as_bytes),
                "{path}"
            );
        }
    }
}
