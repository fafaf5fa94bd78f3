//! Transfers of content between images and the host.

use super::{Api, Refusal, Reply};
use wharf_guest::NamedRequest;
use wharf_guest::{EngineAnswer, EngineError, Error, JobState};

/// Delay before another attempt to begin, ms.
const TURN_MS: u32 = 2_000;

/// The state of a transfer.
#[derive(Debug)]
pub enum Moving {
    Nothing,
    /// With its progress if known.
    Under(Option<String>),
    Ended(Reply<()>),
}

impl Api<'_> {
    /// Offers the content of an image of the instance.
    pub fn offer_content(&self, image: &str) -> Result<(), Error> {
        self.begin(&NamedRequest::new("offer").with("image", image))
    }

    /// Begins to make an image of the content that is offered.
    pub fn fetch_content(&self, architecture: &str) -> Result<(), Error> {
        self.begin(&NamedRequest::new("fetch").with("architecture", architecture))
    }

    /// Begins to send the content of the image of the snapshot to the host.
    pub fn send_content(&self, image: &str) -> Result<(), Error> {
        self.begin(&NamedRequest::new("send").with("image", image))
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
            Some(JobState::Done(response)) => {
                let answer = EngineAnswer {
                    status: response.status,
                    headers: response.headers,
                    body: response.body,
                };
                Moving::Ended(if answer.is_success() {
                    Ok(())
                } else {
                    Err(Refusal::read(&answer))
                })
            }
            Some(JobState::Failed(error)) => return Err(error.into()),
        })
    }

    /// Ends the transfer, if there is one.
    pub fn end_transfer(&self) -> Result<(), Error> {
        Ok(self.engine.end_transfer()?)
    }
}
