//! The exhaustive mode of the simulator. `WHARF_TEST_ALL=1` tries everything, and a plain run the ends of the process.

use wharf_simulate::exhaustive::{Scope, run};

/// A size that the engine sets late, larger or smaller, does not stay, though its process has ended.
#[test]
fn a_late_size_does_not_stay() {
    for struck in ["Some(Late) and crash None", "None and crash Some(Late)"] {
        let late = format!("resize of n1 with {struck}");
        let (ran, broken) = run(Scope::All, &late, 1, |_| {}).unwrap();
        let broken: Vec<_> = broken.iter().map(|one| (&one.what, &one.why)).collect();
        assert!(broken.is_empty(), "{broken:#?}");
        assert!(ran > 0);
    }
}

/// No fault and no end of the process at any call of one or two operations breaks a promise.
#[test]
fn operations_keep_every_promise_at_each_call() {
    let whole = std::env::var_os("WHARF_TEST_ALL").is_some();
    let scope = if whole { Scope::All } else { Scope::Quick };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (ran, broken) = run(scope, "", cores, |_| {}).unwrap();
    let broken: Vec<_> = broken.iter().map(|one| (&one.what, &one.why)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(ran > 0);
}
