//! A database of the version with format 5 goes on with its engine, and so does a configuration with every
//! setting. That version recorded the expected answers.

use crate::{Expected, until_true};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use wharf_tests::{Api, Authority, Server, write_private};

/// Outside the ranges of the other tests: the machines of the engine listen on ports of the fixture.
const PORTS: &str = "[ssh_ports]\nfrom = 19100\nto = 19199\n[web]\nfrom = 19200\nto = 19299\n";

/// The records are of a day, and are kept whatever the date of the test is.
const KEPT: &str = "[clock]\nmax_gap_days = 36500\n\
    [retention]\nevents_days = 36500\nledger_months = 1200\naudit_days = 0\n\
    [webhook]\nhttp = true\nallow = [\"127.0.0.0/8\"]\n";

fn fixture(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("rest/fixtures/format-5");
    dir.join(name)
}

fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = GzDecoder::new(fs::File::open(fixture(name)).unwrap());
    std::io::copy(&mut file, &mut bytes).unwrap();
    bytes
}

/// A server of the fixture's database and engine that does not run yet.
pub fn stopped_server() -> Server {
    let node = |engine: &str| {
        format!(
            "[[node]]\nname = \"one\"\ndriver = \"simulated\"\nendpoint = \"{engine}\"\n\
             capacity = {{ n_vcpus = 64, mem_gib = 128, disk_size_gib = 2000 }}\n\
             gpus = [{{ model = \"H100\", count = 4 }}]\npublic_ipv4 = [\"203.0.113.0/28\"]\n"
        )
    };
    let mut server = crate::serve(&format!("{PORTS}{KEPT}{}", node("simulated:")));
    server.terminate().unwrap();
    let engine = server.data_dir().join("engine");
    write_private(&engine, &unpacked("engine.gz")).unwrap();
    let settings = fs::read_to_string(server.config_path()).unwrap();
    let endpoint = format!("simulated://{}", engine.display());
    fs::write(
        server.config_path(),
        settings.replace("simulated:", &endpoint),
    )
    .unwrap();
    let key = fs::read(fixture("secret.key")).unwrap();
    write_private(&server.data_dir().join("secret.key"), &key).unwrap();
    let database = unpacked("wharf.redb.gz");
    write_private(&server.data_dir().join("wharf.redb"), &database).unwrap();
    server
}

/// The recorded keys of users, and answers.
pub fn expected() -> Value {
    serde_json::from_slice(&unpacked("expected.json.gz")).unwrap()
}

/// Whether everything of a recorded value is there. A later version adds fields and records.
fn has_all(found: &Value, recorded: &Value) -> bool {
    match (found, recorded) {
        (Value::Object(found), Value::Object(recorded)) => recorded.iter().all(|(name, value)| {
            let found = found.get(name);
            found.is_some_and(|found| has_all(found, value))
        }),
        (Value::Array(found), Value::Array(recorded)) => {
            let mut found = found.iter();
            let mut recorded = recorded.iter();
            recorded.all(|value| found.any(|found| has_all(found, value)))
        }
        // That version had nothing to say.
        (_, Value::Null) => true,
        (found, recorded) => found == recorded,
    }
}

/// Checks each recorded answer. Returns the number of those that were a 500 instead.
pub fn errors_beside_recorded(server: &Server) -> anyhow::Result<usize> {
    let expected = expected();
    let mut errors = 0;
    for recorded in expected["answers"].as_array().unwrap() {
        let (user, path) = (&recorded["user"], recorded["path"].as_str().unwrap());
        let found = api(server, user.as_str().unwrap()).get(path)?;
        if found.status == 500 {
            errors += 1;
            continue;
        }
        let (found, recorded) = (found.is(200), &recorded["body"]);
        assert!(
            has_all(&found, recorded),
            "{path} of {user}: {found:#}\nis not as recorded: {recorded:#}"
        );
    }
    Ok(errors)
}

/// A client with the recorded key of a user.
pub fn api(server: &Server, user: &str) -> Api {
    let key = expected()["keys"][user].as_str().unwrap().to_owned();
    Api::new(server.base_url(), &key)
}

#[test]
fn a_database_of_the_last_version_is_listed_and_billed_alike() {
    let mut server = stopped_server();
    for _ in 0..2 {
        server.run().unwrap();
        assert_eq!(errors_beside_recorded(&server).unwrap(), 0);
        for (user, total) in [("ann", "25.750933676"), ("bob", "0.575828545")] {
            let email = format!("{user}@example.com");
            let period = ["--from", "2026-11-01", "--to", "2026-11-07T16:27:00Z"];
            let bill = server
                .cli(&[["bill", &email].as_slice(), &period].concat())
                .unwrap();
            assert!(bill.trim_end().ends_with(total), "{bill}");
        }
        server.terminate().unwrap();
        server.cli(&["fsck"]).unwrap();
    }
    server.run().unwrap();
}

#[test]
fn a_configuration_with_every_setting_of_the_last_version_is_served() {
    let mut server = crate::serve(&wharf_tests::simulated_node("one", ""));
    server.terminate().unwrap();
    let dir = server.config_path().parent().unwrap().to_owned();
    fs::create_dir(dir.join("plugins")).unwrap();
    let authority = Authority::new().unwrap();
    let names = ["wharf.example.org", "127.0.0.1"];
    let made = authority.issue("server", &names).unwrap();
    for (name, from) in [
        ("server.pem", &made.cert),
        ("client.pem", &made.cert),
        ("authority.pem", &authority.ca()),
    ] {
        fs::copy(from, dir.join(name)).unwrap();
    }
    let key = fs::read(&made.key).unwrap();
    for name in ["server.key", "client.key"] {
        write_private(&dir.join(name), &key).unwrap();
    }
    write_private(&dir.join("oidc.secret"), b"secret\n").unwrap();
    fs::copy(fixture("wharf.toml"), server.config_path()).unwrap();
    server.run().unwrap();
    assert!(server.base_url().starts_with("https://127.0.0.1:"));
    server.cli(&["key", "new", "ann@example.com"]).unwrap();
    let nodes = server.cli(&["node", "list"]).unwrap();
    for node in ["one", "two", "three"] {
        assert!(nodes.contains(node), "{nodes}");
    }
    for retired in [
        "clock.max_step_s",
        "limits.answer_cache_mib",
        "limits.body_timeout_ms",
        "limits.connections_per_local_peer",
        "limits.event_streams",
        "limits.header_timeout_ms",
        "limits.queue_per_node",
        "limits.request_burst",
        "limits.shutdown_timeout_ms",
        "limits.streams_per_connection",
    ] {
        until_true("the log names the settings without effect", || {
            server.written().contains(retired)
        });
    }
}
