//! Checks of a file that leave it unchanged, and its repair.

use super::backup::check_pages;
use super::codec::internal;
use super::commit::{CommitTimes, WriteAllowance, commit_durably};
use super::draft::Draft;
use super::findings::FsckFinding;
use super::fsck::check;
use super::guard::{guarded, opening};
use super::open::{initialise, lock, open, open_file, path_in, unreadable};
use super::schema::DbSchema;
use super::tree::ReadRows;
use super::{Db, DbOpenError, Projection};
use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;
use std::sync::Arc;

/// A copy of the database of a directory, and the errors of its pages.
pub struct Inspected {
    /// The copy, in a file without a name. Nothing that is done to it is kept.
    pub db: Db,
    /// One line for each error below the rows.
    pub pages: Vec<String>,
}

/// Copies the database of a directory that no process has open, and checks the pages of the copy.
pub fn inspect(
    dir: &Path,
    projection: Box<dyn Projection>,
    schema: &'static DbSchema,
) -> Result<Inspected, DbOpenError> {
    let path = path_in(dir);
    let failed = |error| unreadable(&path, error);
    let mut file = File::open(&path).map_err(failed)?;
    lock(&path, &file)?;
    let draft = wharf_secure_fs::draft(&path);
    let mut copy = wharf_secure_fs::open_new(&draft).map_err(failed)?;
    std::fs::remove_file(&draft).map_err(failed)?;
    io::copy(&mut file, &mut copy).map_err(failed)?;
    copy.rewind().map_err(failed)?;
    opening(&path);
    let mut copy = open_file(&path, copy)?.rows;
    let damage = check_pages(&path, &mut copy).err();
    let pages: Vec<_> = damage.iter().map(ToString::to_string).collect();
    // redb refuses further work after a failed check of pages, whose finding is the cause then.
    let db = rows(&path, copy, projection, schema).map_err(|error| damage.unwrap_or(error))?;
    if !pages.is_empty() {
        keep_open(Arc::clone(&db.file));
    }
    Ok(Inspected { db, pages })
}

fn rows(
    path: &Path,
    copy: redb::Database,
    projection: Box<dyn Projection>,
    schema: &'static DbSchema,
) -> Result<Db, DbOpenError> {
    if let Err(error) = initialise(path, &copy, schema, false) {
        keep_open(copy);
        return Err(error);
    }
    let damaged = |why| DbOpenError::Damaged {
        path: path.to_owned(),
        why,
    };
    let clock = Box::new(CommitTimes::default);
    guarded(|| Db::on(copy, schema, projection, clock, WriteAllowance::default()))
        .map_err(damaged)?
}

/// Leaves a damaged copy open until the process ends. redb writes when it closes a file. Damaged pages may
/// then make it panic twice, which aborts the process.
fn keep_open<F>(copy: F) {
    std::mem::forget(copy);
}

impl Db {
    /// Checks every table against the others; one finding for each contradiction.
    pub fn check(&self) -> Vec<FsckFinding> {
        let checked = guarded(|| self.read(|rows| Ok(check(rows, self.schema))));
        let why = match checked {
            Ok(Ok(findings)) => return findings,
            Ok(Err(error)) => error.chain().to_string(),
            Err(panic) => panic,
        };
        vec![FsckFinding {
            text: format!("the rows cannot be read: {why}"),
            fix: None,
        }]
    }
}

/// Mends the findings of the database of a directory that a repair can mend, in one commit. Returns
/// their number.
pub fn repair(dir: &Path, schema: &'static DbSchema) -> Result<usize, DbOpenError> {
    let path = path_in(dir);
    let file = open(dir, 0, schema)?.rows;
    let repaired = guarded(|| {
        let findings = check(&ReadRows::open(&file)?, schema);
        let txn = file.begin_write().map_err(internal)?;
        let mut rows = Draft::open(&txn, schema)?;
        let fixes = findings.iter().filter_map(|finding| finding.fix.as_ref());
        let mut repaired = 0;
        for fix in fixes {
            fix.apply(&mut rows)?;
            repaired += 1;
        }
        drop(rows);
        commit_durably(txn)?;
        Ok(repaired)
    });
    let damaged = |why| DbOpenError::Damaged { path, why };
    repaired.map_err(damaged)?
}
