//! The bodies of the fuzz targets under `host/fuzz/`, on stable Rust: every committed seed, and a
//! bounded number of inputs made from them, the same ones at each run. Also the table of routes: among the library's
//! own tests, it would have every handler compiled and optimized a second time.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "../../fuzz/src/lib.rs"]
mod checks;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use wharf::http::routes;

/// Inputs for each target, beside the seeds.
const INPUTS: usize = 40_000;

/// Longest input, in bytes.
const LONGEST: usize = 4096;

/// Pieces that mutations put in: what these parsers look at.
const PIECES: [&[u8]; 16] = [
    b"/", b"//", b"%2f", b"%", b"..", b"?", b"#", b"\"", b"{", b"}", b"null", b"4.0", b"1e9",
    b"\n", b"\xff", b"-",
];

fn run(target: &str, body: fn(&[u8]) -> bool) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/seeds")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    let mut accepted = 0;
    for (file, seed) in files.iter().zip(&seeds) {
        let name = file.file_name().unwrap().to_string_lossy();
        let right = body(seed);
        assert_eq!(right, !name.starts_with("bad"), "{}", file.display());
        accepted += usize::from(right);
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..INPUTS {
        accepted += usize::from(body(&random.mutate(&seeds)));
    }
    println!(
        "{target}: {} seeds, {INPUTS} inputs, {accepted} accepted",
        seeds.len()
    );
    assert!(
        accepted > INPUTS / 100,
        "the inputs hardly reach what is behind the first check"
    );
}

/// Xorshift: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap()
    }

    fn mutate(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            let end = (at + self.below(8)).min(bytes.len());
            match self.below(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 => drop(bytes.drain(at..end)),
                2 => drop(bytes.splice(at..at, PIECES[self.below(PIECES.len())].iter().copied())),
                3 => drop(bytes.splice(at..end, PIECES[self.below(PIECES.len())].iter().copied())),
                4 => {
                    let other = &seeds[self.below(seeds.len())];
                    let from = self.below(other.len() + 1);
                    bytes.splice(at.., other[from..].iter().copied());
                }
                _ => {
                    let again = bytes[at..end].to_vec();
                    bytes.splice(at..at, again);
                }
            }
            bytes.truncate(LONGEST);
        }
        bytes
    }
}

#[test]
fn path() {
    run("path", checks::path);
}

#[test]
fn body() {
    run("body", checks::body);
}

#[test]
fn name() {
    run("name", checks::name);
}

#[test]
fn public_key() {
    run("public_key", checks::public_key);
}

/// Methods are held against the document by `tests/contract/routes.rs`.
#[test]
fn the_document_has_every_route() {
    let document: serde_json::Value = serde_json::from_str(wharf_client::DOCUMENT).unwrap();
    let documented: BTreeSet<_> = document["paths"].as_object().unwrap().keys().collect();
    let undocumented = ["/api/openapi.json", "/api/docs/", "/api/docs/{file}"];
    let undocumented: BTreeSet<_> = undocumented
        .into_iter()
        .chain(routes::console_paths())
        .collect();
    let paths: BTreeSet<_> = routes::paths().map(str::to_owned).collect();
    let routed = paths.iter().filter(|p| !undocumented.contains(&p.as_str()));
    assert!(documented.into_iter().eq(routed));
}
