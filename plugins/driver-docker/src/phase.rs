//! Conversion of an engine's container state to a phase.

use crate::api::model::{Labels, State, Summary, label};
use crate::names;
use wharf_guest::Phase;

/// Maximum length of a reason, in characters.
const MAX_REASON: usize = 200;

/// The phase of a container from its details.
pub fn of_state(state: &State, labels: &Labels) -> Phase {
    phase(&state.status, labels, || match state.error.as_deref() {
        _ if state.oom_killed => "out of memory".into(),
        Some(error) if !error.is_empty() => error.chars().take(MAX_REASON).collect(),
        _ => format!("exit code {}", state.exit_code),
    })
}

/// The phase of a container from a list.
pub fn of_summary(summary: &Summary) -> Phase {
    phase(&summary.state, &summary.labels, || {
        summary.status.chars().take(MAX_REASON).collect()
    })
}

/// On all engines, `created` means never started. A replacement container with copied content is a
/// stopped instance instead. An unknown state means that the container exists.
fn phase(word: &str, labels: &Labels, reason: impl FnOnce() -> String) -> Phase {
    match word {
        "created" | "configured" | "initialized" => match label(labels, names::GROWN_FROM) {
            None | Some(names::NONE) => Phase::Creating,
            Some(_) => Phase::Stopped(None),
        },
        "running" | "paused" | "stopping" => Phase::Ready,
        "exited" | "stopped" => Phase::Stopped(Some(reason())),
        "removing" | "dead" => Phase::Stopped(Some("being removed".into())),
        _ => Phase::Booting,
    }
}

#[cfg(test)]
mod tests {
    use super::of_summary;
    use crate::api::model::{State, Summary};
    use crate::names;
    use wharf_guest::Phase;

    fn of_state(state: &State) -> Phase {
        super::of_state(state, &None)
    }

    fn state(status: &str) -> State {
        State {
            status: status.into(),
            exit_code: 137,
            ..State::default()
        }
    }

    #[test]
    fn every_state_has_a_phase() {
        assert!(matches!(of_state(&state("created")), Phase::Creating));
        assert!(matches!(of_state(&state("initialized")), Phase::Creating));
        assert!(matches!(of_state(&state("running")), Phase::Ready));
        assert!(matches!(of_state(&state("paused")), Phase::Ready));
        assert!(matches!(of_state(&state("restarting")), Phase::Booting));
        assert!(matches!(of_state(&state("dead")), Phase::Stopped(Some(_))));
        assert!(matches!(of_state(&state("something new")), Phase::Booting));
    }

    #[test]
    fn a_replacement_container_counts_as_stopped() {
        let phase = |from: &str| {
            let labels = [(names::GROWN_FROM.to_owned(), from.to_owned())];
            super::of_state(&state("created"), &Some(labels.into()))
        };
        assert!(matches!(phase("10G"), Phase::Stopped(None)));
        assert!(matches!(phase("snapshot"), Phase::Stopped(None)));
        assert!(matches!(phase(names::NONE), Phase::Creating));
    }

    #[test]
    fn a_stop_has_its_reason() {
        let reason = |state: &State| match of_state(state) {
            Phase::Stopped(reason) => reason.unwrap(),
            other => panic!("{other:?}"),
        };
        let mut ended = state("exited");
        assert_eq!(reason(&ended), "exit code 137");
        ended.error = Some("no such device".into());
        assert_eq!(reason(&ended), "no such device");
        ended.oom_killed = true;
        assert_eq!(reason(&ended), "out of memory");
    }

    #[test]
    fn a_list_has_the_reason_in_its_status() {
        let line = Summary {
            state: "exited".into(),
            status: "Exited (0) 3 minutes ago".into(),
            ..Summary::default()
        };
        let expected = "Exited (0) 3 minutes ago";
        assert!(matches!(of_summary(&line), Phase::Stopped(Some(r)) if r == expected));
    }
}
