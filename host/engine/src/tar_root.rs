//! The entries below one directory of an archive, as those of an archive of their own, and back. Only Go writes such
//! archives: long names are in records, or in two fields of a header.

use super::tar_header::BLOCK;
use super::tar_path::is_attribute_of_engines;
use super::tar_records::{record, records};
use super::tar_stream::Malformed;
use tar::{EntryType, Header};

/// The name of the directory itself.
const ITSELF: &[u8] = b"./";

/// The path of an entry below the directory; none if it is elsewhere.
pub fn below<'a>(root: &[u8], path: &'a [u8]) -> Option<&'a [u8]> {
    match path.strip_prefix(root)? {
        b"" | b"/" => Some(ITSELF),
        path => path.strip_prefix(b"/"),
    }
}

/// Takes the directory off the names in a header and in its extension. The extension loses attributes that only engines
/// interpret.
pub fn strip(root: &[u8], header: &mut Header, held: &mut Vec<u8>) -> Result<(), Malformed> {
    let is_link = header.entry_type().is_hard_link();
    let extension = std::mem::take(held);
    if !extension.is_empty() {
        *held = stripped(root, is_link, &extension).ok_or(Malformed::NoHeader)?;
    }
    let fields = header.as_ustar_mut().ok_or(Malformed::NoHeader)?;
    if fields.prefix.starts_with(root) {
        shift(root, &mut fields.prefix);
    } else {
        shift(root, &mut fields.name);
    }
    if is_link {
        shift(root, &mut fields.linkname);
    }
    if fields.name.starts_with(&[0]) {
        for (to, from) in fields.name.iter_mut().zip(ITSELF) {
            *to = *from;
        }
    }
    header.set_cksum();
    Ok(())
}

/// Puts an entry of this path below a directory. The names are in the header if it has room for them, and else in its
/// extension.
pub fn put(
    below: &[u8],
    path: &[u8],
    header: &mut Header,
    held: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let within = |path: &[u8]| match path {
        ITSELF => [below, b"/"].concat(),
        path => [below, b"/", path].concat(),
    };
    let (mut link, mut others) = (None, Vec::new());
    if header.entry_type().is_hard_link() {
        link = header.link_name_bytes().map(|name| name.into_owned());
    }
    let extension = std::mem::take(held);
    let mut head = Header::new_ustar();
    if let Some((first, content)) = extension.split_at_checked(BLOCK) {
        head = Header::from_byte_slice(first).clone();
        let size = head
            .entry_size()
            .ok()
            .and_then(|size| usize::try_from(size).ok());
        let content = size.and_then(|size| content.get(..size));
        let own = content.filter(|_| head.entry_type().is_pax_local_extensions());
        for (key, value) in own.and_then(records).ok_or(Malformed::Foreign)? {
            match key {
                b"path" => {}
                b"linkpath" if link.is_some() => link = Some(value.to_vec()),
                key => others.extend(record(key, value)),
            }
        }
    } else {
        head.set_path("PaxHeaders.0/x")
            .map_err(|_| Malformed::NoHeader)?;
        head.set_entry_type(EntryType::XHeader);
    }
    let fields = header.as_ustar_mut().ok_or(Malformed::Foreign)?;
    let names = [
        (b"path" as &[u8], Some(within(path)), &mut fields.name),
        (
            b"linkpath",
            link.as_deref().map(within),
            &mut fields.linkname,
        ),
    ];
    for (key, name, field) in names {
        let Some(name) = name else {
            continue;
        };
        field.fill(0);
        for (to, from) in field.iter_mut().zip(&name) {
            *to = *from;
        }
        if name.len() > field.len() || !name.is_ascii() {
            others.extend(record(key, &name));
        }
    }
    fields.prefix.fill(0);
    header.set_cksum();
    if !others.is_empty() {
        head.set_size(others.len() as u64);
        head.set_cksum();
        others.resize(others.len().next_multiple_of(BLOCK), 0);
        *held = [head.as_bytes().as_slice(), &others].concat();
    }
    Ok(())
}

fn stripped(root: &[u8], is_link: bool, extension: &[u8]) -> Option<Vec<u8>> {
    let (head, content) = extension.split_at_checked(BLOCK)?;
    let mut head = Header::from_byte_slice(head).clone();
    let size = usize::try_from(head.entry_size().ok()?).ok()?;
    // Another extension would follow this one.
    let is_one = content.len() == size.next_multiple_of(BLOCK);
    if !is_one || !head.entry_type().is_pax_local_extensions() {
        return None;
    }
    let mut kept = Vec::new();
    for (key, value) in records(content.get(..size)?)? {
        let is_name = key == b"path" || key == b"linkpath" && is_link;
        if !is_attribute_of_engines(key) {
            let value = below(root, value).filter(|_| is_name).unwrap_or(value);
            kept.extend(record(key, value));
        }
    }
    if kept.is_empty() {
        return Some(kept);
    }
    head.set_size(kept.len() as u64);
    head.set_cksum();
    kept.resize(kept.len().next_multiple_of(BLOCK), 0);
    Some([head.as_bytes().as_slice(), &kept].concat())
}

/// Removes the directory from the beginning of a field.
fn shift(root: &[u8], field: &mut [u8]) {
    let is_below = field.strip_prefix(root);
    if is_below.is_some_and(|rest| rest.starts_with(b"/") || rest.starts_with(&[0])) {
        let length = root.len().saturating_add(1);
        field.rotate_left(length);
        field
            .iter_mut()
            .rev()
            .take(length)
            .for_each(|byte| *byte = 0);
    }
}
