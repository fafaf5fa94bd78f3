//! Rewritten archives, whole and in pieces.

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
    rewritten(
        tar,
        &Rewrite {
            gone,
            kept,
            is_foreign: false,
        },
        size,
    )
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
    let (out, whole) = rewritten(
        &archive(),
        &Rewrite {
            gone,
            kept,
            is_foreign: false,
        },
        512,
    );
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

/// An archive of one empty file with this path, after an extension with a record.
fn forged(path: &str, record: &str) -> Vec<u8> {
    let mut extension = Builder::new(Vec::new());
    let value: &[u8] = b"y";
    extension.append_pax_extensions([(record, value)]).unwrap();
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(EntryType::Regular);
    header.set_size(0);
    header.set_cksum();
    let mut archive = extension.get_ref().clone();
    archive.extend_from_slice(header.as_bytes());
    archive
}

#[test]
fn entries_that_no_engine_writes_are_refused_from_outside() {
    let push = |path: &str, record: &str, is_foreign| {
        let rewrite = Rewrite {
            is_foreign,
            ..Rewrite::default()
        };
        let mut out = Vec::new();
        let mut stream = TarStream::begin(&rewrite, &mut out).unwrap();
        stream.push(&forged(path, record), &mut out)
    };
    let harmless = "SCHILY.xattr.user.note";
    for (path, record, is_right) in [
        ("etc/motd", harmless, true),
        ("etc/motd", "SCHILY.xattr.security.capability", true),
        ("etc/motd", "SCHILY.xattr.trusted.overlay.redirect", false),
        ("etc/../../motd", harmless, false),
        ("..", harmless, false),
    ] {
        let expected = if is_right {
            Ok(())
        } else {
            Err(Malformed::Foreign)
        };
        assert_eq!(push(path, record, true), expected, "{path} {record}");
        assert_eq!(push(path, record, false), Ok(()), "{path} {record}");
    }
    let rewrite = Rewrite {
        gone: vec!["../etc".to_owned()],
        is_foreign: true,
        ..Rewrite::default()
    };
    let begun = TarStream::begin(&rewrite, &mut Vec::new());
    assert_eq!(begun.err(), Some(Malformed::Foreign));
}
