//! Seeds of the simulator in every run of the tests.

use wharf_simulate::seeds::Seeds;

/// The first seeds, each twice: nothing that the model checks is violated, and a seed has one trace.
#[test]
fn three_hundred_seeds_keep_every_promise() {
    let (ran, failures) = Seeds::new(1, 300).run(|_, _| {}).unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert_eq!(ran, 300);
}
