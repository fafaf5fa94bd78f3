//! The paths and attributes of entries of an archive.

/// Directories on which every container has mounts. Their entries in an export are mount points, which
/// cannot be replaced.
const MOUNTED: [&[u8]; 2] = [b"proc", b"sys"];

/// `./etc/motd`, `/etc/motd` → `etc/motd`
pub fn below_root(path: &[u8]) -> &[u8] {
    let path = path.strip_prefix(b".").map_or(path, |rest| {
        if rest.is_empty() || rest.starts_with(b"/") {
            rest
        } else {
            path
        }
    });
    path.strip_prefix(b"/").unwrap_or(path)
}

/// Whether a path could lead out of the container.
pub fn leaves(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| part == b"..")
}

/// Whether a record has an attribute of a file that an engine or its storage interprets. Users set those of `user`,
/// capabilities and lists of access.
pub fn is_attribute_of_engines(key: &[u8]) -> bool {
    let name = key.strip_prefix(b"SCHILY.xattr.");
    name.is_some_and(|name| {
        name != b"security.capability"
            && !name.starts_with(b"user.")
            && !name.starts_with(b"system.posix_acl_")
    })
}

/// Whether a path is one of [`MOUNTED`], or below it.
pub fn is_mounted(path: &[u8]) -> bool {
    let top = below_root(path).split(|byte| *byte == b'/').next();
    top.is_some_and(|top| MOUNTED.contains(&top))
}

/// `etc`, `./etc/` → `etc`
pub fn at_the_top(path: &[u8]) -> Option<&[u8]> {
    let path = below_root(path);
    let path = path.strip_suffix(b"/").unwrap_or(path);
    (!path.is_empty() && path != b".." && !path.contains(&b'/')).then_some(path)
}
