//! Failures of an alternative.

use anyhow::Error;

/// A failure of an alternative.
pub(crate) enum Failure {
    /// The next alternative is tried.
    Passed(Error),
    /// The command ends: another alternative would hide a wrong content or a wrong account.
    Ends(Error),
}

/// A failure of the machine ends the command.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Ends(error)
    }
}
