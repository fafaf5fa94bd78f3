//! The simulated engine, within this process. It has containers and virtual machines with sizes, ports,
//! addresses and states, and speaks HTTP like a real engine. Tests, demos and load tests run on it.
//! Latencies and failures come from the node's `settings`.

mod api;
mod dice;
mod journal;
mod machine;
mod room;
mod settings;
#[cfg(test)]
mod tests;
mod world;

use super::message::{EngineError, Response};
use super::transport::Outgoing;
use api::{Call, Route};
use dice::Dice;
use journal::Journal;
use machine::{Fate, Millis};
use serde::Serialize;
use serde_json::{Value, json};
use settings::{Fault, FaultRule, Settings};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use world::World;

/// A time longer than the timeout of any call.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// An error in the configuration of a simulated engine.
#[derive(Debug, thiserror::Error)]
pub enum SimulatedError {
    /// In a setting of the node.
    #[error("settings: {0}")]
    Settings(#[source] serde_json::Error),
    /// In the file of the state.
    #[error("endpoint: the simulated engine's file {path}: {source}", path = path.display())]
    File {
        /// Its path.
        path: std::path::PathBuf,
        /// The error.
        source: std::io::Error,
    },
}

/// One node's simulated engine.
#[derive(Debug)]
pub struct SimulatedEngine {
    settings: Settings,
    dice: Dice,
    world: Mutex<World>,
}

impl SimulatedEngine {
    /// An empty engine, or the one that the file describes.
    pub fn open(settings: &Value, file: Option<&Path>) -> Result<Self, SimulatedError> {
        let settings = Settings::read(settings).map_err(SimulatedError::Settings)?;
        let (journal, machines) = match file {
            Some(path) => Journal::open(path).map_err(|source| SimulatedError::File {
                path: path.to_owned(),
                source,
            })?,
            None => (Journal::nowhere(), Vec::new()),
        };
        let world = World::new(&settings, journal, machines);
        Ok(Self {
            dice: Dice::new(settings.seed),
            settings,
            world: Mutex::new(world),
        })
    }

    /// Answers one request, with the latency and the faults of the settings.
    pub async fn send(&self, outgoing: &Outgoing) -> Result<Response, EngineError> {
        let Some(route) = Route::of(outgoing) else {
            return Ok(no_such_path());
        };
        let nth = self.dice.count(route.call);
        let latency = self
            .settings
            .latency_ms
            .pick(self.dice.roll(route.call, nth));
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let rule = self.rule(&route, nth);
        let answer = match rule.map(|rule| (rule.error, rule.after_ms)) {
            None => self.answer(&route, Fate::Lives),
            Some((Fault::Failed, _)) => self.answer(&route, Fate::Fails),
            Some((Fault::Dies, after_ms)) => self.answer(&route, Fate::Dies(after_ms.into())),
            Some((Fault::Late, after_ms)) => {
                tokio::time::sleep(Duration::from_millis(after_ms.into())).await;
                self.answer(&route, Fate::Lives)
            }
            Some((Fault::Unreachable, _)) => {
                return Err(EngineError::Unreachable("simulated".into()));
            }
            Some((Fault::Lost, _)) => {
                self.answer(&route, Fate::Lives);
                return Err(EngineError::Unreachable(
                    "simulated: the answer was lost".into(),
                ));
            }
            Some((Fault::Timeout, _)) => {
                self.answer(&route, Fate::Lives);
                tokio::time::sleep(FOR_EVER).await;
                return Err(EngineError::Timeout);
            }
            Some((Fault::Error, _)) => response(500, &json!({ "message": "simulated failure" })),
            Some((Fault::Full, _)) => match route.id {
                Some(id) => {
                    let (status, body) = self.locked().keeps_its_disk(id);
                    response(status, &body)
                }
                None => no_such_path(),
            },
            Some((Fault::Retry, after_ms)) => response(503, &json!({ "retry_ms": after_ms })),
        };
        Ok(answer)
    }

    fn rule(&self, route: &Route<'_>, nth: u64) -> Option<&FaultRule> {
        let hostname = || {
            let asked = route
                .body
                .get("hostname")
                .and_then(Value::as_str)
                .map(str::to_owned);
            asked.or_else(|| self.locked().hostname(route.id?))
        };
        self.settings
            .faults
            .iter()
            .find(|rule| rule.hits(route.call, nth, &hostname))
    }

    fn answer(&self, route: &Route<'_>, fate: Fate) -> Response {
        let mut world = self.locked();
        let (status, body) = match (route.call, route.id) {
            (Call::Probe, _) => (200, world.info(&self.settings)),
            // Serialised without a `Value`: lists are frequent and may have thousands of rows.
            (Call::List, _) => return response(200, &world.list(route, now())),
            (call, Some(id)) => world.act(call, id, &route.body, &self.settings, fate, now()),
            (_, None) => return no_such_path(),
        };
        response(status, &body)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> Millis {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
}

fn no_such_path() -> Response {
    response(404, &json!({ "message": "no such path" }))
}

fn response(status: u16, body: &impl Serialize) -> Response {
    Response {
        status,
        headers: vec![("content-type".into(), "application/json".into())],
        // All keys are strings, so this does not fail.
        body: serde_json::to_vec(body).unwrap_or_default().into(),
    }
}
