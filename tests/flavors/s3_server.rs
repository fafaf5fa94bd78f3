//! A real S3-compatible server on a machine of its own.

use crate::outside::Outside;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::process::Stdio;
use tempfile::TempDir;
use wharf_testkit::child::KilledOnDrop;
use wharf_testkit::workspace::root;
use wharf_tests::Python;

/// The server, which runs until it is dropped.
pub struct S3Server {
    _process: KilledOnDrop,
    log: TempDir,
    pub url: String,
    pub key: String,
    pub secret: String,
    _outside: Outside,
}

impl S3Server {
    /// Starts a server with the bucket `data`, which has `objects` objects below `set/` and one
    /// elsewhere.
    pub fn start(objects: usize) -> Result<Self> {
        Self::start_with(objects, None)
    }

    /// Does what [`Self::start`] does, with this secret in place of a random one.
    pub fn start_with(objects: usize, secret: Option<&str>) -> Result<Self> {
        let here = root().join("tests/flavors");
        let python = Python::ensure(&here.join("requirements.txt"))?;
        let outside = Outside::new()?;
        let log = tempfile::tempdir()?;
        let mut program = python.program("python");
        program
            .arg(here.join("s3_server.py"))
            .arg(&outside.address)
            .arg(objects.to_string())
            .args(secret);
        let process = outside
            .command(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log.path().join("requests"))?)
            .spawn()?;
        let mut process = KilledOnDrop(process);
        let line = process.first_line()?;
        let said: Value = serde_json::from_str(&line).with_context(|| {
            let errors = fs::read_to_string(log.path().join("requests"));
            format!(
                "the S3 server does not start: {}",
                errors.unwrap_or_default()
            )
        })?;
        let text = |field: &str| said[field].as_str().unwrap_or_default().to_owned();
        Ok(Self {
            url: text("url"),
            key: text("key"),
            secret: text("secret"),
            _process: process,
            log,
            _outside: outside,
        })
    }

    /// Returns the four fields of a request for a bucket path.
    pub fn fields(&self, bucket: &str) -> Value {
        json!({
            "s3_endpoint_url": self.url,
            "s3_access_key_id": self.key,
            "s3_secret_access_key": self.secret,
            "s3_prefill_bucket": bucket,
        })
    }

    /// Returns the number of downloads so far.
    pub fn downloads(&self) -> Result<usize> {
        let log = fs::read_to_string(self.log.path().join("requests"))?;
        Ok(log
            .lines()
            .filter(|line| line.contains("GET /data/set/part/") && line.contains(" 200 "))
            .count())
    }
}
