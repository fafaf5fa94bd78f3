//! The plan: the next step for an instance. Pure.

use wharf_db::MoveRow;
use wharf_domain::capacity::Size;
use wharf_domain::instance::{Instance, Intent, Progress};

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The node follows the intent.
    Nothing,
    /// Create it, until it is reachable.
    Make,
    /// Start it again.
    Start,
    /// Change its size.
    Resize(Size),
    /// Stop it and release its compute.
    Stop,
    /// Fetch it from another node of the cluster.
    Move,
    /// Delete it and free everything.
    Delete,
}

impl Step {
    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Make => "make",
            Self::Start => "start",
            Self::Resize(_) => "resize",
            Self::Stop => "stop",
            Self::Move => "move",
            Self::Delete => "delete",
        }
    }
}

/// The step that brings the node nearer to the row, or the new node of a move.
pub fn plan(instance: &Instance, moving: Option<&MoveRow>) -> Step {
    match (instance.progress, instance.intent) {
        (Progress::Settled, _) => Step::Nothing,
        (Progress::Pending, Intent::Delete) => Step::Delete,
        (Progress::Pending, Intent::Stop) => match moving {
            Some(moving) if moving.stopped => Step::Move,
            _ => Step::Stop,
        },
        (Progress::Pending, Intent::Start) => Step::Start,
        (Progress::Pending, Intent::Run) if !instance.provisioned => Step::Make,
        (Progress::Pending, Intent::Run) => match &instance.resize {
            Some(resize) => Step::Resize(resize.size),
            None => Step::Start,
        },
    }
}
