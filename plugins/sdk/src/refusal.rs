//! Answers with an error status.

use crate::types::Error;
use std::ops::Deref;

/// Maximum length of the engine's message, in characters.
const MAX_MESSAGE: usize = 500;

/// A request that the engine did not carry out. Engines differ in the status for an error, so drivers
/// recognise most errors by their text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// The engine's message.
    pub message: String,
}

impl Refusal {
    /// Creates a refusal. Without a message of the engine, the whole body is the message. A long message is
    /// shortened in the middle: it begins with the step and ends with the reason.
    #[must_use]
    pub fn new(status: u16, message: Option<String>, body: &[u8]) -> Self {
        let message = message.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned());
        let length = message.chars().count();
        let half = MAX_MESSAGE / 2;
        let message = if length <= MAX_MESSAGE {
            message
        } else {
            let begin = message.chars().take(half - 1);
            let end = message.chars().skip(length - half);
            begin.chain(['…']).chain(end).collect()
        };
        Self { status, message }
    }

    /// Converts the refusal to an error of the given step.
    #[must_use]
    pub fn during(&self, step: &str) -> Error {
        Error::Other(format!(
            "{step}: the engine says {}: {}",
            self.status, self.message
        ))
    }

    /// Returns whether the message contains any of these texts, which are in lower case.
    #[must_use]
    pub fn says(&self, any: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        any.iter().any(|words| message.contains(words))
    }
}

/// The refusal of a step as its error: `api.info()?.during("reading the node's resources")?`.
pub trait During<T> {
    /// Converts a refusal to an error of the given step.
    ///
    /// # Errors
    /// When the engine refused.
    fn during(self, step: &str) -> Result<T, Error>;
}

impl<T, R: Deref<Target = Refusal>> During<T> for Result<T, R> {
    fn during(self, step: &str) -> Result<T, Error> {
        self.map_err(|refusal| refusal.during(step))
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn a_long_message_keeps_its_ends() {
        let long = |text: &str| Refusal::new(500, Some(text.to_owned()), b"{}").message;
        assert_eq!(long(&"ä".repeat(9000)).chars().count(), 500);
        let why = long(&format!(
            "unpacking {}: disk quota exceeded",
            "x".repeat(900)
        ));
        assert!(why.starts_with("unpacking") && why.ends_with("quota exceeded"));
        assert_eq!(long("short"), "short");
    }

    #[test]
    fn a_body_without_a_message_is_the_message() {
        let whole = |body: &[u8]| Refusal::new(502, None, body).message;
        assert_eq!(whole(b" bad gateway\n"), "bad gateway");
        assert_eq!(whole(b""), "");
    }
}
