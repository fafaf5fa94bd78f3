//! Pages and their checksums, below redb.

use super::backend::FakeDisk;
use super::fixture::{Taken, create};
use super::{SCHEMA, directory};
use crate::pages::{Checked, PAGE, Pages};
use crate::{Db, DbBounds, open};
use redb::StorageBackend;
use redb::backends::FileBackend;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use wharf_domain::time::Timestamp;

const GROUP: u64 = 1024;

fn content(seed: u64, pages: u64) -> Vec<u8> {
    (0..pages * PAGE)
        .map(|n| ((n + seed) % 251) as u8)
        .collect()
}

/// The place of a page on the disk.
fn place(page: u64) -> u64 {
    (2 + page / GROUP * (GROUP + 1) + page % GROUP) * PAGE
}

fn read(pages: &Checked, page: u64, count: u64) -> Vec<u8> {
    let mut found = vec![7; usize::try_from(count * PAGE).unwrap()];
    pages.read(page * PAGE, &mut found).unwrap();
    found
}

#[test]
fn pages_of_several_groups_are_read_as_they_were_written() {
    let disk = FakeDisk::new();
    let pages = Checked(Pages::open(disk.clone()).unwrap());
    let count = 2 * GROUP + 5;
    pages.set_len(count * PAGE).unwrap();
    for first in [1, GROUP - 2, 2 * GROUP - 1] {
        pages.write(first * PAGE, &content(first, 4)).unwrap();
    }
    pages.sync_data().unwrap();
    pages.close().unwrap();
    let again = Checked(Pages::open(disk.clone()).unwrap());
    assert_eq!(again.len().unwrap(), count * PAGE);
    for first in [1, GROUP - 2, 2 * GROUP - 1] {
        assert_eq!(read(&again, first, 4), content(first, 4));
    }
    // A page that was cut off does not come back with its checksum.
    again.set_len(GROUP * PAGE).unwrap();
    again.set_len(count * PAGE).unwrap();
    again.sync_data().unwrap();
    assert_eq!(read(&again, GROUP, 1), vec![0; PAGE as usize]);
    assert_eq!(read(&again, GROUP - 2, 1), content(GROUP - 2, 1));
    assert_eq!(again.0.damaged(), 0);
    let wrong = (0..count).filter(|page| !again.0.is_right(*page).unwrap());
    assert_eq!(wrong.count(), 0);
}

#[test]
fn a_page_that_is_altered_or_in_the_place_of_another_is_not_read_until_it_is_written() {
    let disk = FakeDisk::new();
    let pages = Checked(Pages::open(disk.clone()).unwrap());
    pages.set_len(8 * PAGE).unwrap();
    pages.write(PAGE, &content(1, 6)).unwrap();
    pages.sync_data().unwrap();
    disk.write(place(3) + 100, &[255]).unwrap();
    disk.write(place(5), &content(1, 1)).unwrap();
    let nothing = vec![0; 2 * PAGE as usize];
    // A run of pages is one page of redb.
    for (page, count) in [(3, 1), (2, 2), (5, 1)] {
        assert_eq!(
            read(&pages, page, count),
            nothing[..(count * PAGE) as usize]
        );
        assert!(!pages.0.is_right(if page == 2 { 3 } else { page }).unwrap());
    }
    assert_eq!(read(&pages, 1, 2), content(1, 2));
    assert_eq!(pages.0.damaged(), 2);
    pages.write(3 * PAGE, &content(9, 3)).unwrap();
    assert_eq!(read(&pages, 3, 3), content(9, 3));
    assert_eq!(pages.0.damaged(), 0);
}

#[test]
fn a_file_that_was_closed_with_another_header_is_refused() {
    let disk = FakeDisk::new();
    let pages = Checked(Pages::open(disk.clone()).unwrap());
    pages.set_len(2 * PAGE).unwrap();
    pages.write(0, b"header").unwrap();
    pages.close().unwrap();
    disk.write(place(0) + 2, b"x").unwrap();
    let refused = Pages::open(disk.clone()).unwrap_err().to_string();
    assert!(refused.contains("header"), "{refused}");
    disk.write(place(0) + 2, b"a").unwrap();
    // While it is open, redb writes its header in place, and checks it itself.
    let pages = Checked(Pages::open(disk.clone()).unwrap());
    pages.write(0, b"later!").unwrap();
    drop(pages);
    assert!(Pages::open(disk).is_ok());
}

#[test]
fn a_scrub_finds_damage_of_pages_that_are_in_memory() {
    let dir = directory("scrub");
    let clock = Box::new(crate::CommitTimes::default);
    let db = Db::open(
        &dir,
        &SCHEMA,
        Box::<Taken>::default(),
        clock,
        DbBounds::default(),
    )
    .unwrap();
    for _ in 0..30 {
        db.write_blocking(create()).unwrap();
    }
    let scrub = || db.scrub(Timestamp(0), || true).unwrap().unwrap();
    assert_eq!((scrub().damaged, scrub().remains), (0, 0));
    let mut file = File::options();
    let file = file.read(true).write(true).open(open::path_in(&dir));
    let file = file.unwrap();
    let flip = || {
        let mut flipped = 0;
        for page in 1..scrub().pages {
            let mut byte = [0];
            file.read_exact_at(&mut byte, place(page) + 9).unwrap();
            file.write_all_at(&[byte[0] ^ 4], place(page) + 9).unwrap();
            flipped += 1;
        }
        flipped
    };
    let flipped = flip();
    let found = scrub();
    assert_eq!((found.damaged, found.remains), (flipped, 0));
    assert_eq!(db.damaged_pages(), flipped);
    flip();
    drop(db);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_file_that_shrinks_under_a_scrub_is_right() {
    let dir = directory("shrinking");
    let file = FileBackend::new(File::create_new(dir.join("file")).unwrap()).unwrap();
    let pages = Checked(Pages::open(file).unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2000 {
                pages.set_len(64 * PAGE).unwrap();
                pages.write(32 * PAGE, &content(1, 32)).unwrap();
                pages.set_len(8 * PAGE).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            for page in 0..64 {
                assert!(pages.0.is_right(page).unwrap(), "{page}");
            }
        }
    });
    assert_eq!(pages.0.damaged(), 0);
    fs::remove_dir_all(&dir).unwrap();
}
