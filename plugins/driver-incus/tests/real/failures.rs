//! Failures of members. Instances go on, and nothing is taken for gone.

use crate::given::{Rig, spec, target};
use driver_incus::{delete, ensure, inspect};
use std::time::{Duration, Instant};
use wharf_guest::{Error, Phase};

/// Killed at any moment of a creation, the daemon leaves an instance that is completed or made again.
pub fn killed_daemon(rig: &mut Rig) {
    rig.make(0, &spec(21));
    for ms in [20, 120, 300, 700] {
        let rest = std::thread::scope(|scope| {
            let shared: &Rig = rig;
            let call = scope.spawn(move || shared.call(0, |ctx| ensure::ensure(ctx, &spec(22))));
            std::thread::sleep(Duration::from_millis(ms));
            shared.cluster.members()[0].crash().unwrap();
            call.join().unwrap()
        });
        eprintln!("  killed after {ms} ms: {rest:?}");
        rig.await_banner(0, &spec(21));
        let member = rig.cluster.member(0).unwrap();
        member.kill().unwrap();
        member.resume().unwrap();
        let mut again = spec(22);
        again.may_exist = true;
        rig.make(0, &again);
        assert!(matches!(rig.phase(0, &spec(21)), Phase::Ready));
        remove(rig, 0, 22);
    }
    remove(rig, 0, 21);
}

/// The instances of a cut member go on, and the other members are as fast as before.
pub fn cut_link(rig: &mut Rig) {
    rig.make(0, &spec(31));
    rig.make(1, &spec(32));
    let pid = |rig: &Rig| rig.cluster.members()[1].processes();
    let before = pid(rig);
    rig.cluster.members()[1].cut().unwrap();
    let begun = Instant::now();
    let error = rig.call(1, inspect::list).unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    let mut slowest = Duration::ZERO;
    while begun.elapsed() < Duration::from_secs(30) {
        let start = Instant::now();
        let list = rig.call(0, inspect::list).unwrap();
        slowest = slowest.max(start.elapsed());
        assert!(matches!(list.as_slice(), [one] if matches!(one.phase, Phase::Ready)));
        std::thread::sleep(Duration::from_millis(500));
    }
    eprintln!("  the slowest list of another member: {slowest:.1?}");
    assert!(slowest < Duration::from_secs(3), "{slowest:?}");
    rig.make(0, &spec(33));
    remove(rig, 0, 33);
    rig.cluster.members()[1].reconnect().unwrap();
    let begun = Instant::now();
    loop {
        match rig.call(1, inspect::list) {
            Ok(list) => {
                assert!(matches!(list.as_slice(), [one] if matches!(one.phase, Phase::Ready)));
                break;
            }
            Err(Error::Unreachable(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(500));
    }
    eprintln!(
        "  the member answers {:.1?} after its return",
        begun.elapsed()
    );
    assert_eq!(pid(rig), before, "an instance was restarted");
    remove(rig, 1, 32);
    remove(rig, 0, 31);
}

/// Without a majority of the cluster's database, nothing is known, and instances go on.
pub fn no_quorum(rig: &mut Rig) {
    rig.make(0, &spec(41));
    for member in [1, 2] {
        rig.cluster.member(member).unwrap().kill().unwrap();
    }
    let start = Instant::now();
    // The member takes seconds to notice, and until then knows the truth.
    loop {
        match rig.call(0, inspect::list) {
            Ok(list) => {
                assert!(matches!(list.as_slice(), [one] if matches!(one.phase, Phase::Ready)));
            }
            Err(Error::Unreachable(_)) => break,
            Err(other) => panic!("{other:?}"),
        }
        assert!(start.elapsed() < Duration::from_secs(90));
        std::thread::sleep(Duration::from_millis(500));
    }
    eprintln!("  out of reach after {:.1?}", start.elapsed());
    rig.await_banner(0, &spec(41));
    for member in [1, 2] {
        rig.cluster.member(member).unwrap().launch().unwrap();
    }
    for member in [1, 2] {
        rig.cluster.member(member).unwrap().await_answer().unwrap();
    }
    let begun = Instant::now();
    while rig.call(0, inspect::list).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(90));
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(matches!(rig.phase(0, &spec(41)), Phase::Ready));
    remove(rig, 0, 41);
}

/// Deletes an instance.
pub fn remove(rig: &Rig, member: usize, n: u8) {
    let gone = |phase: &Phase| matches!(phase, Phase::Absent);
    rig.wait_for(member, &spec(n).tag, gone, |ctx| {
        delete::delete(ctx, &target(&spec(n)))
    });
}
