//! Content that moves between engines without a common cluster, or comes from a backup.

use super::api::Route;
use super::machine::{Content, Machine, MachineSpec};
use super::{SimulatedEngine, now};
use serde_json::{Value, json};
use uuid::Uuid;

/// Delay of a call about content that is on its way, ms.
const AGAIN_MS: u64 = 20;

impl SimulatedEngine {
    /// `GET /instances/ID/content`
    pub(super) fn content(&self, route: &Route<'_>, id: Uuid) -> (u16, Value) {
        let incarnation = route.parameter("incarnation").and_then(|n| n.parse().ok());
        let world = self.own.world();
        let machine = world.machine(id);
        let machine = machine.filter(|machine| incarnation == Some(machine.wanted.incarnation));
        match machine {
            None => (404, json!({ "message": "no such instance" })),
            Some(machine) if machine.runs() => (409, json!({ "message": "it runs" })),
            Some(machine) => (200, json!(machine)),
        }
    }

    /// `POST /instances/ID/fetch`: the machine is made once its content has come.
    pub(super) fn fetch(&self, route: &Route<'_>, id: Uuid) -> (u16, Value) {
        let wanted: MachineSpec = match serde_json::from_value(route.body.clone()) {
            Ok(wanted) => wanted,
            Err(error) => return (400, json!({ "message": error.to_string() })),
        };
        match self.own.world().machine(id) {
            None => {}
            Some(machine) if machine.wanted.incarnation == wanted.incarnation => {
                return (200, machine.report(now()));
            }
            // A failed move has left it, and it is removed soon.
            Some(_) => return (503, json!({ "retry_ms": AGAIN_MS })),
        }
        self.fetched.lock().insert(id, wanted);
        let progress = json!({ "phase": "elsewhere", "detail": "copying", "again_ms": AGAIN_MS });
        (200, progress)
    }

    /// `PUT /instances/ID/content`
    pub(super) fn receive(&self, route: &Route<'_>, id: Uuid) -> (u16, Value) {
        let content: Content = match serde_json::from_value(route.body.clone()) {
            Ok(content) => content,
            Err(error) => return (400, json!({ "message": error.to_string() })),
        };
        let Some(wanted) = self.fetched.lock().remove(&id) else {
            return (404, json!({ "message": "no such instance" }));
        };
        let machine = Machine::with(content, wanted);
        let refusal = self.own.world().adopt(id, machine);
        refusal.unwrap_or((200, Value::Null))
    }
}
