//! Plans that take snapshots by the clock.

use super::{all, count, events, stopped, until_count, until_event};
use crate::bill::fake_clock;
use crate::{Expected, has, running, uuid};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_tests::{Api, Ports, Server, simulated_node};

fn plan(api: &Api, instance: &Value, body: &Value) {
    let path = format!("/api/instance/{}/snapshot-plan/", uuid(instance));
    api.send("PUT", &path, body).is(200);
}

/// The time for which a plan is watched that does nothing.
pub const WHILE: Duration = Duration::from_secs(7);

/// Lets hours pass by Wharf's own clock.
pub fn pass(server: &Server, clock: &wharf_tests::FakeClock, hours: u32) {
    clock.set(&format!("+{}", hours * 3600)).unwrap();
    let adopted = server.cli(&["clock", "adopt"]).unwrap();
    assert!(adopted.contains("followed"), "{adopted}");
}

#[test]
fn a_snapshot_that_is_late_is_taken_once_by_the_own_clock() {
    let Some(clock) = fake_clock() else { return };
    let mut server = clock.server("").unwrap();
    let mut api = server.user("ann@example.com").unwrap();
    let instance = running(&api);
    plan(&api, &instance, &json!({ "every_h": 2, "keep": 2 }));
    // A step of the system's clock is no hour.
    clock.set("+14400").unwrap();
    wharf_tests::interval(WHILE);
    assert_eq!(all(&api), [] as [Value; 0]);
    // Five due times pass.
    pass(&server, &clock, 11);
    until_count(&api, &instance, "snapshot-ready", 1);
    wharf_tests::interval(WHILE);
    assert_eq!(count(&api, &instance, "snapshot-created"), 1);
    let taken = &all(&api)[0];
    assert_eq!(taken["planned"], true);
    // A start of Wharf changes no due time. The simulated engine has lost the instance with the process.
    server.kill().unwrap();
    server.run().unwrap();
    api = server.again(&api);
    wharf_tests::interval(WHILE);
    assert_eq!(count(&api, &instance, "snapshot-created"), 1);
    drop(clock);
}

#[test]
fn the_oldest_goes_once_the_new_one_is_complete() {
    let Some(clock) = fake_clock() else { return };
    let server = clock.server("").unwrap();
    let api = server.user("ann@example.com").unwrap();
    let instance = running(&api);
    let own = super::ready(&api, &instance, "own");
    plan(&api, &instance, &json!({ "every_h": 1, "keep": 2 }));
    for n in 1..=4 {
        pass(&server, &clock, u32::try_from(n).unwrap() + 1);
        until_count(&api, &instance, "snapshot-ready", n + 1);
    }
    let rows = all(&api);
    let planned: Vec<_> = rows.iter().filter(|row| row["planned"] == true).collect();
    assert_eq!(planned.len(), 2, "{rows:?}");
    assert_eq!(rows[0]["id"], own["id"], "only planned ones go");
    let kinds = events(&api, &instance);
    let (mut there, mut least) = (0, usize::MAX);
    for kind in &kinds {
        match kind.as_str() {
            "snapshot-ready" => there += 1,
            "snapshot-deleted" => {
                there -= 1;
                least = least.min(there);
            }
            _ => {}
        }
    }
    assert_eq!(least, 3, "{kinds:?}");
}

#[test]
fn old_ones_go_by_their_age_except_for_the_newest() {
    let Some(clock) = fake_clock() else { return };
    let server = clock.server("").unwrap();
    let api = server.user("ann@example.com").unwrap();
    let instance = running(&api);
    plan(
        &api,
        &instance,
        &json!({ "every_h": 20, "keep": 9, "keep_days": 1 }),
    );
    pass(&server, &clock, 21);
    until_count(&api, &instance, "snapshot-ready", 1);
    super::stop(&api, &instance);
    pass(&server, &clock, 41);
    until_count(&api, &instance, "snapshot-ready", 2);
    // Nothing is new in an instance that stays stopped. The first one is older than a day now.
    pass(&server, &clock, 61);
    until_event(&api, &instance, "snapshot-deleted");
    pass(&server, &clock, 200);
    wharf_tests::interval(WHILE);
    assert_eq!(count(&api, &instance, "snapshot-created"), 2);
    assert_eq!(all(&api).len(), 1);
    api.act(uuid(&instance), "restart").is(200);
    api.wait_for(uuid(&instance), "running").unwrap();
    pass(&server, &clock, 221);
    until_count(&api, &instance, "snapshot-ready", 3);
}

/// Limits the user's snapshots.
fn limit(server: &Server, snapshots: &str) {
    let args = ["user", "limit", "ann@example.com", "--snapshots", snapshots];
    server.cli(&args).unwrap();
}

#[test]
fn a_plan_without_room_says_so_once_and_tries_again() {
    let Some(clock) = fake_clock() else { return };
    let server = clock.server("").unwrap();
    let api = server.user("ann@example.com").unwrap();
    limit(&server, "0");
    let instance = running(&api);
    plan(&api, &instance, &json!({ "every_h": 4, "keep": 1 }));
    pass(&server, &clock, 5);
    let failed = until_event(&api, &instance, "snapshot-plan-failed");
    has(&failed["message"], "quota");
    wharf_tests::interval(WHILE);
    assert_eq!(count(&api, &instance, "snapshot-plan-failed"), 1);
    // There is room before the next due time.
    limit(&server, "unlimited");
    pass(&server, &clock, 7);
    until_count(&api, &instance, "snapshot-ready", 1);
    limit(&server, "0");
    for (hours, told) in [(9, 2), (11, 2), (13, 3)] {
        pass(&server, &clock, hours);
        wharf_tests::interval(WHILE);
        assert_eq!(count(&api, &instance, "snapshot-plan-failed"), told);
    }
    assert_eq!(all(&api).len(), 1);
}

#[test]
fn a_refusal_that_passes_costs_the_plan_no_run() {
    let Some(clock) = fake_clock() else { return };
    let faults = (1..12).map(|nth| {
        format!("{{ call = \"restore\", error = \"retry\", after_ms = 1000, nth = {nth} }}")
    });
    let faults = faults.collect::<Vec<_>>().join(", ");
    let node = simulated_node("one", &format!("faults = [{faults}]"));
    let settings = format!("{}{node}", Ports::take().settings());
    let server = Server::start_in(&settings, &clock.environment())
        .unwrap()
        .checked_at_end();
    let api = server.user("ann@example.com").unwrap();
    let instance = stopped(&api);
    let own = super::ready(&api, &instance, "own");
    plan(&api, &instance, &json!({ "every_h": 24, "keep": 1 }));
    super::restore(&api, &own, false).is(200);
    pass(&server, &clock, 25);
    until_count(&api, &instance, "snapshot-ready", 2);
    let kinds = events(&api, &instance);
    let at = |kind: &str| kinds.iter().rposition(|known| known == kind).unwrap();
    assert!(at("restored") < at("snapshot-created"), "{kinds:?}");
    assert_eq!(count(&api, &instance, "snapshot-plan-failed"), 0);
}

#[test]
fn of_runs_that_fail_the_newest_snapshot_stays() {
    let Some(clock) = fake_clock() else { return };
    let node = simulated_node("one", "refuse_snapshots = \"the disk is full\"");
    let settings = format!("{}{node}", Ports::take().settings());
    let server = Server::start_in(&settings, &clock.environment())
        .unwrap()
        .checked_at_end();
    let api = server.user("ann@example.com").unwrap();
    let instance = running(&api);
    plan(&api, &instance, &json!({ "every_h": 1, "keep": 2 }));
    for n in 1..=4 {
        pass(&server, &clock, u32::try_from(n).unwrap() + 1);
        until_count(&api, &instance, "snapshot-failed", n);
    }
    // The one before it goes with the next run.
    let rows = all(&api);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row["state"] == "error"), "{rows:?}");
}
