//! Transfers of all content from one container to another.

use super::{Api, Reply, accepted};
use wharf_guest::{Answer, EngineError, Error, JobState, Transfer};

/// Delay before another attempt to begin, ms.
const TURN_MS: u32 = 2000;

/// The state of a transfer.
#[derive(Debug)]
pub enum Moving {
    /// There is no transfer.
    Nothing,
    /// In progress, with its progress if known.
    Under(Option<String>),
    /// The transfer has ended.
    Ended(Reply<()>),
}

impl Api<'_> {
    /// Begins a transfer. An export has the owners as seen inside the container; an archive has
    /// those of the node.
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
            // The node has reached its limit of transfers; nothing was sent.
            EngineError::Unreachable(_) => Error::RetryLater(TURN_MS),
            other => other.into(),
        })
    }

    /// Reads the state of the transfer of the call's instance.
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

    /// Ends the transfer, if there is one.
    pub fn end_transfer(&self) -> Result<(), Error> {
        Ok(self.engine.end_transfer()?)
    }
}
