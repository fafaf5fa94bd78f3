//! Requests to `/images`.

use super::model::{Image, Layer};
use super::{Api, Reply, accepted};
use crate::pull::Pull;
use wharf_guest::{Call, Error, Job};

/// Podman does not answer requests about images while it copies one.
const BUSY_MS: u32 = 60_000;

impl Api<'_> {
    /// Returns the bytes of an image that count towards the limit of a container's disk, on storage that
    /// counts them.
    pub fn counted_of(&self, reference: &str) -> Result<Reply<Option<u64>>, Error> {
        let path = |what| self.path(&format!("/images/{reference}/{what}"));
        let image: Image = match self.read(&Call::get(&path("json")).timeout_ms(BUSY_MS))? {
            Ok(image) => image,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if !image.is_counted() {
            return Ok(Ok(None));
        }
        // The image's own size would be wrong: Podman includes its copies for user namespaces.
        let layers: Reply<Vec<Layer>> =
            self.read(&Call::get(&path("history")).timeout_ms(BUSY_MS))?;
        Ok(layers.map(|layers| Some(layers.iter().map(Layer::bytes).sum())))
    }

    /// Asks for an image. Success if the engine has it.
    pub fn has_image(&self, reference: &str) -> Result<Reply<()>, Error> {
        let path = self.path(&format!("/images/{reference}/json"));
        self.send(&Call::get(&path).timeout_ms(BUSY_MS))
    }

    /// Starts the pull of an image, or reports its state.
    pub fn pull(&self, reference: &str) -> Result<Pull, Error> {
        let path = self.path("/images/create").query("fromImage", reference);
        let job = Call::post(&path).job(self.engine, &format!("pull:{reference}"))?;
        Ok(match job {
            Job::Running(line) => Pull::running(line.as_deref()),
            Job::Done(answer) => match accepted(answer) {
                Ok(answer) => Pull::ended(&answer.body),
                Err(refusal) => Pull::Failed(refusal.message),
            },
        })
    }
}
