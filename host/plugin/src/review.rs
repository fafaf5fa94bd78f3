//! The review of a policy, for an operator who decides on it.

use super::embedded::POLICIES;
use super::pin;
use wharf_engine::PolicyFile;

/// The explanation of a policy.
#[derive(Debug)]
pub struct Review {
    /// The permissions of a driver, in words.
    pub words: String,
    /// The findings, one sentence each.
    pub findings: Vec<String>,
    /// The file's name and hash, for the configuration. A policy of the program needs no approval.
    pub approval: Option<(String, String)>,
}

impl Review {
    /// Reviews a policy file. An error names the place in it.
    pub fn new(name: &str, content: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(content).map_err(|_| "is not UTF-8".to_owned())?;
        let file = PolicyFile::parse(text)?;
        Ok(Self {
            words: file.explain(),
            findings: file.lint(),
            approval: Some((name.to_owned(), pin::hash(content))),
        })
    }

    /// Reviews the policy of a driver that is part of the program, such as `docker` or `driver-docker`.
    pub fn of_program(driver: &str) -> Option<Self> {
        let driver = driver.strip_prefix("driver-").unwrap_or(driver);
        let (_, text) = POLICIES
            .iter()
            .find(|(plugin, _)| plugin.strip_prefix("driver-") == Some(driver))?;
        let file = PolicyFile::of_program(text).ok()?;
        Some(Self {
            words: file.explain(),
            findings: file.lint(),
            approval: None,
        })
    }
}
