//! `[retention]`: old events and ledgers are removed, and bills stay exact.

use crate::bill::fake_clock;
use crate::{Expected, edit, has, until_used, wait_until, walk};
use std::fs;
use wharf_tests::{Server, metric, roomy, simulated_node, small};

const ANN: &str = "ann@example.com";
/// Instances that are created and deleted.
const MADE: usize = 1_000;
const KILLS: u32 = 3;

#[test]
fn a_closed_month_is_exact_and_its_records_are_gone() {
    let Some(clock) = fake_clock() else { return };
    clock.set("-70d").unwrap();
    let settings = roomy(&simulated_node("one", ""));
    let mut server = Server::start_in(&settings, &clock.environment())
        .unwrap()
        .checked_at_end();
    let mut api = server.user(ANN).unwrap();
    let kept = api.small_container().unwrap()["uuid"]
        .as_str()
        .unwrap()
        .to_owned();
    let ids: Vec<String> = std::thread::scope(|scope| {
        let make = || {
            let one = |_| {
                let created = api.create(&small("container")).is(201);
                let id = created["uuid"].as_str().unwrap().to_owned();
                api.delete(&id).is(204);
                id
            };
            (0..MADE / 10).map(one).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..10).map(|_| scope.spawn(make)).collect();
        threads
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect()
    });
    until_used(&api, "n_instances", 1);
    api.act(&kept, "stop").ok();
    server
        .cli(&["bill", "correct", &ids[0], "-0.5", "--reason", "a test"])
        .unwrap();
    server.terminate().unwrap();
    // The bill of the deleted instances only: the kept one still costs.
    let bill = |server: &Server| {
        let bill = server.cli(&["bill", ANN]).unwrap();
        let lines = bill
            .lines()
            .filter(|l| !l.starts_with("total") && !l.contains(&kept));
        // The name goes with the events. The line of a correction ends with its reason.
        let costs = lines.filter_map(|line| {
            let cells: Vec<_> = line.split_whitespace().collect();
            let (uuid, usd) = (cells.get(1)?, cells.last()?);
            usd.parse::<f64>().ok()?;
            Some([(*uuid).to_owned(), (*usd).to_owned()])
        });
        let mut lines: Vec<_> = costs.collect();
        lines.sort();
        lines
    };
    let exact = bill(&server);
    assert!(exact.len() > MADE / 2, "{}", exact.len());
    let size = |server: &Server| {
        server.cli(&["compact"]).unwrap();
        fs::metadata(server.data_dir().join("wharf.redb"))
            .unwrap()
            .len()
    };
    let before = size(&server);

    // Seventy days later, kept for no time; killed while it removes them.
    clock.set("+0").unwrap();
    let retention = "[retention]\nevents_days = 0\nledger_months = 0\n[ssh_ports]";
    edit(&server, "[ssh_ports]", retention);
    server.cli(&["clock", "adopt"]).unwrap();
    // The removal follows the order of the ids.
    let last = ids.iter().max().unwrap();
    for kill in 0..KILLS {
        server.run().unwrap();
        // Each kill comes after another number of commits.
        let commits = "wharf_db_commit_duration_seconds_count";
        api = server.again(&api);
        wait_until("the removal has got on", || {
            let has_ended = || server.cli(&["events", last]).is_err();
            Ok((metric(&api, commits)? >= kill.into() || has_ended()).then_some(()))
        });
        server.kill().unwrap();
        server.cli(&["fsck"]).unwrap();
        assert_eq!(bill(&server), exact, "after kill {kill}");
    }
    server.run().unwrap();
    api = server.again(&api);
    wait_until("the events are removed", || {
        let left = walk(&api, "/api/event/?limit=1000");
        let own = left.iter().all(|event| event["instance"] == kept);
        Ok(own.then_some(()))
    });
    for id in ids.iter().step_by(MADE / 10) {
        assert!(server.cli(&["events", id]).is_err(), "{id}");
    }
    assert!(server.cli(&["events", &kept]).unwrap().contains("created"));
    assert_eq!(api.list().unwrap().len(), 1);
    assert_eq!(bill(&server), exact);
    let error = server
        .cli(&["bill", ANN, "--from", &middle(&server, &kept)])
        .unwrap_err();
    has(&error, "this month was closed");
    server.terminate().unwrap();
    let after = size(&server);
    println!("{before} bytes before, {after} after");
    // The audit log is kept.
    assert!(after < before * 3 / 4, "{before} {after}");
    assert_eq!(bill(&server), exact);
    server.run().unwrap();
}

/// A time within the month of an instance's first event, which is not its start.
fn middle(server: &Server, id: &str) -> String {
    let events = server.cli(&["events", id]).unwrap();
    let first = events.split('\t').next().unwrap();
    first[..8].to_owned() + "02"
}
