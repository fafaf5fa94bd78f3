//! The review of a driver's requests, for an operator who decides on them.

use super::embedded::REQUESTS;
use super::pin;
use wharf_requests::{RequestFile, SampleCall};

/// A request file under review.
#[derive(Debug)]
pub struct Review {
    /// The file.
    pub file: RequestFile,
    /// The file's name and hash, for the configuration. A file of the program needs no approval.
    pub approval: Option<(String, String)>,
}

impl Review {
    /// Reads a file. An error names the place in it.
    pub fn new(name: &str, content: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(content).map_err(|_| "is not UTF-8".to_owned())?;
        Ok(Self {
            file: RequestFile::parse(text)?,
            approval: Some((name.to_owned(), pin::hash(content))),
        })
    }

    /// Reads the file of a driver that is part of the program, such as `docker` or `driver-docker`.
    pub fn of_program(driver: &str) -> Option<Self> {
        let driver = driver.strip_prefix("driver-").unwrap_or(driver);
        let is_of = |plugin: &str| plugin.strip_prefix("driver-") == Some(driver);
        let (_, text) = REQUESTS.iter().find(|(plugin, _)| is_of(plugin))?;
        Some(Self {
            file: RequestFile::parse(text).ok()?,
            approval: None,
        })
    }

    /// Writes a request in a sample of a call. An error names the place in the file or in the sample.
    pub fn render(
        &self,
        request: &str,
        sample: &str,
        arguments: &[(String, String)],
    ) -> Result<String, String> {
        let sample = SampleCall::parse(sample).map_err(|why| format!("the sample: {why}"))?;
        sample.render(&self.file, request, arguments)
    }
}
