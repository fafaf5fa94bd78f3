//! `wharf bill`, its corrections, and the clock that it depends on.

use crate::{Expected, has, running, start, start_under, until_logged, until_says, uuid};
use wharf_tests::{FakeClock, Server};

pub const ANN: &str = "ann@example.com";
/// USD of an hour of the smallest container, and of its disk alone.
pub const HOUR: f64 = 0.0174;
pub const DISK_HOUR: f64 = 0.0014;

fn total(server: &Server) -> f64 {
    total_of(&server.cli(&["bill", ANN]).unwrap())
}

/// The total of a bill.
pub fn total_of(bill: &str) -> f64 {
    let last = bill.lines().last().unwrap();
    last.strip_prefix("total ").unwrap().trim().parse().unwrap()
}

/// A clock, or `None` without root, which the package needs.
pub fn fake_clock() -> Option<FakeClock> {
    match FakeClock::new() {
        Ok(clock) => Some(clock),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{error}");
            eprintln!("SKIPPED: {error}");
            None
        }
    }
}

#[test]
fn a_step_of_the_clock_is_not_billed_before_the_operator_adopts_it() {
    let Some(clock) = fake_clock() else { return };
    let mut server = clock.server("").unwrap();
    let api = server.user(ANN).unwrap();
    let made = running(&api);
    let refused = |server: &Server| server.cli(&["clock", "show"]).unwrap().contains("refused");
    assert!(!refused(&server));
    for step in ["-7200", "+7200"] {
        clock.set(step).unwrap();
        assert!(refused(&server), "{step}");
        api.act(uuid(&made), "stop").is(200);
        api.act(uuid(&made), "restart").is(200);
        assert!(total(&server) < HOUR / 20.0, "{step}: {}", total(&server));
    }
    until_logged(&server, "wharf clock adopt");
    // A restart is no consent.
    server.kill().unwrap();
    server.run().unwrap();
    assert!(refused(&server) && total(&server) < HOUR / 20.0);
    let adopted = server.cli(&["clock", "adopt"]).unwrap();
    assert!(adopted.contains("followed"), "{adopted}");
    let billed = total(&server);
    // The simulated engine has lost the instance with the server, which ended compute.
    assert!(billed > 2.0 * DISK_HOUR && billed < 2.5 * HOUR, "{billed}");
    server.kill().unwrap();
    server.run().unwrap();
    assert!(!refused(&server) && total(&server) >= billed);
}

#[test]
fn the_future_is_not_billed() {
    let (server, api) = start();
    api.small_container().unwrap();
    let bill = std::process::Command::new(wharf_tests::wharf_binary())
        .args(["bill", ANN, "--to", "2100-01-01", "--config"])
        .arg(server.config_path())
        .output()
        .unwrap();
    let (bill, note) = (bill.stdout, bill.stderr);
    let bill = String::from_utf8(bill).unwrap();
    assert!(total_of(&bill) < HOUR, "{bill}");
    let note = String::from_utf8(note).unwrap();
    assert!(note.contains("the bill ends now, at 20"), "{note}");
}

#[test]
fn the_operator_corrects_bills_of_living_and_deleted_instances() {
    let (mut server, api) = start();
    let made = api.small_container().unwrap();
    let (id, name) = (uuid(&made), made["name"].as_str().unwrap());
    let correct = |server: &Server, instance: &str, amount: &str, reason: &str| {
        server.cli(&["bill", "correct", instance, amount, "--reason", reason])
    };
    let before = total(&server);
    correct(&server, name, "-1.25", "an outage of two hours").unwrap();
    let after = total(&server);
    assert!((after - before + 1.25).abs() < HOUR, "{before} {after}");
    let bill = server.cli(&["bill", ANN]).unwrap();
    let header = bill.lines().next().unwrap();
    let header: Vec<_> = header.split_whitespace().collect();
    let columns = ["NAME", "INSTANCE", "FLAVOR", "SIZE", "USD", "REASON"];
    assert_eq!(header, columns);
    let shown = |parts: &[&str]| {
        let mut lines = bill.lines();
        lines.any(|line| parts.iter().all(|part| line.contains(part)))
    };
    let known = [name, id, "base", "1 vCPU, 1 GiB, 10 GiB"];
    assert!(shown(&known), "{bill}");
    let corrected = ["correction 20", "(-1.250000000)", "an outage of two hours"];
    assert!(shown(&corrected), "{bill}");
    let events = server.cli(&["events", id]).unwrap();
    assert!(events.contains("bill-corrected"), "{events}");
    has(&events, "-1.250000000 USD: an outage of two hours");
    for (instance, amount, reason, named) in [
        (name, "much", "why", "decimal"),
        (name, "0", "why", "must not be 0"),
        (name, "1.0000000001", "why", "nine decimals"),
        (name, "1", " ", "reason"),
        (name, "1", "two\nlines", "reason"),
        ("nobody", "1", "why", "instance"),
    ] {
        let error = correct(&server, instance, amount, reason)
            .unwrap_err()
            .to_string();
        assert!(error.contains(named), "{named}: {error}");
    }
    api.delete(id).is(204);
    until_says(&server, &["events", id], "purged");
    let bill = server.cli(&["bill", ANN]).unwrap();
    let line = bill.lines().find(|line| line.contains(id)).unwrap();
    known.iter().for_each(|part| has(line, part));
    let ended = total(&server);
    server.terminate().unwrap();
    correct(&server, id, "0.000000001", "rounding").unwrap();
    assert!((total(&server) - ended - 1e-9).abs() < 1e-12);
    let events = server.cli(&["events", id]).unwrap();
    has(events.lines().last().unwrap(), "bill-corrected");
    server.run().unwrap();
}

#[test]
fn rates_of_the_configuration_are_exact_decimals() {
    let rates = "[rates.general-purpose]\nvcpu = 0.1\nram = \"0.000000001\"\nstorage = 0.3\n";
    let (_server, api) = start_under(rates, "");
    let created = api.small_container().unwrap();
    assert_eq!(created["vcpu_cost_hourly_usd"].to_string(), "0.1");
    assert_eq!(created["ram_cost_hourly_usd"].to_string(), "1e-9");
    assert_eq!(created["storage_cost_hourly_usd"].to_string(), "0.3");
    assert_eq!(created["gpu_cost_hourly_usd"], 0.0);
}
