//! Conversions to a driver's errors.

use crate::types::{EngineError, Error, FieldError};

impl Error {
    /// Creates an error about one field of the request.
    #[must_use]
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid(FieldError {
            field: field.to_owned(),
            message: message.into(),
        })
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Refused(why) => {
                Self::Unsupported(format!("the host's policy refuses this request: {why}"))
            }
            EngineError::Unreachable(why) => Self::Unreachable(why),
            EngineError::Timeout => Self::Unreachable("no complete answer in time".into()),
            EngineError::TooLarge(limit) => {
                Self::Other(format!("the engine's answer is longer than {limit} bytes"))
            }
        }
    }
}
