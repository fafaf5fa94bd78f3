//! Seeds of the simulator in every run of the tests. `WHARF_TEST_ALL=1` runs all of them twice.

use wharf_simulate::seeds::Seeds;

/// Nothing that the model checks is violated, and each of the first seeds has one trace.
#[test]
fn three_hundred_seeds_keep_every_promise() {
    let whole = std::env::var_os("WHARF_TEST_ALL").is_some();
    for (from, count, once) in [(1, 60, false), (61, 240, !whole)] {
        let seeds = Seeds {
            once,
            ..Seeds::new(from, count)
        };
        let (ran, failures) = seeds.run(|_, _| {}).unwrap();
        assert!(failures.is_empty(), "{}", failures.join("\n\n"));
        assert_eq!(ran, count);
    }
}
