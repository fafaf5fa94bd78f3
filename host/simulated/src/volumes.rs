//! The volumes of a simulated node.

use super::api::{Call, Route};
use super::machine::{Machine, Millis, SimulatedMount, StartOutcome};
use super::settings::{Settings, VolumeContentSetting};
use super::world::{Answer, World};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// A volume.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SimulatedVolume {
    /// Id of the installation that owns the volume.
    pub installation: String,
    pub size_gib: u32,
    /// Time at which the volume becomes ready; none if it never does.
    #[serde(default)]
    pub ready_at: Option<Millis>,
    /// Whether its content is to come from a backup.
    #[serde(default)]
    pub is_coming: bool,
    /// The volume whose content it has; none if that is its own.
    #[serde(default)]
    pub content_of: Option<Uuid>,
}

/// The content of a volume, as it leaves for a backup.
#[derive(Serialize, Deserialize)]
struct VolumeContent {
    content_of: Uuid,
}

/// Delay of a call about content that is on its way, ms.
const AGAIN_MS: u64 = 20;

/// The body of a request for a volume.
#[derive(Deserialize)]
struct WantedVolume {
    installation: String,
    size_gib: u32,
}

impl SimulatedVolume {
    fn is_ready(&self, now: Millis) -> bool {
        self.ready_at.is_some_and(|at| at <= now)
    }

    /// The state, as the driver reads it.
    fn report(&self, now: Millis) -> Value {
        match self.ready_at {
            None if self.is_coming => json!({ "state": "making", "again_ms": AGAIN_MS }),
            None => json!({ "state": "failed", "detail": "simulated failure" }),
            Some(at) if at > now => json!({ "state": "making", "again_ms": at - now }),
            Some(_) => json!({ "state": "ready" }),
        }
    }
}

impl World {
    /// Responds to a call about volumes.
    pub fn act_on_volumes(
        &mut self,
        route: &Route<'_>,
        settings: &Settings,
        outcome: StartOutcome,
        now: Millis,
    ) -> Answer {
        match (route.call, route.id) {
            (Call::Make | Call::FetchVolume, Some(id)) => {
                self.make(id, route, settings, outcome, now)
            }
            (Call::ReadVolume, Some(id)) => {
                let volume = self.volumes.get(&id);
                let absent = || json!({ "state": "absent" });
                (200, volume.map_or_else(absent, |volume| volume.report(now)))
            }
            (Call::VolumeContent, Some(id)) => self.volume_content(id, settings, now),
            (Call::ReceiveVolume, Some(id)) => self.receive_volume(id, &route.body, now),
            (Call::Unmake, Some(id)) => self.unmake(id),
            _ if super::exists(settings.lose_volumes_while.as_deref()) => (200, json!({})),
            _ => {
                let installation = route.parameter("installation").unwrap_or_default();
                let all = self.volumes.iter();
                let own = all.filter(|(_, volume)| volume.installation == installation);
                let rows: BTreeMap<_, _> =
                    own.map(|(id, volume)| (id, volume.report(now))).collect();
                (200, json!(rows))
            }
        }
    }

    fn make(
        &mut self,
        id: Uuid,
        route: &Route<'_>,
        settings: &Settings,
        outcome: StartOutcome,
        now: Millis,
    ) -> Answer {
        let is_coming = route.call == Call::FetchVolume;
        let wanted: WantedVolume = match serde_json::from_value(route.body.clone()) {
            Ok(wanted) => wanted,
            Err(error) => return (400, json!({ "message": error.to_string() })),
        };
        if !settings.volumes.0 {
            return (501, json!({ "message": "this node makes no volumes" }));
        }
        if let Some(why) = &settings.refuse_volumes {
            return (200, json!({ "state": "failed", "detail": why }));
        }
        if let Some(volume) = self.volumes.get(&id) {
            if volume.size_gib == wanted.size_gib && volume.installation == wanted.installation {
                return (200, volume.report(now));
            }
            return (409, json!({ "message": "it exists with another size" }));
        }
        if let Some(refusal) = self.room.lack_of_disk(wanted.size_gib) {
            return refusal;
        }
        let volume = SimulatedVolume {
            installation: wanted.installation,
            size_gib: wanted.size_gib,
            ready_at: match outcome {
                StartOutcome::Fails => None,
                _ if is_coming => None,
                _ => Some(now.saturating_add(settings.volume_ms)),
            },
            is_coming: is_coming && outcome != StartOutcome::Fails,
            content_of: None,
        };
        let report = volume.report(now);
        if let Err(error) = self.journal.write_volume(id, Some(&volume)) {
            return (500, json!({ "message": error.to_string() }));
        }
        self.room.hold_disk(volume.size_gib);
        self.volumes.insert(id, volume);
        (200, report)
    }

    /// `GET /volumes/ID/content`
    fn volume_content(&self, id: Uuid, settings: &Settings, now: Millis) -> Answer {
        let Some(volume) = self.volumes.get(&id).filter(|one| one.is_ready(now)) else {
            return (404, json!({ "message": "no such volume" }));
        };
        let writes = |(machine, mount): (Uuid, &SimulatedMount)| {
            !mount.read_only && self.machine(machine).is_some_and(Machine::runs)
        };
        match settings.volume_content {
            VolumeContentSetting::None => (501, json!({ "message": "it is not sent" })),
            VolumeContentSetting::AtRest if self.mounts_of(id).any(writes) => {
                (409, json!({ "message": "a machine writes it" }))
            }
            VolumeContentSetting::AtRest | VolumeContentSetting::AtAnyTime => {
                let content_of = volume.content_of.unwrap_or(id);
                (200, json!(VolumeContent { content_of }))
            }
        }
    }

    /// `PUT /volumes/ID/content`
    fn receive_volume(&mut self, id: Uuid, body: &Value, now: Millis) -> Answer {
        let content: VolumeContent = match serde_json::from_value(body.clone()) {
            Ok(content) => content,
            Err(error) => return (400, json!({ "message": error.to_string() })),
        };
        let Some(volume) = self.volumes.get_mut(&id).filter(|one| one.is_coming) else {
            return (404, json!({ "message": "no volume waits for it" }));
        };
        volume.is_coming = false;
        volume.ready_at = Some(now);
        volume.content_of = Some(content.content_of);
        match self.journal.write_volume(id, Some(volume)) {
            Ok(()) => (200, Value::Null),
            Err(error) => (500, json!({ "message": error.to_string() })),
        }
    }

    fn unmake(&mut self, id: Uuid) -> Answer {
        if self.mounts_of(id).next().is_some() {
            return (200, json!({ "state": "in_use" }));
        }
        if let Some(volume) = self.volumes.remove(&id) {
            self.room.release_disk(volume.size_gib);
            if let Err(error) = self.journal.write_volume(id, None) {
                return (500, json!({ "message": error.to_string() }));
            }
        }
        (200, json!({ "state": "absent" }))
    }

    /// The machines that have a volume, with their mounts of it.
    fn mounts_of(&self, volume: Uuid) -> impl Iterator<Item = (Uuid, &SimulatedMount)> {
        self.machines.iter().flat_map(move |(id, machine)| {
            let mounts = machine.wanted.mounts.iter();
            let own = mounts.filter(move |mount| mount.volume == volume);
            own.map(|mount| (*id, mount))
        })
    }

    /// Returns the response if a machine cannot have these volumes. One that others write is for them alone.
    pub fn unmountable(
        &self,
        machine: Uuid,
        mounts: &[SimulatedMount],
        now: Millis,
    ) -> Option<Answer> {
        for mount in mounts {
            let id = mount.volume;
            if !self.volumes.get(&id).is_some_and(|one| one.is_ready(now)) {
                let why = format!("volume {id} is not on the node");
                return Some((200, json!({ "phase": "failed", "detail": why })));
            }
            let mut others = self.mounts_of(id).filter(|(other, _)| *other != machine);
            if others.any(|(_, other)| !mount.read_only || !other.read_only) {
                let why = format!("volume {id} has a writer beside another machine");
                return Some((409, json!({ "message": why })));
            }
        }
        None
    }

    /// `PUT /instances/ID/volumes`
    pub fn set_volumes(&mut self, id: Uuid, body: &Value, settings: &Settings) -> Answer {
        let mounts: Vec<SimulatedMount> = match serde_json::from_value(body.clone()) {
            Ok(mounts) => mounts,
            Err(error) => return (400, json!({ "message": error.to_string() })),
        };
        if !settings.late_attach {
            return (
                501,
                json!({ "message": "machines keep their volumes here" }),
            );
        }
        if let Some((_, body)) = self.unmountable(id, &mounts, super::now()) {
            return (409, json!({ "message": body.to_string() }));
        }
        self.change(id, |machine| machine.wanted.mounts = mounts);
        (200, json!({}))
    }
}
