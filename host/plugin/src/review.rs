//! The review of a driver's requests, for an operator who decides on them.

use super::embedded::{POLICIES, REQUESTS};
use super::pin;
use wharf_engine::{DriverFile, PolicyFile};
use wharf_requests::{RequestFile, Sample};

/// A request file under review.
#[derive(Debug)]
pub struct Review {
    file: DriverFile,
    /// The file's name and hash, for the configuration. A file of the program needs no approval.
    pub approval: Option<(String, String)>,
}

impl Review {
    /// Reads a file. An error names the place in it.
    pub fn new(name: &str, content: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(content).map_err(|_| "is not UTF-8".to_owned())?;
        let file = if name.ends_with(pin::POLICY) {
            DriverFile::Policy(PolicyFile::parse(text)?)
        } else {
            DriverFile::Requests(RequestFile::parse(text)?)
        };
        let approval = Some((name.to_owned(), pin::hash(content)));
        Ok(Self { file, approval })
    }

    /// Reads the file of a driver that is part of the program, such as `docker` or `driver-docker`.
    pub fn of_program(driver: &str) -> Option<Self> {
        let driver = driver.strip_prefix("driver-").unwrap_or(driver);
        let of = |list: &[(&str, &'static str)]| {
            let is_of = |plugin: &str| plugin.strip_prefix("driver-") == Some(driver);
            list.iter()
                .find(|(plugin, _)| is_of(plugin))
                .map(|(_, text)| *text)
        };
        let file = match of(REQUESTS) {
            Some(text) => DriverFile::Requests(RequestFile::parse(text).ok()?),
            None => DriverFile::Policy(PolicyFile::parse(of(POLICIES)?).ok()?),
        };
        Some(Self {
            file,
            approval: None,
        })
    }

    /// Says what the driver could do to a node.
    pub fn words(&self) -> String {
        match &self.file {
            DriverFile::Policy(file) => file.explain(),
            DriverFile::Requests(file) => file.explain(),
        }
    }

    /// Says which parts need a second look, a sentence for each.
    pub fn findings(&self) -> Vec<String> {
        match &self.file {
            DriverFile::Policy(file) => file.lint(),
            DriverFile::Requests(file) => file.lint(),
        }
    }

    /// Writes a request in a sample of a call. An error names the place in the file or in the sample.
    pub fn render(
        &self,
        request: &str,
        sample: &str,
        arguments: &[(String, String)],
    ) -> Result<String, String> {
        let DriverFile::Requests(file) = &self.file else {
            return Err("has no requests that Wharf could write".to_owned());
        };
        let sample = Sample::parse(sample).map_err(|why| format!("the sample: {why}"))?;
        let rendered = sample.render(file, request, arguments)?;
        Ok(rendered.to_string())
    }
}
