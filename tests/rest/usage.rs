//! `GET /api/usage/`.

use crate::bill::{fake_clock, total_of};
use crate::{Expected, has, kill, running, until_says, uuid, wait_until};
use serde_json::{Value, json};
use wharf_tests::{Api, Server, Shell};

const ANN: &str = "ann@example.com";

fn usage(api: &Api, query: &str) -> Value {
    let path = format!("/api/usage/{query}");
    api.get(&path).is(200)
}

/// The total of `wharf bill` since a time.
fn bill(server: &Server, from: &str) -> f64 {
    total_of(&server.cli(&["bill", ANN, "--from", from]).unwrap())
}

#[test]
fn costs_are_those_of_the_bill_by_month_and_instance() {
    let Some(clock) = fake_clock() else { return };
    let server = clock.server("").unwrap();
    let api = server.user(ANN).unwrap();
    let empty = usage(&api, "");
    assert_eq!(empty["total_usd"], 0.0);
    assert_eq!(empty["hourly_usd"], 0.0);
    assert_eq!(empty["instances"], json!([]));
    let first = running(&api);
    assert_eq!(usage(&api, "")["hourly_usd"], json!(0.0174));
    let stopped = running(&api);
    api.act(uuid(&stopped), "stop").is(200);
    // 40 days later there are costs of two months at least.
    clock.set("+3456000").unwrap();
    server.cli(&["clock", "adopt"]).unwrap();
    let reason = "an outage of two hours";
    let correct = ["bill", "correct", uuid(&first), "-0.25", "--reason", reason];
    server.cli(&correct).unwrap();
    api.delete(uuid(&stopped)).is(204);

    let whole = usage(&api, "?from=2020-01-01");
    let billed = bill(&server, "2020-01-01");
    let total = whole["total_usd"].as_f64().unwrap();
    assert!((total - billed).abs() < 0.0001, "{total} {billed}");
    assert_eq!(whole["hourly_usd"], json!(0.0174), "{whole}");
    let instances = whole["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 2, "{whole}");
    let [one, two] = [&instances[0], &instances[1]];
    assert_eq!(one["uuid"], first["uuid"]);
    assert_eq!(one["name"], first["name"]);
    assert_eq!(one["state"], "running");
    assert_eq!(one["hourly_usd"], 0.0174);
    assert_eq!(two["state"], "deleted");
    assert_eq!(two["hourly_usd"], 0.0);
    let correction = &one["corrections"][0];
    assert_eq!(correction["usd"], -0.25);
    assert_eq!(correction["reason"], json!(reason));
    // A stopped instance costs its disk.
    let hours = 40.0 * 24.0;
    let disk = two["total_usd"].as_f64().unwrap();
    assert!((disk - 0.0014 * hours).abs() < 0.01, "{disk}");
    let sum = |of: &Value| -> f64 {
        let all = of.as_array().unwrap().iter();
        all.map(|part| part["total_usd"].as_f64().unwrap()).sum()
    };
    for part in [&whole["months"], &whole["instances"]] {
        assert!((sum(part) - total).abs() < 0.000_001, "{whole}");
    }
    assert!(whole["months"].as_array().unwrap().len() >= 2, "{whole}");

    // The default is this month, and the parts of a month add up to it.
    let this = usage(&api, "");
    let month = whole["months"].as_array().unwrap().last().unwrap();
    let costs = (sum(&this["months"]), month["total_usd"].as_f64().unwrap());
    assert!((costs.0 - costs.1).abs() < 0.0001, "{this} {whole}");
    let from = this["from"].as_str().unwrap();
    assert!(from.ends_with("-01T00:00:00.000Z"), "{from}");
    let before = usage(&api, &format!("?from=2020-01-01&to={from}"));
    let split = before["total_usd"].as_f64().unwrap() + this["total_usd"].as_f64().unwrap();
    assert!((split - total).abs() < 0.001, "{split} {total}");

    // Another user sees none of it.
    let bob = server.user("bob@example.com").unwrap();
    assert_eq!(usage(&bob, "?from=2020-01-01")["instances"], json!([]));
    server.finish().unwrap();
}

#[test]
fn purged_instances_and_closed_months_are_billed_on() {
    let Some(clock) = fake_clock() else { return };
    let mut server = clock
        .server("[retention]\nevents_days = 1\nledger_months = 1\n")
        .unwrap();
    let api = server.user(ANN).unwrap();
    let made = running(&api);
    let month = usage(&api, "")["from"].as_str().unwrap().to_owned();
    clock.set("+7200").unwrap();
    server.cli(&["clock", "adopt"]).unwrap();
    api.delete(uuid(&made)).is(204);
    until_says(&server, &["events", uuid(&made)], "purged");
    let is_known = |usage: &Value| {
        let known = &usage["instances"][0];
        for field in ["uuid", "name", "flavor", "n_vcpus", "disk_size_gib"] {
            assert_eq!(known[field], made[field], "{usage}");
        }
        assert_eq!(known["mem_gib"], 1, "{usage}");
    };
    is_known(&usage(&api, &format!("?from={month}")));
    let open = usage(&api, &format!("?from={month}"))["total_usd"].clone();
    assert!(open.as_f64().unwrap() > 0.02, "{open}");
    // 100 days later the ledger is closed at a start.
    clock.set("+8640000").unwrap();
    server.cli(&["clock", "adopt"]).unwrap();
    let api = kill(&mut server, &api);
    let second = month.replace("-01T00:00:00.000Z", "-02");
    wait_until("the ledger is closed", || {
        let cut = api.get(&format!("/api/usage/?from={second}"))?;
        Ok((cut.status == 400 && cut.body["from"].is_array()).then_some(()))
    });
    let closed = usage(&api, &format!("?from={month}"));
    assert_eq!(closed["total_usd"], open, "{closed}");
    assert_eq!(closed["instances"][0]["state"], "deleted");
    assert_eq!(closed["hourly_usd"], json!(0.0));
    // The events, which retention removes after a day, are not needed for it.
    is_known(&closed);
    let bill = server.cli(&["bill", ANN]).unwrap();
    has(&bill, made["name"].as_str().unwrap());
    let shell = Shell::signed_in(&server, ANN).unwrap();
    let cost = shell.ok(&["cost", "--from", &month]).unwrap();
    let line = cost.lines().find(|line| line.contains("deleted")).unwrap();
    let name = made["name"].as_str().unwrap();
    for part in [name, "base", "1 vCPU, 1 GiB, 10 GiB"] {
        has(line, part);
    }
    server.finish().unwrap();
}

#[test]
fn a_bare_plus_sign_in_a_time_gets_a_hint() {
    let (server, api) = crate::start();
    let refused =
        |query: &str| api.get(&format!("/api/usage/?from={query}")).is(400)["from"].clone();
    has(refused("2026-01-01T00:00:00+01:00").to_string(), "%2B");
    assert!(!refused("2026-01-01%20later").to_string().contains("%2B"));
    api.get("/api/usage/?from=2026-01-01T00:00:00%2B01:00")
        .is(200);
    server.finish().unwrap();
}
