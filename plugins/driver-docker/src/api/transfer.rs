//! Everything that is in one container, put into another.

use super::{Api, Reply, accepted};
use wharf_guest::{Answer, EngineError, Error, JobState, Transfer};

/// When to ask again whether it can begin, ms.
const TURN_MS: u32 = 2000;

/// Where a transfer is.
#[derive(Debug)]
pub enum Moving {
    /// There is none.
    Nothing,
    /// Under way; how far.
    Under(Option<String>),
    /// Ended.
    Ended(Reply<()>),
}

impl Api<'_> {
    /// Begins it. An export tells owners as they are seen inside, an archive as they are outside.
    pub fn begin_transfer(&self, from: &str, to: &str) -> Result<(), Error> {
        let from = self.path("/containers").segment(from);
        let read = from.clone().segment("export");
        let to = self.path("/containers").segment(to).segment("archive");
        let begun = self.engine.begin_transfer(&Transfer {
            read: read.to_string(),
            changes: from.segment("changes").to_string(),
            write: to.query("path", "/").to_string(),
        });
        begun.map_err(|error| match error {
            // Nothing was sent yet: others' are under way.
            EngineError::Unreachable(_) => Error::RetryLater(TURN_MS),
            other => other.into(),
        })
    }

    /// Where the one of the call's instance is.
    pub fn transfer(&self) -> Result<Moving, Error> {
        Ok(match self.engine.transfer_state()? {
            None => Moving::Nothing,
            Some(JobState::Running(line)) => Moving::Under(line),
            Some(JobState::Done(response)) => Moving::Ended(
                accepted(Answer {
                    status: response.status,
                    headers: response.headers,
                    body: response.body,
                })
                .map(drop),
            ),
            Some(JobState::Failed(error)) => return Err(error.into()),
        })
    }

    /// Ends it, if there is one.
    pub fn end_transfer(&self) -> Result<(), Error> {
        Ok(self.engine.end_transfer()?)
    }
}
