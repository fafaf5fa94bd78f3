//! Processes that end with their values.

use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::process::Child;

/// A process that is killed when it is dropped.
#[derive(Debug)]
pub struct KilledOnDrop(pub Child);

impl KilledOnDrop {
    /// Reads the first line of its stdout, which is a pipe.
    pub fn first_line(&mut self) -> Result<String> {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().context("no stdout")?).read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
