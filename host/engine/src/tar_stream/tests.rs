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
            ..Rewrite::default()
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
            ..Rewrite::default()
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

/// An archive as the engine makes one of a container, with long names in each form.
fn of_image() -> Vec<u8> {
    let mut tar = Vec::new();
    let mut add =
        |path: &str, kind: EntryType, link: &str, content: &[u8], records: &[(&str, &[u8])]| {
            let mut header = Header::new_ustar();
            let fields = header.as_ustar_mut().unwrap();
            // As Go does, if the name is too long.
            let cut = path.len().saturating_sub(80);
            let cut = path
                .get(cut..)
                .unwrap()
                .find('/')
                .filter(|_| cut > 0)
                .map(|at| cut + at);
            let (prefix, name) = cut.map_or(("", path), |at| (&path[..at], &path[at + 1..]));
            fields.prefix[..prefix.len()].copy_from_slice(prefix.as_bytes());
            fields.name[..name.len()].copy_from_slice(name.as_bytes());
            fields.linkname[..link.len()].copy_from_slice(link.as_bytes());
            header.set_entry_type(kind);
            header.set_mode(0o755);
            header.set_size(content.len() as u64);
            header.set_cksum();
            if !records.is_empty() {
                let mut extension = Builder::new(Vec::new());
                extension
                    .append_pax_extensions(records.iter().copied())
                    .unwrap();
                tar.extend_from_slice(extension.get_ref());
            }
            tar.extend_from_slice(header.as_bytes());
            tar.extend_from_slice(content);
            tar.resize(tar.len().next_multiple_of(BLOCK), 0);
        };
    use EntryType::{Char, Directory, Link, Regular, Symlink};
    let (long, user): (_, (&str, &[u8])) = ("x".repeat(60), ("SCHILY.xattr.user.a", b"1\n2"));
    add("metadata.yaml", Regular, "", b"architecture: x86_64", &[]);
    add("rootfs", Directory, "", b"", &[user]);
    add("rootfs/etc", Directory, "", b"", &[]);
    add(
        "rootfs/etc/motd",
        Regular,
        "",
        b"hello",
        &[user, ("SCHILY.xattr.trusted.b", b"2")],
    );
    add("rootfs/link", Link, "rootfs/etc/motd", b"", &[]);
    add("rootfs/symbolic", Symlink, "rootfs/etc/motd", b"", &[]);
    add("rootfs/null", Char, "", b"", &[]);
    add(&format!("rootfs/{long}/{long}"), Regular, "", b"long", &[]);
    let (path, link) = (
        format!("rootfs/é/{long}"),
        format!("rootfs/{long}/{long}/é"),
    );
    add(
        "rootfs/",
        Link,
        "",
        b"",
        &[("path", path.as_bytes()), ("linkpath", link.as_bytes())],
    );
    add("rootfs2/etc", Regular, "", b"elsewhere", &[]);
    add("templates/net.tpl", Regular, "", b"elsewhere", &[]);
    tar.extend_from_slice(&[0; 2 * BLOCK]);
    tar
}

/// The entries of an archive: path, link, content, and number of attributes.
fn entries(archive: &[u8]) -> Vec<(String, String, String, usize)> {
    let mut archive = tar::Archive::new(archive);
    let entries = archive.entries().unwrap();
    entries
        .map(|entry| {
            let mut entry = entry.unwrap();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let path = text(&entry.path_bytes());
            let link = entry
                .link_name_bytes()
                .map_or_else(String::new, |link| text(&link));
            let extension = entry.pax_extensions().unwrap();
            let attributes = extension.into_iter().flatten().flatten();
            let attributes = attributes.filter(|one| one.key_bytes().starts_with(b"SCHILY"));
            let attributes = attributes.count();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            (path, link, content, attributes)
        })
        .collect()
}

#[test]
fn what_is_below_a_directory_is_an_archive_of_its_own() {
    let rewrite = Rewrite {
        root: Some("rootfs".to_owned()),
        into_empty: true,
        ..Rewrite::default()
    };
    for size in [1, 512, 700, 1 << 20] {
        let (out, whole) = rewritten(&of_image(), &rewrite, size);
        assert!(whole, "{size}");
        let long = "x".repeat(60);
        let found = entries(&out);
        let wanted = [
            ("./", "", "", 0),
            ("etc", "", "", 0),
            ("etc/motd", "", "hello", 0),
            ("link", "etc/motd", "", 0),
            ("symbolic", "rootfs/etc/motd", "", 0),
            ("null", "", "", 0),
            (&format!("{long}/{long}"), "", "long", 0),
            (&format!("é/{long}"), &format!("{long}/{long}/é"), "", 0),
        ];
        let wanted = wanted.map(|(a, b, c, n)| (a.to_owned(), b.to_owned(), c.to_owned(), n));
        assert_eq!(found, wanted, "{size}");
        // It is put below the directory again.
        let back = Rewrite {
            below: Some("rootfs".to_owned()),
            into_empty: true,
            is_volume: true,
            ..Rewrite::default()
        };
        let (again, _) = rewritten(&out, &back, size);
        let (once_more, _) = rewritten(&again, &rewrite, size);
        assert_eq!(entries(&once_more), found, "{size}");
        let mut paths = entries(&again).into_iter().map(|(path, ..)| path);
        assert!(paths.all(|path| path.starts_with("rootfs/")));
        let has = |text: &[u8]| out.windows(text.len()).any(|part| part == text);
        assert!(
            has(b"27 SCHILY.xattr.user.a=1\n2\n") && !has(b"trusted"),
            "{size}"
        );
    }
}

#[test]
fn an_empty_target_gets_the_archive_as_it_is() {
    let rewrite = Rewrite {
        into_empty: true,
        is_foreign: true,
        ..Rewrite::default()
    };
    let header = |kind: EntryType, size: u64, device: u32| {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[0] = b'a';
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_device_major(device).unwrap();
        header.set_device_minor(device).unwrap();
        header.set_cksum();
        header
    };
    let push = |header: &Header| {
        let mut out = Vec::new();
        let mut stream = TarStream::begin(&rewrite, &mut out).unwrap();
        stream.push(header.as_bytes(), &mut out).map(|()| out.len())
    };
    use EntryType::{Block, Char, Continuous, Directory, GNUSparse, Link, Regular, XGlobalHeader};
    for (kind, size, device, expected) in [
        (Directory, 0, 0, Ok(BLOCK)),
        (Regular, 5, 0, Ok(BLOCK)),
        (Char, 0, 0, Ok(BLOCK)),
        // Devices are left out.
        (Char, 0, 1, Ok(0)),
        (Block, 0, 8, Ok(0)),
        // Another program would find other entries behind these.
        (Directory, 512, 0, Err(Malformed::Foreign)),
        (Link, 512, 0, Err(Malformed::Foreign)),
        (GNUSparse, 0, 0, Err(Malformed::Foreign)),
        (Continuous, 0, 0, Err(Malformed::Foreign)),
        (XGlobalHeader, 0, 0, Err(Malformed::Foreign)),
    ] {
        assert_eq!(
            push(&header(kind, size, device)),
            expected,
            "{kind:?} {size} {device}"
        );
    }
    let mut twice = forged("etc/motd", "SCHILY.xattr.user.note");
    twice.truncate(2 * BLOCK);
    twice.extend_from_slice(&forged("etc/motd", "SCHILY.xattr.user.note"));
    let mut stream = TarStream::begin(&rewrite, &mut Vec::new()).unwrap();
    assert_eq!(
        stream.push(&twice, &mut Vec::new()),
        Err(Malformed::Foreign)
    );
}
