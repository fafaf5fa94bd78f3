//! Transfers of content between images and the host.

use super::{Api, Refusal, Reply};
use wharf_guest::{Error, Moving, NamedRequest};

/// Delay before another attempt to begin, ms.
const TURN_MS: u32 = 2_000;

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
        transfer.transfer(self.engine, TURN_MS)
    }

    /// Reads the state of the transfer of the call.
    pub fn transfer(&self) -> Result<Moving<Reply<()>>, Error> {
        Moving::state(self.engine, |answer| {
            if answer.is_success() {
                Ok(())
            } else {
                Err(Refusal::read(&answer))
            }
        })
    }

    /// Ends the transfer, if there is one.
    pub fn end_transfer(&self) -> Result<(), Error> {
        Ok(self.engine.end_transfer()?)
    }
}
