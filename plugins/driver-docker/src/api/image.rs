//! Requests about images.

use super::model::Image;
use super::{Api, Reply, accepted};
use crate::pull::Pull;
use wharf_guest::NamedRequest;
use wharf_guest::{Error, Job};

/// Podman does not answer requests about images while it copies one.
const BUSY_MS: u32 = 60_000;

impl Api<'_> {
    /// Tells the host the size of the blueprint's image, or of that below the snapshot of the call, if that
    /// counts towards the limit of a container's disk. The image's own size would be wrong: Podman includes
    /// its copies for user namespaces.
    pub fn measure_image(&self, is_of_snapshot: bool) -> Result<Reply<()>, Error> {
        let [read, measure] = if is_of_snapshot {
            ["read-snapshot", "measure-snapshot"]
        } else {
            ["read-image", "read-image-history"]
        };
        let image: Reply<Image> = self.read(&NamedRequest::new(read).timeout_ms(BUSY_MS))?;
        match image {
            Ok(image) if image.is_counted() => {
                self.send(&NamedRequest::new(measure).timeout_ms(BUSY_MS))
            }
            Ok(_) => Ok(Ok(())),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// Reads an image, if the engine has it.
    pub fn find_image(&self, reference: &str) -> Result<Reply<Image>, Error> {
        let call = NamedRequest::new("find-image").with("image", reference);
        self.read(&call.timeout_ms(BUSY_MS))
    }

    /// Starts the pull of the blueprint's image, or reports its state.
    pub fn pull(&self, image: &str) -> Result<Pull, Error> {
        let tag = (!has_version(image)).then_some("latest");
        let request = NamedRequest::new("pull-image").with_some("tag", tag);
        Ok(match request.job(self.engine)? {
            Job::Running(line) => Pull::running(line.as_deref()),
            Job::Done(answer) => match accepted(answer) {
                Ok(answer) => Pull::ended(&answer.body),
                Err(refusal) => Pull::Failed(refusal.message.clone()),
            },
        })
    }
}

/// Whether the name of an image has a tag or a digest.
fn has_version(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or(image);
    name.contains([':', '@'])
}

#[cfg(test)]
mod tests {
    use super::has_version;

    #[test]
    fn a_port_is_no_tag() {
        for (image, wanted) in [
            ("tools", false),
            ("registry.example:5000/team/tools", false),
            ("registry.example:5000/team/tools:1", true),
            ("tools@sha256:00", true),
        ] {
            assert_eq!(has_version(image), wanted, "{image}");
        }
    }
}
