//! The receivers of webhooks. The path of its URL says how a receiver answers, and a mixed one answers as the seed says.
//! What they were sent must be of the owner of the webhook, and must not be repeated without a pause.

use crate::dice::Dice;
use crate::sim::Outside;
use crate::world::Moment;
use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use uuid::Uuid;
use wharf_domain::ids::InstanceId;
use wharf_domain::time::Timestamp;
use wharf_ground::clock::Clock;
use wharf_hooks::{HookAnswer, HookReceivers, HookRequest};

/// The ways in which receivers answer, as the paths of their URLs.
pub const PATHS: [&str; 6] = [ANSWERS, MIXED, HANGS, FAILS, "/slow", LATE];
pub const ANSWERS: &str = "/answers";
/// It answers in any of the other ways, until there are no more faults.
pub const MIXED: &str = "/mixed";
pub const HANGS: &str = "/hangs";
pub const FAILS: &str = "/fails";
/// It claims a success once Wharf waits no more.
pub const LATE: &str = "/late";

/// The times of those that are slow, and of those that are too late for Wharf's bound of 20 s.
const SLOW: Duration = Duration::from_secs(15);
const TOO_LATE: Duration = Duration::from_secs(25);

/// The shortest pause until a message is repeated.
const PAUSE_MS: i64 = 2_000;
const PAUSE: Duration = Duration::from_millis(PAUSE_MS.unsigned_abs());
/// The pause that a receiver asks for which fails.
const ASKED: Duration = Duration::from_secs(9_000_000);

/// What receivers know.
#[derive(Debug, Default)]
pub struct Received {
    /// The messages whose success Wharf was told of in time.
    pub taken: BTreeSet<String>,
    /// The number of requests to each URL.
    requests: BTreeMap<String, u64>,
    /// The last attempts since a success of the same receiver, in Wharf's time and in that of the world.
    last: BTreeMap<String, BTreeMap<String, (Timestamp, Moment)>>,
    /// There are no more faults.
    pub is_calm: bool,
}

impl Received {
    /// Wharf has ended, and may have lost results.
    pub fn forget_attempts(&mut self) {
        self.last.clear();
    }
}

/// The receivers, as a process of Wharf reaches them.
pub struct SimReceivers {
    outside: Arc<Outside>,
    clock: Clock,
    received: Arc<Mutex<Received>>,
}

impl SimReceivers {
    pub fn new(outside: &Arc<Outside>, clock: Clock) -> Self {
        Self {
            outside: Arc::clone(outside),
            clock,
            received: Arc::clone(&outside.received),
        }
    }

    /// Notes a request. Returns its number among those to its URL.
    fn note(&self, request: &HookRequest) -> Result<u64, String> {
        let url = request.url.to_string();
        let (now, moment) = (self.clock.now(), self.outside.time.now());
        let mut received = self.received.lock();
        let number = received.requests.entry(url.clone()).or_default();
        *number += 1;
        let number = *number;
        let attempts = received.last.entry(url).or_default();
        let before = attempts.insert(request.id.clone(), (now, moment));
        // The operator may set Wharf's time forward or back during a pause.
        let has_paused = before.is_none_or(|(before, at)| {
            now.0 - before.0 >= PAUSE_MS || moment.saturating_sub(at) >= PAUSE
        });
        has_paused
            .then_some(number)
            .ok_or_else(|| format!("{}: {} is repeated at once", request.url, request.id))
    }

    /// Whether a message is about something of the user whose webhook it is.
    fn check_owner(&self, request: &HookRequest) -> Result<(), String> {
        let body: serde_json::Value =
            serde_json::from_slice(&request.body).map_err(|error| error.to_string())?;
        let id = |field: &str| {
            let text = body.get("data")?.get(field)?.as_str()?;
            Uuid::parse_str(text).ok().map(InstanceId)
        };
        let Some(id) = id("instance").or_else(|| id("volume")) else {
            return Ok(());
        };
        let model = self.outside.model.lock();
        let now = self.outside.time.now();
        model.is_for_its_owner(request.url.as_str(), id, now)
    }

    /// The way of the answer to a request.
    fn path(&self, request: &HookRequest, number: u64) -> &'static str {
        let mut paths = PATHS.into_iter();
        let path = paths.find(|path| *path == request.url.path());
        let path = path.unwrap_or(ANSWERS);
        if path != MIXED {
            return path;
        }
        if self.received.lock().is_calm {
            return ANSWERS;
        }
        let mut dice = Dice::of_part(self.outside.seed, &format!("{} {number}", request.url));
        let path = dice.pick(&PATHS).copied().unwrap_or(ANSWERS);
        if path == MIXED { ANSWERS } else { path }
    }

    fn take(&self, request: &HookRequest) -> HookAnswer {
        let mut received = self.received.lock();
        received.last.remove(request.url.as_str());
        received.taken.insert(request.id.clone());
        answer(200, None)
    }
}

fn answer(status: u16, retry_after: Option<Duration>) -> HookAnswer {
    HookAnswer {
        status,
        retry_after,
    }
}

#[async_trait]
impl HookReceivers for SimReceivers {
    async fn post(&self, request: HookRequest) -> Result<HookAnswer, &'static str> {
        let noted = self.note(&request);
        let number = *noted.as_ref().unwrap_or(&0);
        let path = self.path(&request, number);
        let of = request.id.rsplit('_').next().unwrap_or_default();
        let host = request.url.host_str().unwrap_or_default();
        let line = format!("request {number} to {host}, with event {of}: {path}");
        self.outside.trace.line("hooks", &line);
        if let Err(why) = noted.and(self.check_owner(&request)) {
            self.outside.failure.set(why);
        }
        let mut dice = Dice::of_part(self.outside.seed, &format!("{host} {number}"));
        sleep(Duration::from_millis(dice.between(3, 60))).await;
        match path {
            HANGS => pending().await,
            FAILS if dice.chance(100) => Ok(answer(503, Some(ASKED))),
            FAILS => Ok(answer(500, None)),
            LATE => {
                sleep(TOO_LATE).await;
                Ok(self.take(&request))
            }
            ANSWERS => Ok(self.take(&request)),
            _ => {
                sleep(SLOW).await;
                Ok(self.take(&request))
            }
        }
    }
}
