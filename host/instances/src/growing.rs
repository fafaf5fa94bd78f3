//! The instances whose content moves to a larger disk now. Their state is `running`, and no user reaches
//! them yet.

use super::App;
use parking_lot::Mutex;
use std::collections::HashMap;
use wharf_domain::ids::InstanceId;

/// The progress of each such instance. A new process learns it from the first report of a driver.
#[derive(Debug, Default)]
pub struct Growing(Mutex<HashMap<InstanceId, String>>);

impl Growing {
    /// Notes the progress of an instance.
    pub fn note(&self, id: InstanceId, progress: &str) {
        self.0.lock().insert(id, progress.to_owned());
    }

    /// Whether the content of an instance moves.
    pub fn has(&self, id: InstanceId) -> bool {
        self.0.lock().contains_key(&id)
    }

    /// Notes that the instance starts, or is not to run.
    pub fn end(&self, id: InstanceId) {
        self.0.lock().remove(&id);
    }
}

impl App {
    /// The progress with which the content of an instance moves to a larger disk, in words for its owner;
    /// none if it does not move.
    pub fn growing(&self, id: InstanceId) -> Option<String> {
        self.growing
            .0
            .lock()
            .get(&id)
            .map(|progress| moves(progress))
    }
}

/// Describes a move to a larger disk for the owner.
pub(super) fn moves(progress: &str) -> String {
    let far = match progress {
        "" => String::new(),
        progress => format!(", {progress} so far"),
    };
    format!(
        "The content of the instance moves to its larger disk{far}. It can be reached when that is done."
    )
}
