//! The traces of an engine whose names do not tell it from others: chains, bridges, lxcfs.

use anyhow::Result;
use std::fs::File;
use wharf_testkit::process::{command, output};

/// The lock of the engines that share lxcfs.
const LXCFS: &str = "/run/wharf-lxcfs.lock";

/// One line for each trace.
#[derive(Debug)]
pub struct Traces(Vec<String>);

impl Traces {
    pub fn read() -> Result<Self> {
        let mut traces = Vec::new();
        let mut table = String::new();
        for line in output(command("nft").args(["list", "chains"]))?.lines() {
            match line.strip_prefix("table ") {
                Some(name) => table = name.trim_end_matches([' ', '{']).to_owned(),
                None if line.contains("chain ") => traces.push(format!("{table}{line}")),
                None => {}
            }
        }
        let links = output(command("ip").args(["-oneline", "link"]))?;
        // The bridges of instances, and the links of containers.
        let is_ours = |line: &&str| line.contains(": whf") || line.contains(": veth");
        let links = links.lines().filter(is_ours);
        let name = |line: &str| line.split(' ').nth(1).map(|name| format!("link {name}"));
        traces.extend(links.filter_map(name));
        let mounts = crate::read("/proc/self/mountinfo");
        let mounts = mounts.lines().filter(|line| line.contains("lxcfs"));
        traces.extend(mounts.map(|line| format!("mount {line}")));
        let processes = output(command("ps").args(["-eo", "stat=,pid=,comm="]))?;
        let engines = [
            "dockerd",
            "containerd",
            "containerd-shim",
            "incusd",
            "lxcfs",
        ];
        let is_of_engine = |line: &&str| {
            let name = line.split_whitespace().last().unwrap_or_default();
            engines.contains(&name) && !line.starts_with('Z')
        };
        let processes = processes.lines().filter(is_of_engine);
        let without_state = |line: &str| {
            line.split_whitespace()
                .skip(1)
                .collect::<Vec<_>>()
                .join(" ")
        };
        traces.extend(processes.map(|line| format!("process {}", without_state(line))));
        for parameter in ["ip_forward", "conf/all/arp_notify"] {
            let path = format!("/proc/sys/net/ipv4/{parameter}");
            traces.push(format!("{parameter} {}", crate::read(path).trim()));
        }
        // Engines share lxcfs, and the last one ends it.
        if File::create(LXCFS)?.try_lock().is_err() {
            traces.retain(|trace| !trace.contains("lxcfs"));
        }
        Ok(Self(traces))
    }

    /// The traces that were not there before.
    pub fn more_than(&self, before: &Self) -> Vec<String> {
        let is_new = |trace: &&String| !before.0.contains(trace);
        self.0.iter().filter(is_new).cloned().collect()
    }
}
