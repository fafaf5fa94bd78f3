//! Requests about containers.

use super::model::{Details, Limits, Resident, Stats, Summary};
use super::{Api, Reply, accepted};
use crate::network::Which;
use wharf_guest::Error;
use wharf_guest::NamedRequest;

/// Time for the engine to kill and clean up after the grace of a stop, ms.
const STOP_MARGIN_MS: u32 = 20_000;
/// The engine serializes creations and starts, so dozens at once are slow. After an early timeout
/// it would finish the work anyway, and the driver would request it again.
const BUSY_MS: u32 = 60_000;
/// Unpacking an archive and removing a container's disk are slow, ms.
const DISK_WORK_MS: u32 = 30_000;

/// A request about a container, by its name or id.
fn about(request: &str, container: &str) -> NamedRequest {
    NamedRequest::new(request).with("container", container)
}

impl Api<'_> {
    /// Creates a container, by a request with all of its arguments.
    pub fn create(&self, creation: NamedRequest) -> Result<Reply<()>, Error> {
        self.send(&creation.timeout_ms(BUSY_MS))
    }

    /// Reads a container. The size of its writable layer costs a walk, so it is optional.
    pub fn details(&self, name: &str, size: bool) -> Result<Reply<Details>, Error> {
        self.read(&about("read", name).flag("size", size))
    }

    /// Reads a container with the sizes of its layers, which may be large.
    pub fn measure(&self, name: &str) -> Result<Reply<Details>, Error> {
        self.read(&about("read", name).flag("size", true).timeout_ms(BUSY_MS))
    }

    /// Lists this installation's containers, running or not.
    pub fn containers(&self) -> Result<Reply<Vec<Summary>>, Error> {
        self.read(&NamedRequest::new("list"))
    }

    /// Lists the containers of the call's instance, running or not.
    pub fn containers_of_instance(&self) -> Result<Reply<Vec<Summary>>, Error> {
        self.read(&NamedRequest::new("list-instance"))
    }

    /// Lists the containers on a network, running or not.
    pub fn members(&self, network: Which) -> Result<Reply<Vec<Summary>>, Error> {
        self.read(&network.named("list-members"))
    }

    /// Lists the virtual machines that run.
    pub fn machines(&self) -> Result<Reply<Vec<Summary>>, Error> {
        self.read(&NamedRequest::new("list-machines"))
    }

    /// Lists the running containers with the label of their view, the newest first.
    pub fn views(&self) -> Result<Reply<Vec<Summary>>, Error> {
        self.read(&NamedRequest::new("list-views"))
    }

    /// Reads the accelerator of a virtual machine that has been listed: `kvm` or `tcg`.
    pub fn acceleration(&self, id: &str) -> Result<Reply<String>, Error> {
        let answer = accepted(about("read-acceleration", id).send(self.engine)?);
        Ok(answer.map(|answer| first_file(&answer.body)))
    }

    /// Unpacks the blueprint's files into a container.
    pub fn unpack(&self, name: &str) -> Result<Reply<()>, Error> {
        self.send(&about("write-files", name).timeout_ms(DISK_WORK_MS))
    }

    /// Starts a container. Success if it runs already.
    pub fn start(&self, name: &str) -> Result<Reply<()>, Error> {
        self.send(&about("start", name).timeout_ms(BUSY_MS))
    }

    /// Stops a container within the grace, then by force. Success if it is stopped already.
    pub fn stop(&self, name: &str, grace_ms: u32) -> Result<Reply<()>, Error> {
        let request = about("stop", name).with("grace", grace_ms.div_ceil(1_000));
        self.send(&request.timeout_ms(grace_ms.saturating_add(STOP_MARGIN_MS)))
    }

    /// Gives the complete replacement a name that says so.
    pub fn name_whole(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("name-whole"))
    }

    /// Gives the complete replacement the instance's name.
    pub fn name_own(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("name-own"))
    }

    /// Removes a container with its anonymous volumes.
    pub fn remove(&self, name: &str) -> Result<Reply<()>, Error> {
        self.send(&about("delete", name).timeout_ms(DISK_WORK_MS))
    }

    /// Removes an incomplete replacement.
    pub fn remove_part(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("delete-part").timeout_ms(DISK_WORK_MS))
    }

    /// Creates the carrier of the call's snapshot.
    pub fn create_carrier(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("create-carrier").timeout_ms(BUSY_MS))
    }

    /// Removes it.
    pub fn remove_carrier(&self) -> Result<Reply<()>, Error> {
        self.send(&NamedRequest::new("remove-carrier").timeout_ms(DISK_WORK_MS))
    }

    /// The limits of the call's size.
    pub fn limits(&self) -> Result<Limits, Error> {
        NamedRequest::new("resize").show(self.engine)?.json()
    }

    /// Gives a container the limits of the call's size.
    pub fn resize(&self, name: &str) -> Result<Reply<()>, Error> {
        self.send(&about("resize", name))
    }

    /// Gives a container the limits that it had before this call.
    pub fn resize_back(&self, name: &str) -> Result<Reply<()>, Error> {
        self.send(&about("resize-back", name))
    }

    /// Gives a running container the limits through Podman's own interface.
    pub fn resize_podman(&self, name: &str) -> Result<Reply<()>, Error> {
        self.send(&about("resize-podman", name))
    }

    /// Reads one sample of a container's usage.
    pub fn stats(&self, name: &str) -> Result<Reply<Stats>, Error> {
        self.read(&about("stats", name))
    }

    /// Reads the resident memory of each process.
    pub fn resident(&self, name: &str) -> Result<Reply<Resident>, Error> {
        self.read(&about("memory", name))
    }
}

/// Returns the content of the first file of a tar archive. The header has its size in octal digits.
fn first_file(tar: &[u8]) -> String {
    const BLOCK: usize = 512;
    const SIZE: std::ops::Range<usize> = 124..136;
    let size = tar
        .get(SIZE)
        .and_then(|field| std::str::from_utf8(field).ok());
    let size = size.map(|text| text.trim_matches(|c: char| !c.is_ascii_digit()));
    let size = size.and_then(|digits| usize::from_str_radix(digits, 8).ok());
    let content = tar.get(BLOCK..).unwrap_or_default();
    let content = content.get(..size.unwrap_or(0)).unwrap_or_default();
    String::from_utf8_lossy(content).into_owned()
}

#[cfg(test)]
mod tests {
    use super::first_file;

    #[test]
    fn the_first_file_of_an_archive_is_read() {
        let mut tar = vec![0; 1536];
        tar[..12].copy_from_slice(b"acceleration");
        tar[124..136].copy_from_slice(b"00000000004\0");
        tar[512..516].copy_from_slice(b"kvm\n");
        assert_eq!(first_file(&tar), "kvm\n");
        assert_eq!(first_file(&tar[..514]), "");
        assert_eq!(first_file(b"short"), "");
    }
}
