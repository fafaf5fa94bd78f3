//! Conversion of an instance's state to a phase.

use crate::api::model::Instance;
use crate::names::MOVED;
use wharf_guest::Phase;

const STOPPED: u16 = 102;
const RUNNING: u16 = 103;
const STARTING: u16 = 106;
const STOPPING: u16 = 107;
const ABORTING: u16 = 108;
const FREEZING: u16 = 109;
const FROZEN: u16 = 110;
const THAWED: u16 = 111;
const READY: u16 = 113;

/// The beginning of the time of the last start, for an instance that never ran.
const NEVER: &str = "1970-";
/// The engine's note that it must still apply the image's templates. An instance that is not yet complete
/// lacks the note, and so does one that has been started.
const UNSTARTED: &str = "volatile.apply_template";

/// The phase of an instance. An unknown state means that it exists.
pub fn of(instance: &Instance) -> Phase {
    match instance.status_code {
        STOPPED if has_run(instance) => Phase::Stopped(None),
        STOPPED => Phase::Creating,
        RUNNING | STOPPING | ABORTING | FREEZING | FROZEN | THAWED | READY => Phase::Ready,
        STARTING => Phase::Booting,
        _ => Phase::Booting,
    }
}

fn has_run(instance: &Instance) -> bool {
    let has_moved = instance.config.get(MOVED).is_some_and(|moved| moved == "1");
    has_run_here(instance) || has_moved && instance.config.contains_key(UNSTARTED)
}

fn has_run_here(instance: &Instance) -> bool {
    !instance.last_used_at.is_empty() && !instance.last_used_at.starts_with(NEVER)
}

/// Whether the engine has made the instance's disk. If the creation was interrupted, it has not.
pub fn is_complete(instance: &Instance) -> bool {
    instance.status_code != STOPPED
        || has_run_here(instance)
        || instance.config.contains_key(UNSTARTED)
}

#[cfg(test)]
mod tests {
    use super::{is_complete, of};
    use crate::api::model::Instance;
    use wharf_guest::Phase;

    fn instance(status_code: u16, last_used_at: &str, complete: bool) -> Instance {
        let key = complete.then(|| ("volatile.apply_template".to_owned(), "create".to_owned()));
        Instance {
            status_code,
            last_used_at: last_used_at.into(),
            config: key.into_iter().collect(),
            ..Instance::default()
        }
    }

    #[test]
    fn an_instance_that_never_ran_is_in_creation() {
        let made = instance(102, "1970-01-01T00:00:00Z", true);
        assert!(matches!(of(&made), Phase::Creating) && is_complete(&made));
        let unfinished = instance(102, "1970-01-01T00:00:00Z", false);
        assert!(matches!(of(&unfinished), Phase::Creating) && !is_complete(&unfinished));
        let ran = instance(102, "2026-11-25T01:13:46.19Z", false);
        assert!(matches!(of(&ran), Phase::Stopped(None)) && is_complete(&ran));
    }

    #[test]
    fn an_instance_that_has_come_complete_has_run() {
        let mut moved = instance(102, "1970-01-01T00:00:00Z", true);
        moved.config.insert(super::MOVED.into(), "1".into());
        assert!(matches!(of(&moved), Phase::Stopped(None)) && is_complete(&moved));
        moved.config.remove(super::UNSTARTED);
        assert!(matches!(of(&moved), Phase::Creating) && !is_complete(&moved));
    }

    #[test]
    fn every_state_has_a_phase() {
        for up in [103, 107, 110] {
            assert!(matches!(of(&instance(up, "", false)), Phase::Ready));
        }
        assert!(matches!(of(&instance(106, "", false)), Phase::Booting));
        assert!(matches!(of(&instance(112, "", false)), Phase::Booting));
    }
}
