//! Changes that the engine carries out in the background.

use super::model::{Accepted, Operation};
use super::{Api, Refusal, Reply};
use std::collections::BTreeMap;
use wharf_guest::{Answer, Call, Error, Path};

/// The time that the engine waits for the end of an operation before it answers, in seconds.
const WAIT_S: u32 = 5;
/// The time limit of that request, ms.
const WAIT_MS: u32 = 15_000;
/// The engine still runs the operation.
const RUNNING: [u16; 4] = [100, 101, 103, 105];

/// The result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It has succeeded.
    Done,
    /// It is in progress, or its end is unknown.
    Unknown,
}

impl Api<'_> {
    /// Sends a request that starts an operation, and waits for its end, at most `rounds` times.
    pub(super) fn operate(&self, call: &Call, rounds: u32) -> Result<Reply<Outcome>, Error> {
        let answer = match self.accepted(call)? {
            Ok(answer) => answer,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(id) = id(&answer)? else {
            // The engine has carried out the request at once.
            return Ok(Ok(Outcome::Done));
        };
        for _ in 0..rounds {
            let path = Path::new("/1.0/operations").segment(&id).segment("wait");
            let path = self.in_project(path.query("timeout", &WAIT_S.to_string()));
            match self.read::<Operation>(&Call::get(&path).timeout_ms(WAIT_MS))? {
                Ok(operation) if RUNNING.contains(&operation.status_code) => {}
                Ok(_) => return Ok(Ok(Outcome::Done)),
                Err(refusal) if refusal.is_still_running() => {}
                // The engine forgets an operation seconds after its end.
                Err(refusal) if refusal.is_not_found() && is_about_operation(&refusal) => break,
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        Ok(Ok(Outcome::Unknown))
    }

    /// Whether an operation of this instance is in progress.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub fn is_operated(&self, name: &str) -> Result<Reply<bool>, Error> {
        let path = self.in_project(Path::new("/1.0/operations"));
        let path = path.query("recursion", "1");
        let listed = self.get::<BTreeMap<String, Option<Vec<Operation>>>>(&path)?;
        Ok(listed.map(|by_status| {
            let mut all = by_status.into_values().flatten().flatten();
            all.any(|operation| {
                let mut paths = operation.resources.values().flatten();
                RUNNING.contains(&operation.status_code) && paths.any(|path| is_of(path, name))
            })
        }))
    }
}

fn is_about_operation(refusal: &Refusal) -> bool {
    refusal
        .message
        .to_lowercase()
        .contains("operation not found")
}

/// `/1.0/instances/NAME?project=P`
fn is_of(path: &str, name: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.rsplit('/').next() == Some(name)
}

/// The id in `/1.0/operations/ID?project=P`; none if there is no operation.
fn id(answer: &Answer) -> Result<Option<String>, Error> {
    let accepted: Accepted = answer.json()?;
    let path = accepted.operation.split('?').next().unwrap_or_default();
    Ok(path
        .strip_prefix("/1.0/operations/")
        .map(str::to_owned)
        .filter(|id| !id.is_empty()))
}
