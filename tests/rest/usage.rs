//! `GET /api/usage/`.

use crate::bill::{fake_clock, total_of};
use crate::snapshots::{plans::pass, ready};
use crate::{Expected, has, kill, millis, running, until_says, uuid, wait_until, with};
use serde_json::{Value, json};
use wharf_tests::{Api, Ports, Server, Shell, simulated_node};

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
}

#[test]
fn a_month_of_all_kinds_costs_what_the_times_of_their_events_say() {
    let Some(clock) = fake_clock() else { return };
    let rates = "[rates.general-purpose]\nvcpu = 0.05\nram = 0.007\nstorage = 0.0003\n\
        [rates.gpu]\nH100 = 2.5\n";
    let gpus = "gpus = [{ model = \"H100\", count = 1 }]\nsettings";
    let node = simulated_node("one", "").replace("settings", gpus);
    let settings = format!("{rates}{}{node}", Ports::take().settings());
    let server = Server::start_in(&settings, &clock.environment())
        .unwrap()
        .checked_at_end();
    let api = server.user(ANN).unwrap();
    let create = |fields: Value| {
        let created = api.create(&with("container", fields)).is(201);
        api.wait_for(uuid(&created), "running").unwrap()
    };
    let gpu = json!({ "gpu_model": "H100", "n_vcpus": 3, "mem_gib": 2, "disk_size_gib": 20 });
    let (gpu, plain) = (create(gpu), create(json!({ "disk_size_gib": 45 })));
    let volume = json!({ "name": "data", "size_gib": 7 });
    let volume = api.send("POST", "/api/volume/", &volume).is(201);
    pass(&server, &clock, 100);
    let snapshot = ready(&api, &plain, "before");
    assert_eq!(snapshot["size_gib"], 5);
    pass(&server, &clock, 200);
    api.act(uuid(&gpu), "stop").is(200);
    pass(&server, &clock, 330);
    api.act(uuid(&gpu), "restart").is(200);
    api.patch(uuid(&plain), &json!({ "n_vcpus": 2 })).is(200);
    pass(&server, &clock, 500);
    for (kind, kept) in [("volume", &volume), ("snapshot", &snapshot)] {
        let path = format!("/api/{kind}/{}/", kept["id"].as_str().unwrap());
        api.raw("DELETE", &path, None).is(204);
    }
    pass(&server, &clock, 650);
    api.delete(uuid(&gpu)).is(204);
    pass(&server, &clock, 720);
    api.delete(uuid(&plain)).is(204);

    let events = api.get("/api/event/?after=0&limit=1000").is(200);
    let at = |kind: &str, id: &Value| {
        let mut events = events.as_array().unwrap().iter();
        let subjects = ["instance", "volume", "snapshot"];
        let is_of = |event: &&Value| subjects.iter().any(|subject| event[subject] == *id);
        let event = events.find(|event| event["type"] == kind && is_of(event));
        i128::from(millis(&event.unwrap()["at"]))
    };
    // In nano-USD of an hour.
    let (vcpu, ram, storage) = (50_000_000, 7_000_000, 300_000);
    let parts = [
        (&gpu["uuid"], "created", "deleted", 20 * storage),
        (
            &gpu["uuid"],
            "created",
            "stopped",
            3 * vcpu + 2 * ram + 2_500_000_000,
        ),
        (
            &gpu["uuid"],
            "restarted",
            "deleted",
            3 * vcpu + 2 * ram + 2_500_000_000,
        ),
        (
            &plain["uuid"],
            "created",
            "deleted",
            45 * storage + vcpu + ram,
        ),
        (&plain["uuid"], "resized", "deleted", vcpu),
        (
            &volume["id"],
            "volume-created",
            "volume-deleted",
            7 * storage,
        ),
        (
            &snapshot["id"],
            "snapshot-ready",
            "snapshot-deleted",
            5 * storage,
        ),
    ];
    let costs = parts.map(|(id, from, to, rate)| (id, (at(to, id) - at(from, id)) * rate));
    let of = |id: Option<&Value>| {
        let own = costs.iter().filter(|(of, _)| id.is_none_or(|id| id == *of));
        own.map(|(_, cost)| cost).sum::<i128>() as f64 / 3.6e15
    };
    let usage = usage(&api, "?from=2020-01-01");
    let is_near = |told: &Value, expected: f64| {
        let told = told.as_f64().unwrap();
        // Events have the system's time, and the ledger has Wharf's own; both go on alike.
        assert!((told - expected).abs() < 0.0005, "{told} {expected}");
    };
    is_near(&usage["total_usd"], of(None));
    assert!(of(None) > 1300.0);
    for (list, key) in [
        ("instances", "uuid"),
        ("volumes", "id"),
        ("snapshots", "id"),
    ] {
        for one in usage[list].as_array().unwrap() {
            is_near(&one["total_usd"], of(Some(&one[key])));
        }
    }
    let billed = bill(&server, "2020-01-01");
    assert!((billed - usage["total_usd"].as_f64().unwrap()).abs() < 1e-6);
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
}

#[test]
fn a_bare_plus_sign_in_a_time_gets_a_hint() {
    let (_server, api) = crate::start();
    let refused =
        |query: &str| api.get(&format!("/api/usage/?from={query}")).is(400)["from"].clone();
    has(refused("2026-01-01T00:00:00+01:00"), "%2B");
    assert!(!refused("2026-01-01%20later").to_string().contains("%2B"));
    api.get("/api/usage/?from=2026-01-01T00:00:00%2B01:00")
        .is(200);
}
