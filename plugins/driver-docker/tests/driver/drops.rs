//! The removal of a snapshot on an engine that loses calls and answers.

use crate::calls::Calls;
use crate::fake::given::{node, spec, target};
use crate::fake::{Break, Fake};
use crate::snapshots::{ID, of, running, stands_still, state, taken};
use wharf_guest::SnapshotState;

/// An engine with a complete snapshot.
fn complete() -> Fake {
    let (fake, node) = (running(), node("{}"));
    taken(&Calls::new(&node, &fake), &fake, ID);
    fake
}

/// An engine with the copy of a stopped instance, which has not yet the name of the snapshot.
fn unnamed() -> Fake {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    calls.stop(&target(&spec(1)), 0).unwrap();
    state(&calls, ID);
    fake.world.borrow_mut().finish();
    assert_eq!(fake.world.borrow().snapshots.len(), 1);
    fake
}

/// An engine that was killed in a copy, and has left the instance standing still.
fn interrupted() -> Fake {
    let (fake, node) = (running(), node("{}"));
    state(&Calls::new(&node, &fake), ID);
    fake.world.borrow_mut().kill();
    assert!(stands_still(&fake));
    fake
}

#[test]
fn a_removal_completes_after_any_failed_call() {
    for begin in [complete as fn() -> Fake, unnamed, interrupted] {
        for when in [Break::Before, Break::After] {
            for nth in 0.. {
                let (fake, node) = (begin(), node("{}"));
                let calls = Calls::new(&node, &fake);
                fake.break_call(nth, when);
                let dropped = (0..3).find_map(|_| calls.drop_snapshot(&of(ID)).ok());
                let dropped = dropped.map(|report| report.state);
                assert!(
                    matches!(dropped, Some(SnapshotState::Absent)),
                    "{when:?} {nth}: {dropped:?}"
                );
                assert!(fake.world.borrow().snapshots.is_empty(), "{when:?} {nth}");
                assert!(!stands_still(&fake), "{when:?} {nth}");
                if !fake.broke() {
                    assert!(nth > 5, "{nth} calls");
                    break;
                }
            }
        }
    }
}
