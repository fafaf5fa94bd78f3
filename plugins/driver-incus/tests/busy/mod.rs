//! An engine that does something else with the instance.

use super::{resize, settle, start, stop, target};
use crate::engine::Fake;
use wharf_guest::{Error, Phase};

#[test]
fn another_operation_is_waited_for() {
    let fake = Fake::default();
    settle(&fake, false);
    let mut smaller = target();
    smaller.size.mem_gib = 1;
    fake.busy.set(Some("start"));
    // It is no refusal of the size.
    let error = resize(&fake, &smaller).unwrap_err();
    assert!(matches!(error, Error::RetryLater(_)), "{error:?}");
    fake.busy.set(None);
    resize(&fake, &smaller).unwrap();
    stop(&fake, &smaller).unwrap();
    fake.busy.set(Some("restore"));
    let error = start(&fake, &smaller).unwrap_err();
    assert!(matches!(error, Error::RetryLater(_)), "{error:?}");
    fake.busy.set(None);
    start(&fake, &smaller).unwrap();
}

#[test]
fn an_instance_that_runs_is_not_started_again() {
    let fake = Fake::default();
    fake.busy_notes.set(3);
    assert!(matches!(settle(&fake, false), Phase::Ready));
    stop(&fake, &target()).unwrap();
    fake.busy_notes.set(3);
    start(&fake, &target()).unwrap();
    start(&fake, &target()).unwrap();
    assert_eq!(fake.starts.get(), 2);
}
