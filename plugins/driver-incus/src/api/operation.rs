//! Changes that the engine carries out in the background.

use super::model::{Accepted, Operation};
use super::{Api, Refusal, Reply};
use std::collections::BTreeMap;
use wharf_guest::NamedRequest;
use wharf_guest::{EngineAnswer, Error};

/// The time limit of a wait, after which the engine answers sooner, ms.
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

/// Whether the engine makes an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Making {
    Nothing,
    Goes,
    /// It has failed to make one seconds ago.
    Failed(String),
}

/// The description of the operations that make images.
const IMAGE: &str = "Downloading image";
/// The engine has not carried out the operation.
const FAILED: u16 = 400;

impl Api<'_> {
    /// Sends a request that starts an operation, and waits for its end, at most `rounds` times.
    pub(super) fn operate(
        &self,
        request: &NamedRequest,
        rounds: u32,
    ) -> Result<Reply<Outcome>, Error> {
        let answer = match self.accepted(request)? {
            Ok(answer) => answer,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(id) = id(&answer)? else {
            // The engine has carried out the request at once.
            return Ok(Ok(Outcome::Done));
        };
        for _ in 0..rounds {
            let wait = NamedRequest::new("wait").with("operation", &id);
            match self.read::<Operation>(&wait.timeout_ms(WAIT_MS))? {
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

    /// Whether a member makes an image, of whatever.
    pub fn making(&self, member: &str) -> Result<Reply<Making>, Error> {
        let listed = self.get::<BTreeMap<String, Option<Vec<Operation>>>>("operations")?;
        Ok(listed.map(|by_status| {
            let all = by_status.into_values().flatten().flatten();
            let all = all.filter(|one| one.description == IMAGE && one.location == member);
            let mut state = Making::Nothing;
            for operation in all {
                if RUNNING.contains(&operation.status_code) {
                    return Making::Goes;
                }
                if operation.status_code == FAILED {
                    state = Making::Failed(operation.err);
                }
            }
            state
        }))
    }

    /// Whether an operation of this instance is in progress.
    pub fn is_operated(&self, name: &str) -> Result<Reply<bool>, Error> {
        let listed = self.get::<BTreeMap<String, Option<Vec<Operation>>>>("operations")?;
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
fn id(answer: &EngineAnswer) -> Result<Option<String>, Error> {
    let accepted: Accepted = answer.json()?;
    let path = accepted.operation.split('?').next().unwrap_or_default();
    Ok(path
        .strip_prefix("/1.0/operations/")
        .map(str::to_owned)
        .filter(|id| !id.is_empty()))
}
