//! The headers of entries in tar archives.

use tar::{EntryType, Header};

/// Archives are made of blocks of this size.
pub const BLOCK: usize = 512;

/// Whether the check sum of a block is that of a header.
pub fn is_header(header: &Header, block: &[u8]) -> bool {
    const SUM: std::ops::Range<usize> = 148..156;
    let sum: u32 = block
        .iter()
        .enumerate()
        .map(|(at, byte)| {
            if SUM.contains(&at) {
                32
            } else {
                u32::from(*byte)
            }
        })
        .sum();
    header.cksum().is_ok_and(|given| given == sum)
}

/// An entry of root's without content.
pub fn entry(name: &[u8], kind: EntryType, mode: u32) -> [u8; BLOCK] {
    *plain(name, b"", kind, mode).as_bytes()
}

/// A symbolic link of root's.
pub fn link(name: &[u8], target: &[u8]) -> [u8; BLOCK] {
    *plain(name, target, EntryType::Symlink, 0o777).as_bytes()
}

fn plain(name: &[u8], target: &[u8], kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_ustar();
    let fields = header.as_old_mut();
    for (to, from) in fields.name.iter_mut().zip(name) {
        *to = *from;
    }
    for (to, from) in fields.linkname.iter_mut().zip(target) {
        *to = *from;
    }
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(0);
    header.set_cksum();
    header
}
