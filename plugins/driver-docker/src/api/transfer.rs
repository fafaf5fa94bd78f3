//! Transfers of all content from one container to another, or to the host.

use super::{Api, Reply, accepted};
use wharf_guest::NamedRequest;
use wharf_guest::{EngineAnswer, EngineError, Error, JobState};

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
    /// Begins the transfer of a container's content to its replacement. An export has the owners as
    /// seen inside the container; an archive has those of the node.
    pub fn begin_transfer(&self, from: &str) -> Result<(), Error> {
        self.begin(&NamedRequest::new("content").with("container", from))
    }

    /// Offers a container's content to the engine of another node.
    pub fn offer_content(&self, from: &str) -> Result<(), Error> {
        self.begin(&NamedRequest::new("offer").with("container", from))
    }

    /// Begins the transfer of the content that is offered.
    pub fn fetch_content(&self) -> Result<(), Error> {
        self.begin(&NamedRequest::new("fetch"))
    }

    /// Begins to send the content of the call's snapshot to the host.
    pub fn send_content(&self) -> Result<(), Error> {
        self.begin(&NamedRequest::new("send"))
    }

    fn begin(&self, transfer: &NamedRequest) -> Result<(), Error> {
        transfer
            .begin_transfer(self.engine)
            .map_err(|error| match error {
                // The node has reached its limit of transfers, or nothing is offered or taken; nothing was sent.
                EngineError::Unreachable(_) => Error::RetryLater(TURN_MS),
                other => other.into(),
            })
    }

    /// Reads the state of the transfer of the call.
    pub fn transfer(&self) -> Result<Moving, Error> {
        Ok(match self.engine.transfer_state()? {
            None => Moving::Nothing,
            Some(JobState::Running(line)) => Moving::Under(line),
            Some(JobState::Done(response)) => Moving::Ended(
                accepted(EngineAnswer {
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
