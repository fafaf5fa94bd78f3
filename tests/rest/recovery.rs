//! Wharf killed and restarted, on the simulated engine.

use crate::{Expected, start_lasting, uuid};
use anyhow::Result;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use wharf_tests::kills::{KilledEngine, Plan, converge};
use wharf_tests::{until, wharf_binary};

/// A server with the configuration in this file. Its engine is the simulated one, which ends with the server and
/// shows nothing to others.
struct Simulated(PathBuf);

impl KilledEngine for Simulated {
    fn has(&self, _: &Value, _: bool) -> Result<()> {
        Ok(())
    }

    /// The claim of the only instance ends when the engine reports the removal.
    fn gone(&self, _: &Value) -> Result<()> {
        until("the node is empty", || {
            let mut wharf = Command::new(wharf_binary());
            let list = wharf.args(["node", "list", "--config"]).arg(&self.0);
            let list = String::from_utf8(list.output()?.stdout)?;
            Ok(list.contains(" 0/16 ").then_some(()))
        })
    }
}

/// One point in each of provisioning, restart with a larger disk, and deletion. The simulator ends the process at any
/// call.
#[test]
fn operations_complete_after_kills() {
    let settings = "ready_after_ms = 100, latency_ms = 30, disk_grow = \"stopped\"";
    let (mut server, api) = start_lasting(settings);
    let plan = Plan {
        points: &[0.5],
        in_stop: false,
        grows: true,
        early_deletions: &[20],
    };
    let engine = Simulated(server.config_path());
    converge(&mut server, api, &engine, plan).unwrap();
}

#[test]
fn acknowledged_changes_survive_kill_9() {
    let (mut server, mut api) = start_lasting("ready_after_ms = 200");
    let mut made: Vec<Value> = Vec::new();
    for n in 0..6 {
        made.push(api.small_container().unwrap());
        if n % 3 == 2 {
            let oldest = made.remove(0);
            api.delete(uuid(&oldest)).is(204);
        }
        server.kill().unwrap();
        server.run().unwrap();
        api = server.again(&api);
        let listed: Vec<_> = api
            .list()
            .unwrap()
            .iter()
            .map(|i| i["uuid"].clone())
            .collect();
        let expected: Vec<_> = made.iter().map(|i| i["uuid"].clone()).collect();
        assert_eq!(listed, expected);
    }
    for instance in &made {
        let running = api.wait_for(uuid(instance), "running").unwrap();
        for field in [
            "name",
            "lan_ipv4",
            "wan_ssh_port",
            "original_service_password",
            "created_at",
        ] {
            assert_eq!(running[field], instance[field], "{field}");
        }
    }
}
