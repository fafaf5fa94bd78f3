//! Requests to `/containers`.

use super::model::{Details, Resident, Stats, Summary};
use super::{Api, Reply, accepted};
use crate::create_body::{Creation, Update};
use serde::Serialize;
use serde_json::json;
use wharf_guest::{Call, Error, File, Path};

/// Time for the engine to kill and clean up after the grace of a stop, ms.
const STOP_MARGIN_MS: u32 = 20_000;
/// The engine serializes creations and starts, so dozens at once are slow. After an early timeout
/// it would finish the work anyway, and the driver would request it again.
const BUSY_MS: u32 = 60_000;
/// Unpacking an archive and removing a container's disk are slow, ms.
const DISK_WORK_MS: u32 = 30_000;

impl Api<'_> {
    fn container(&self, name: &str) -> Path {
        self.path("/containers").segment(name)
    }

    /// Creates a container.
    pub fn create(&self, name: &str, body: &Creation) -> Result<Reply<()>, Error> {
        let path = self.path("/containers/create").query("name", name);
        self.send(&Call::post(&path).json(body)?.timeout_ms(BUSY_MS))
    }

    /// Creates a container through Podman's own interface.
    pub fn create_libpod<T: Serialize>(&self, body: &T) -> Result<Reply<()>, Error> {
        let path = self.libpod("/containers/create");
        self.send(&Call::post(&path).json(body)?.timeout_ms(BUSY_MS))
    }

    /// Reads a container. The size of its writable layer costs a walk, so it is optional.
    pub fn details(&self, name: &str, size: bool) -> Result<Reply<Details>, Error> {
        let path = self.container(name).segment("json");
        self.get(&if size {
            path.query("size", "true")
        } else {
            path
        })
    }

    /// Lists all containers with these labels, running or not.
    pub fn containers(&self, labels: &[(&str, &str)]) -> Result<Reply<Vec<Summary>>, Error> {
        let labels: Vec<_> = labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let filters = json!({ "label": labels }).to_string();
        let path = self
            .path("/containers/json")
            .query("all", "true")
            .query("filters", &filters);
        self.get(&path)
    }

    /// Lists the running containers of an installation that have a label with any value.
    pub fn running_with(
        &self,
        (owner, installation): (&str, &str),
        label: &str,
    ) -> Result<Reply<Vec<Summary>>, Error> {
        let labels = [format!("{owner}={installation}"), label.to_owned()];
        let filters = json!({ "label": labels, "status": ["running"] }).to_string();
        let path = self.path("/containers/json").query("filters", &filters);
        self.get(&path)
    }

    /// Reads a small file of a container.
    pub fn file(&self, name: &str, file: &str) -> Result<Reply<String>, Error> {
        let path = self.container(name).segment("archive").query("path", file);
        let answer = accepted(Call::get(&path).send(self.engine)?);
        Ok(answer.map(|answer| first_file(&answer.body)))
    }

    /// Unpacks files into a container.
    pub fn unpack(&self, name: &str, files: &[File]) -> Result<Reply<()>, Error> {
        let path = self.container(name).segment("archive").query("path", "/");
        self.send(&Call::put(&path).archive(files).timeout_ms(DISK_WORK_MS))
    }

    /// Starts a container. Success if it runs already.
    pub fn start(&self, name: &str) -> Result<Reply<()>, Error> {
        let path = self.container(name).segment("start");
        self.send(&Call::post(&path).timeout_ms(BUSY_MS))
    }

    /// Stops a container within the grace, then by force. Success if it is stopped already.
    pub fn stop(&self, name: &str, grace_ms: u32) -> Result<Reply<()>, Error> {
        let seconds = grace_ms.div_ceil(1_000).to_string();
        let path = self.container(name).segment("stop").query("t", &seconds);
        self.send(&Call::post(&path).timeout_ms(grace_ms.saturating_add(STOP_MARGIN_MS)))
    }

    /// Renames a container.
    pub fn rename(&self, name: &str, to: &str) -> Result<Reply<()>, Error> {
        let path = self.container(name).segment("rename").query("name", to);
        self.send(&Call::post(&path))
    }

    /// Removes a container with its anonymous volumes.
    pub fn remove(&self, name: &str) -> Result<Reply<()>, Error> {
        let path = self
            .container(name)
            .query("force", "true")
            .query("v", "true");
        self.send(&Call::delete(&path).timeout_ms(DISK_WORK_MS))
    }

    /// Changes a container's limits.
    pub fn update(&self, name: &str, body: &Update) -> Result<Reply<()>, Error> {
        self.send(&Call::post(&self.container(name).segment("update")).json(body)?)
    }

    /// Changes the limits of a running container through Podman's own interface.
    pub fn update_libpod<T: Serialize>(&self, name: &str, body: &T) -> Result<Reply<()>, Error> {
        let path = self.libpod("/containers").segment(name).segment("update");
        self.send(&Call::post(&path).json(body)?)
    }

    /// Reads one sample of a container's usage.
    pub fn stats(&self, name: &str) -> Result<Reply<Stats>, Error> {
        let path = self.container(name).segment("stats");
        self.get(&path.query("stream", "false").query("one-shot", "true"))
    }

    /// Reads the resident memory of each process, with Podman's form of `ps_args`.
    pub fn resident(&self, name: &str) -> Result<Reply<Resident>, Error> {
        let path = self.container(name).segment("top");
        self.get(&path.query("ps_args", "rss"))
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
