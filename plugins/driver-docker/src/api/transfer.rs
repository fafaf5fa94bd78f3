//! Transfers of all content of a container or a volume, to another container or between it and the host.

use super::{Api, Reply, accepted};
use wharf_guest::{Error, Moving, NamedRequest};

/// Delay before another attempt to begin, ms.
const TURN_MS: u32 = 2000;

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

    /// Begins to send the content of the call's volume to the host.
    pub fn send_volume_content(&self) -> Result<(), Error> {
        self.begin(&NamedRequest::new("send-volume"))
    }

    /// Begins the transfer of the content that is offered for the call's volume.
    pub fn fetch_volume_content(&self) -> Result<(), Error> {
        self.begin(&NamedRequest::new("fetch-volume"))
    }

    fn begin(&self, transfer: &NamedRequest) -> Result<(), Error> {
        transfer.transfer(self.engine, TURN_MS)
    }

    /// Reads the state of the transfer of the call.
    pub fn transfer(&self) -> Result<Moving<Reply<()>>, Error> {
        Moving::state(self.engine, |answer| accepted(answer).map(drop))
    }

    /// Ends the transfer, if there is one.
    pub fn end_transfer(&self) -> Result<(), Error> {
        Ok(self.engine.end_transfer()?)
    }
}
