//! Clusters of simulated engines, between which machines move.

use super::settings::Settings;
use super::world::World;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use uuid::Uuid;

/// The engines of this process that are members of a cluster, by its name.
static MEMBERS: Mutex<BTreeMap<String, Vec<Weak<Member>>>> = Mutex::new(BTreeMap::new());

/// The machines of one engine.
#[derive(Debug)]
pub struct Member {
    world: Mutex<World>,
    unreachable_while: Option<PathBuf>,
}

impl Member {
    /// Makes an engine with these machines a member of a cluster, if it is in one.
    pub fn join(world: World, settings: &Settings, cluster: Option<&str>) -> Arc<Self> {
        let member = Arc::new(Self {
            world: Mutex::new(world),
            unreachable_while: settings.unreachable_while.clone(),
        });
        if let Some(cluster) = cluster {
            let mut members = MEMBERS.lock();
            let members = members.entry(cluster.to_owned()).or_default();
            members.retain(|member| member.strong_count() > 0);
            members.push(Arc::downgrade(&member));
        }
        member
    }

    /// Its machines. At most one member is locked at a time.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock()
    }

    /// Whether the engine is out of reach, for the cluster too.
    pub fn is_away(&self) -> bool {
        super::exists(self.unreachable_while.as_deref())
    }

    /// The other members of its cluster that have a machine.
    pub fn others_with(self: &Arc<Self>, cluster: &str, id: Uuid) -> Vec<Arc<Self>> {
        let members = MEMBERS.lock().get(cluster).cloned().unwrap_or_default();
        let members = members.iter().filter_map(Weak::upgrade);
        let others = members.filter(|member| !Arc::ptr_eq(member, self));
        others
            .filter(|member| member.world().machine(id).is_some())
            .collect()
    }
}
