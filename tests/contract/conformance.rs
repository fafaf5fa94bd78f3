//! The conformance suite against Wharf on the simulated engine.

use wharf_conformance::check::Verdict;
use wharf_conformance::{Options, OwnServer, check_service};

/// Only the operator's limit provokes it; `tests/rest/quota.rs` has it.
const PORTS_OVER_QUOTA: (&str, u16) = ("addPort", 422);

/// Only a WebSocket provokes them; `tests/rest/terminal` and `tests/rest/tunnel` have them.
const TERMINAL_OPENED: (&str, u16) = ("openTerminal", 101);
const TUNNEL_OPENED: (&str, u16) = ("openTunnel", 101);

/// Only the loss of a node makes an instance that can be created again; `tests/rest/lost.rs` has it.
const RECREATED: (&str, u16) = ("recreateInstance", 200);
const NO_ROOM_TO_RECREATE: (&str, u16) = ("recreateInstance", 422);

/// The operations of the console's pages need tokens of the operator; `tests/contract/sign_in.rs` has
/// them.
const OF_PAGES: &str = "/auth/";

/// The operations that need an object store; `tests/rest/backups.rs` has them. These statuses need none.
const OF_BUCKETS: [&str; 2] = ["/api/bucket/", "/api/backup/"];
const BACKUPS_OF_ONE: [&str; 9] = [
    "createBackup",
    "createVolumeBackup",
    "getRecreation",
    "getBackupPlan",
    "setBackupPlan",
    "removeBackupPlan",
    "getVolumeBackupPlan",
    "setVolumeBackupPlan",
    "removeVolumeBackupPlan",
];
const WITHOUT_STORE: [u16; 4] = [401, 403, 404, 413];

/// Documented statuses that no client can provoke, or only by a race or a flood.
const UNPROVOKABLE: [u16; 6] = [408, 409, 429, 500, 502, 503];

#[test]
fn wharf_conforms_to_every_rule() {
    let server = OwnServer::start().unwrap();
    let options = Options::default();
    let report = check_service(server.target(), &options, &Default::default()).unwrap();
    println!("{}{}", report.table(), report.summary());
    assert!(report.ok(), "rules are broken");
    // The setup is complete, so no rule may be skipped.
    for outcome in &report.outcomes {
        assert_eq!(outcome.verdict, Verdict::Passed, "{}", outcome.name);
    }
    assert!(report.outcomes.len() > 500, "{}", report.summary());
    let of_pages = operations_under(OF_PAGES);
    let mut of_buckets = OF_BUCKETS.map(operations_under).concat();
    of_buckets.extend(BACKUPS_OF_ONE.map(str::to_owned));
    let unseen: Vec<_> = report
        .unseen_statuses
        .iter()
        .filter(|(_, status)| !UNPROVOKABLE.contains(status))
        .filter(|(operation, status)| {
            let others = [
                PORTS_OVER_QUOTA,
                TERMINAL_OPENED,
                TUNNEL_OPENED,
                RECREATED,
                NO_ROOM_TO_RECREATE,
            ];
            !others.contains(&(operation.as_str(), *status))
        })
        .filter(|(operation, _)| !of_pages.contains(operation))
        .filter(|(operation, status)| {
            WITHOUT_STORE.contains(status) || !of_buckets.contains(operation)
        })
        .collect();
    assert!(
        unseen.is_empty(),
        "documented statuses without a response: {unseen:?}"
    );
    server.finish().unwrap();
}

/// The ids of the documented operations under a path.
fn operations_under(prefix: &str) -> Vec<String> {
    let document = wharf_tests::documented().unwrap();
    let paths = document["paths"].as_object().unwrap();
    let under = paths.iter().filter(|(path, _)| path.starts_with(prefix));
    under
        .flat_map(|(_, item)| item.as_object().unwrap().values())
        .filter_map(|operation| Some(operation["operationId"].as_str()?.to_owned()))
        .collect()
}
