//! Where a journal is kept: a file, or in tests a disk whose power can be cut.

use crate::private;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// As much of a file as a journal needs.
pub trait Storage: Send {
    /// How many bytes there are.
    fn length(&self) -> io::Result<u64>;
    /// Fills `bytes` with those from `at` on; all of them must be there.
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()>;
    /// Writes there; past the end it grows.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Returns when all that was written holds through a power cut.
    fn sync(&self) -> io::Result<()>;
}

impl Storage for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(bytes, at)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Opens or makes a journal's file.
pub fn open(path: &Path) -> io::Result<File> {
    let file = private::open(path)?;
    // Pages that were read ahead in large pieces would be written in such pieces. Where that cannot be
    // said, it costs speed only.
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random);
    Ok(file)
}
