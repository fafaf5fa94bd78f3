//! A simulated engine inside this process, for tests, demos and load tests.
//!
//! Its containers and virtual machines have sizes, ports, addresses and states, and its HTTP
//! semantics are those of a real engine. The node's `settings` define latencies and failures.

mod api;
mod cluster;
mod content;
mod dice;
mod journal;
mod machine;
mod room;
mod settings;
mod snapshots;
#[cfg(test)]
mod tests;
mod volumes;
mod world;

use api::{Call, Route};
use cluster::Member;
use dice::Dice;
use journal::{Journal, StoreContent};
use machine::{Machine, MachineSpec, Millis, StartOutcome};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use settings::{Fault, FaultRule, Settings};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;
use wharf_engine::{EngineError, EngineResponse, InProcessEngine, Outgoing};
use world::World;

/// A time longer than any call's timeout.
const FOREVER: Duration = Duration::from_secs(3600);

/// An error in the setup of a simulated engine.
#[derive(Debug, thiserror::Error)]
pub enum SimulatedError {
    /// The node's settings are not valid.
    #[error("settings")]
    Settings(#[source] serde_json::Error),
    /// The state file cannot be read or written.
    #[error("endpoint: cannot use the simulated engine's file {path}", path = path.display())]
    File {
        path: std::path::PathBuf,
        source: std::io::Error,
    },
}

/// The simulated engine of one node.
#[derive(Debug)]
pub struct SimulatedEngine {
    settings: Settings,
    dice: Dice,
    own: Arc<Member>,
    /// The other store, in memory.
    other: Mutex<World>,
    /// The name of its cluster.
    cluster: Option<String>,
    /// The times at which moves of machines to this node began.
    moves: Mutex<BTreeMap<Uuid, Millis>>,
    /// Machines whose content is to come.
    fetched: Mutex<BTreeMap<Uuid, MachineSpec>>,
}

impl SimulatedEngine {
    /// Creates an empty engine, or restores the engine from a file. Machines move between the engines of
    /// one cluster.
    pub fn open(
        settings: &Value,
        file: Option<&Path>,
        cluster: Option<&str>,
    ) -> Result<Self, SimulatedError> {
        let settings = Settings::read(settings).map_err(SimulatedError::Settings)?;
        let (journal, kept) = match file {
            Some(path) => Journal::open(path).map_err(|source| SimulatedError::File {
                path: path.to_owned(),
                source,
            })?,
            None => (Journal::nowhere(), StoreContent::default()),
        };
        let mut world = World::new(&settings, journal, kept);
        if file.is_none() {
            world.keep_constant_mark();
        }
        Ok(Self {
            dice: Dice::new(settings.seed),
            other: Mutex::new(World::new(
                &settings,
                Journal::nowhere(),
                StoreContent::default(),
            )),
            own: Member::join(world, &settings, cluster),
            cluster: cluster.map(str::to_owned),
            moves: Mutex::default(),
            fetched: Mutex::default(),
            settings,
        })
    }

    /// Responds to a request, with the latency and the faults of the settings.
    async fn respond(&self, outgoing: &Outgoing) -> Result<EngineResponse, EngineError> {
        let Some(route) = Route::of(outgoing) else {
            return Ok(no_such_path());
        };
        if exists(self.settings.unreachable_while.as_deref()) {
            return Err(EngineError::Unreachable("simulated".into()));
        }
        if exists(self.settings.silent_while.as_deref()) {
            tokio::time::sleep(FOREVER).await;
            return Err(EngineError::Timeout);
        }
        let nth = self.dice.count(route.call);
        let latency = self
            .settings
            .latency_ms
            .pick(self.dice.roll(route.call, nth));
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        if matches!(route.call, Call::Receive | Call::ReceiveVolume) {
            tokio::time::sleep(Duration::from_millis(self.settings.move_ms)).await;
        }
        let rule = self.rule(&route, nth);
        let answer = match rule.map(|rule| (rule.error, rule.after_ms)) {
            None => self.answer(&route, StartOutcome::Lives),
            Some((Fault::Failed, _)) => self.answer(&route, StartOutcome::Fails),
            Some((Fault::Dies, after_ms)) => {
                self.answer(&route, StartOutcome::Dies(after_ms.into()))
            }
            Some((Fault::Late, after_ms)) => {
                tokio::time::sleep(Duration::from_millis(after_ms.into())).await;
                self.answer(&route, StartOutcome::Lives)
            }
            Some((Fault::Unreachable, _)) => {
                return Err(EngineError::Unreachable("simulated".into()));
            }
            Some((Fault::Lost, _)) => {
                self.answer(&route, StartOutcome::Lives);
                return Err(EngineError::Unreachable(
                    "simulated: the response was lost".into(),
                ));
            }
            Some((Fault::Timeout, _)) => {
                self.answer(&route, StartOutcome::Lives);
                tokio::time::sleep(FOREVER).await;
                return Err(EngineError::Timeout);
            }
            Some((Fault::Error, _)) => response(500, &json!({ "message": "simulated failure" })),
            Some((Fault::Unsupported, _)) => response(501, &json!({ "message": "simulated" })),
            Some((Fault::Full, _)) => match route.id {
                Some(id) => {
                    let (status, body) = self.locked().keeps_its_disk(id);
                    response(status, &body)
                }
                None => no_such_path(),
            },
            Some((Fault::Partly, after_ms)) => {
                let moved =
                    json!({ "phase": "growing", "detail": "3.5 GiB", "again_ms": after_ms });
                response(200, &moved)
            }
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

    fn answer(&self, route: &Route<'_>, outcome: StartOutcome) -> EngineResponse {
        if let Some(id) = route.id
            && !route.is_of_kept()
            && let Some((status, body)) = self.answer_for_cluster(route, id)
        {
            return response(status, &body);
        }
        if let (Call::Content | Call::Changes | Call::Fetch | Call::Receive, Some(id)) =
            (route.call, route.id)
        {
            let (status, body) = match route.call {
                Call::Content => self.content(route, id),
                Call::Fetch => self.fetch(route, id),
                Call::Receive => self.receive(route, id),
                _ => (200, json!([])),
            };
            return response(status, &body);
        }
        let mut world = self.locked();
        if let Some(installation) = route.installation {
            let (status, body) = match route.call {
                Call::Mark => world.set_mark(installation, &route.body),
                _ => (200, json!(world.mark(installation))),
            };
            return response(status, &body);
        }
        let (status, body) = match (route.call, route.id) {
            (Call::Probe, _) => (200, world.info(&self.settings)),
            (Call::ProveLimits, _) => {
                let broken = exists(self.settings.break_limits_while.as_deref());
                (200, json!(broken.then_some("simulated breach")))
            }
            _ if route.is_of_volumes() => {
                world.act_on_volumes(route, &self.settings, outcome, now())
            }
            _ if route.is_of_kept() => {
                world.act_on_snapshots(route, &self.settings, outcome, now())
            }
            // Serialize a list without a `Value`: it has thousands of rows and is read often.
            (Call::List, _) => return response(200, &world.list(route, now())),
            (_, Some(id)) => world.act(route, id, &self.settings, outcome, now()),
            (_, None) => return no_such_path(),
        };
        response(status, &body)
    }

    /// Responds to a call about a machine of another member, or one that several members have to do with.
    /// None if it is a call for this engine alone.
    fn answer_for_cluster(&self, route: &Route<'_>, id: Uuid) -> Option<(u16, Value)> {
        let others = match &self.cluster {
            Some(cluster) => self.own.others_with(cluster, id),
            None => Vec::new(),
        };
        let is_here = self.own.world().machine(id).is_some();
        match route.call {
            Call::Delete => {
                let incarnation = route.parameter("incarnation").and_then(|n| n.parse().ok());
                for other in &others {
                    other.world().delete(id, incarnation);
                }
                Some(self.locked().delete(id, incarnation))
            }
            Call::MoveHere => Some(self.move_here(route, id, &others)),
            Call::Ensure => None,
            _ if is_here => None,
            call => {
                let mut other = others.first()?.world();
                Some(match call {
                    Call::Stop => other.act(route, id, &self.settings, StartOutcome::Lives, now()),
                    _ => (
                        200,
                        json!({ "phase": "elsewhere", "detail": "another node of the cluster" }),
                    ),
                })
            }
        }
    }

    /// `POST /instances/ID/move-here`
    fn move_here(&self, route: &Route<'_>, id: Uuid, others: &[Arc<Member>]) -> (u16, Value) {
        let wanted: MachineSpec = match serde_json::from_value(route.body.clone()) {
            Ok(wanted) => wanted,
            Err(error) => return (400, json!({ "message": error.to_string() })),
        };
        let moved = |machine: &Machine| machine.wanted.incarnation == wanted.incarnation;
        let is_here = self.own.world().machine(id).is_some_and(moved);
        if is_here {
            // An earlier call may have ended before it removed the machine there.
            for other in others {
                other.world().delete(id, Some(wanted.incarnation));
            }
            return self.report(id);
        }
        let Some(source) = others
            .iter()
            .find(|other| other.world().machine(id).is_some_and(moved))
        else {
            return (200, json!({ "phase": "absent" }));
        };
        if source.is_away() {
            return (500, json!({ "message": "the machine's node is offline" }));
        }
        let Some(machine) = source.world().machine(id).cloned() else {
            return (200, json!({ "phase": "absent" }));
        };
        if machine.runs() {
            return (200, machine.report(now()));
        }
        let mut moves = self.moves.lock();
        let begun = *moves.entry(id).or_insert_with(now);
        let left = (begun + self.settings.move_ms).saturating_sub(now());
        if left > 0 {
            let progress = json!({ "phase": "elsewhere", "detail": "moving", "again_ms": left });
            return (200, progress);
        }
        moves.remove(&id);
        let size = machine.wanted.size;
        let machine = Machine {
            wanted: MachineSpec { size, ..wanted },
            ..machine
        };
        // The copy comes first, so that a crash in between loses nothing.
        if let Some(refusal) = self.own.world().adopt(id, machine) {
            return refusal;
        }
        for other in others {
            other.world().delete(id, None);
        }
        self.report(id)
    }

    fn report(&self, id: Uuid) -> (u16, Value) {
        match self.own.world().machine(id) {
            Some(machine) => (200, machine.report(now())),
            None => (200, json!({ "phase": "absent" })),
        }
    }

    fn locked(&self) -> parking_lot::MutexGuard<'_, World> {
        if exists(self.settings.other_store_while.as_deref()) {
            self.other.lock()
        } else {
            self.own.world()
        }
    }
}

impl InProcessEngine for SimulatedEngine {
    fn send<'a>(
        &'a self,
        outgoing: &'a Outgoing,
    ) -> Pin<Box<dyn Future<Output = Result<EngineResponse, EngineError>> + Send + 'a>> {
        Box::pin(self.respond(outgoing))
    }
}

fn exists(file: Option<&Path>) -> bool {
    file.is_some_and(Path::exists)
}

fn now() -> Millis {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
}

fn no_such_path() -> EngineResponse {
    response(404, &json!({ "message": "no such path" }))
}

fn response(status: u16, body: &impl Serialize) -> EngineResponse {
    EngineResponse {
        status,
        headers: vec![("content-type".into(), "application/json".into())],
        // Serialization cannot fail, since all map keys are strings.
        body: serde_json::to_vec(body).unwrap_or_default().into(),
    }
}
