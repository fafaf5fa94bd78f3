//! Limits of CPU, memory, processes and disk, as seen from the instance.

use crate::context::EngineContext;
use crate::lab::{Lab, Neighbours, SIZE, inside};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Reads a limit under cgroups v2 or v1.
const CPU: &str = "cat /sys/fs/cgroup/cpu.max 2>/dev/null || \
    echo $(cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us) $(cat /sys/fs/cgroup/cpu/cpu.cfs_period_us)";
const MEMORY: &str = "cat /sys/fs/cgroup/memory.max 2>/dev/null || \
    cat /sys/fs/cgroup/memory/memory.limit_in_bytes";
const PIDS: &str = "cat /sys/fs/cgroup/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids/pids.max";
/// Prints the kind of the quotas at a mount point of btrfs.
pub const QUOTAS: &str =
    "cat /sys/fs/btrfs/$(btrfs filesystem show $1 | sed -n 's/.*uuid: //p')/qgroups/mode";
/// The file of a kernel that has simple quotas.
const SIMPLE: &str = "/sys/fs/btrfs/features/simple_quota";

/// Checks the limits of a container's control group.
pub fn of_control_group(instance: &Value, (n_vcpus, mem_gib): (u32, u32)) -> Result<()> {
    let read = |files: &str| inside(instance, files);
    let cpu = read(CPU)?;
    let cpu = cpu.split_whitespace().map(str::parse);
    let cpu: Vec<f64> = cpu.collect::<Result<_, _>>()?;
    ensure!(
        (cpu[0] / cpu[1] - f64::from(n_vcpus)).abs() < 0.01,
        "{cpu:?} is not {n_vcpus}"
    );
    let memory = read(MEMORY)?;
    ensure!(
        memory == (u64::from(mem_gib) << 30).to_string(),
        "{memory} is not {mem_gib} GiB"
    );
    let processes = read(PIDS)?;
    ensure!(processes == "4096", "{processes} processes");
    Ok(())
}

pub fn seen_from_inside(lab: &impl Lab, all: &mut Neighbours) -> Result<()> {
    lab.has_size(&all.mine, SIZE)?;
    // Memory beyond the limit is not available.
    let greedy = "python3 -c 'x = b\"x\" * (2 << 30)'";
    ensure!(inside(&all.other, greedy).is_err(), "2 GiB fit into 1");
    ensure!(inside(&all.other, "echo alive")? == "alive");
    if lab.facts().drops_raw_sockets {
        let raw =
            "sudo python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'";
        ensure!(inside(&all.mine, raw).is_err(), "raw sockets are allowed");
    }
    // Root of an instance is an account without rights on the node, where the engine supports it.
    let root = |instance: &Value| {
        let map = inside(instance, "cat /proc/self/uid_map")?;
        let outside = map.split_whitespace().nth(1);
        Ok::<_, anyhow::Error>(outside.context("no map")?.to_owned())
    };
    let roots = [root(&all.mine)?, root(&all.other)?];
    let facts = lab.facts();
    for outside in &roots {
        ensure!(
            (outside != "0") == facts.remaps_root,
            "root inside is {outside} on the node"
        );
    }
    ensure!(
        !facts.maps_each_alone || roots[0] != roots[1],
        "both are {}",
        roots[0]
    );
    Ok(())
}

pub fn disk(lab: &impl Lab, all: &mut Neighbours) -> Result<()> {
    if !lab.facts().enforces_disk_size {
        println!("SKIPPED: this kernel has no btrfs, so the engine cannot limit disks");
        ensure!(
            std::env::var_os("CI").is_none(),
            "the disk limit must be tested in CI"
        );
        return Ok(());
    }
    // The instance can use all of it: the image does not count where it is shared.
    let fits = lab.facts().usable_disk_mib;
    inside(
        &all.mine,
        &format!("fallocate -l {fits}M ~/ten && rm ~/ten"),
    )?;
    ensure!(
        inside(&all.mine, "fallocate -l 12G ~/twelve").is_err(),
        "12 GiB fit on a disk of 10"
    );
    inside(&all.mine, "rm -f ~/twelve").map(drop)
}

/// Checks that a private engine has simple quotas, where the kernel has them: full ones lose count after restores.
pub fn are_simple(quotas: impl FnOnce() -> Result<String>) -> Result<()> {
    if !Path::new(SIMPLE).exists() {
        println!("SKIPPED: this kernel has no simple quotas");
        return Ok(());
    }
    let quotas = quotas()?;
    ensure!(quotas.trim() == "squota", "{quotas}");
    Ok(())
}

/// See [`are_simple`].
pub fn quotas(engine: &EngineContext) -> Result<()> {
    are_simple(|| {
        let store = engine.store();
        let data = store.parent().context("no mount point")?;
        let mut shell = Command::new("sh");
        let output = shell.args(["-ec", QUOTAS, "sh"]).arg(data).output()?;
        ensure!(output.status.success(), "{QUOTAS}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    })
}
