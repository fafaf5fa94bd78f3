//! Limits of CPU, memory, processes and disk, as seen from the instance.

use crate::context::Context;
use anyhow::{Result, ensure};
use serde_json::json;
use wharf_tests::{Login, small};

/// Reads a limit under cgroups v2 or v1.
const CPU: &str = "cat /sys/fs/cgroup/cpu.max 2>/dev/null || \
    echo $(cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us) $(cat /sys/fs/cgroup/cpu/cpu.cfs_period_us)";
const MEMORY: &str = "cat /sys/fs/cgroup/memory.max 2>/dev/null || \
    cat /sys/fs/cgroup/memory/memory.limit_in_bytes";
const PIDS: &str = "cat /sys/fs/cgroup/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids/pids.max";

pub fn seen_from_inside(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let mut body = small("container");
    body["n_vcpus"] = json!(3);
    body["mem_gib"] = json!(2);
    body["name"] = json!("limited");
    api.create(&body)?.expect(201)?;
    let running = api.wait_for("limited", "running")?;
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    let login = Login::Password(password);
    let check = || -> Result<()> {
        let cpu = login.output(&running, CPU)?;
        let cpu: Vec<f64> = cpu
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        ensure!((cpu[0] / cpu[1] - 3.0).abs() < 0.01, "{cpu:?}");
        ensure!(login.output(&running, MEMORY)? == (2_u64 << 30).to_string());
        ensure!(login.output(&running, PIDS)? == "4096");
        Ok(())
    };
    check()?;
    // The limits stay in effect after a restart.
    api.act("limited", "stop")?.expect(200)?;
    api.act("limited", "restart")?.expect(200)?;
    api.wait_for("limited", "running")?;
    login.wait_for_login(&running)?;
    check()?;
    // Memory beyond the limit is not available.
    let greedy = "python3 -c 'x = b\"x\" * (3 << 30)'";
    ensure!(
        !login.run(&running, greedy)?.status.success(),
        "3 GiB fit into 2"
    );
    ensure!(login.output(&running, "echo alive")? == "alive");
    // Capabilities are the engine's default without raw sockets.
    let raw = "sudo python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'";
    ensure!(
        !login.run(&running, raw)?.status.success(),
        "raw sockets are allowed"
    );
    // Root in the instance is unprivileged on the node, on all engines that support it.
    let map = login.output(&running, "cat /proc/self/uid_map")?;
    let outside = map.split_whitespace().nth(1).unwrap_or("0");
    ensure!(
        (outside != "0") == context.remaps_root(),
        "root inside is {outside} on the node: {map}"
    );
    api.delete("limited")?.expect(204)?;
    server.finish()
}

pub fn disk(context: &Context) -> Result<()> {
    if !context.enforces_disk_size() {
        println!("SKIPPED: this kernel has no btrfs, so the engine cannot limit disks");
        ensure!(
            std::env::var_os("CI").is_none(),
            "the disk limit must be tested in CI"
        );
        return Ok(());
    }
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let created = api.small_container()?;
    let uuid = created["uuid"].as_str().unwrap_or_default();
    let running = api.wait_for(uuid, "running")?;
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    let login = Login::Password(password);
    // The instance can use all of it: the image does not count.
    login.output(&running, "fallocate -l 10G ~/ten && rm ~/ten")?;
    let output = login.run(&running, "fallocate -l 12G ~/twelve")?;
    ensure!(!output.status.success(), "12 GiB fit on a disk of 10");
    api.delete(uuid)?.expect(204)?;
    server.finish()
}
