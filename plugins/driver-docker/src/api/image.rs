//! `/images`

use super::{Api, accepted};
use crate::pull::Pull;
use wharf_guest::{Call, Error, Job};

impl Api<'_> {
    /// Starts the pull of an image, or says where it is.
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
