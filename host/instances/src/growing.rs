//! The instances whose disk the node works on before it starts them. Of those that are to run the state is
//! `running`, and no user reaches them yet.

use super::App;
use parking_lot::Mutex;
use std::collections::HashMap;
use wharf_domain::event::EventKind;
use wharf_domain::ids::InstanceId;

/// The work on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// The content moves to a larger disk.
    Growing,
    /// The disk becomes that of a snapshot.
    Restoring,
    /// A snapshot is taken.
    Copying,
}

impl Work {
    /// Describes the work for the owner.
    pub fn describe(self, progress: &str) -> String {
        let what = match self {
            Self::Growing => "The content of the instance moves to its larger disk",
            Self::Restoring => "The disk of the instance becomes that of the snapshot",
            Self::Copying => "A snapshot of the instance is being taken",
        };
        let far = match progress {
            "" => String::new(),
            progress => format!(", {progress} so far"),
        };
        format!("{what}{far}. It can be reached when that is done.")
    }

    /// The event that tells the owner how far it is; none if it is the event of something else.
    pub fn event(self, progress: &str) -> Option<EventKind> {
        match self {
            Self::Growing => Some(EventKind::DiskGrowing(progress.to_owned())),
            Self::Restoring if progress.is_empty() => {
                Some(EventKind::Restoring("it waits".to_owned()))
            }
            Self::Restoring => Some(EventKind::Restoring(progress.to_owned())),
            Self::Copying => None,
        }
    }
}

/// The progress of each such instance. A new process learns it from the first report of a driver.
#[derive(Debug, Default)]
pub struct Growing(Mutex<HashMap<InstanceId, (Work, String)>>);

impl Growing {
    /// Notes the progress of an instance.
    pub fn note(&self, id: InstanceId, work: Work, progress: &str) {
        self.0.lock().insert(id, (work, progress.to_owned()));
    }

    /// Whether the instance waits for work on its disk.
    pub fn has(&self, id: InstanceId) -> bool {
        self.0.lock().contains_key(&id)
    }

    /// Notes that the instance starts, or is not to run.
    pub fn end(&self, id: InstanceId) {
        self.0.lock().remove(&id);
    }
}

impl App {
    /// The progress of the work on the disk of an instance, in words for its owner; none if there is no work.
    pub fn growing(&self, id: InstanceId) -> Option<String> {
        let all = self.growing.0.lock();
        all.get(&id).map(|(work, progress)| work.describe(progress))
    }
}
