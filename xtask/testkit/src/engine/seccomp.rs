//! The profile of system calls for the instances of a private dockerd: the packaged one without the requests of
//! btrfs. Any user could make a subvolume within a disk by them, and no limit applies there.

use crate::packages::{self, Need};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The packaged profile, which is Docker's own.
const NEED: Need = Need {
    program: "/usr/share/containers/seccomp.json",
    package: "golang-github-containers-common",
    why: "the system calls that instances may use",
};
/// The type of the requests of btrfs, as requests have it.
const BTRFS: u64 = 0x94 << 8;

/// Installs the packaged profile.
pub(super) fn install() -> Result<()> {
    packages::ensure_unless(&[NEED], |need| Path::new(need.program).is_file())
}

/// The profile. A rule that denies has no effect beside one that allows. So a rule for each bit of the type allows
/// the requests that differ in it.
pub(super) fn profile() -> Result<Value> {
    let packaged = fs::read_to_string(NEED.program).context(NEED.program)?;
    let mut profile: Value = serde_json::from_str(&packaged)?;
    let rules = profile
        .pointer_mut("/syscalls")
        .and_then(Value::as_array_mut);
    let rules = rules.context("the profile has no rules")?;
    for rule in rules.iter_mut() {
        if let Some(names) = rule.pointer_mut("/names").and_then(Value::as_array_mut) {
            names.retain(|name| name != "ioctl");
        }
    }
    rules.extend((8..16).map(|bit| {
        let mask = 1_u64 << bit;
        json!({
            "names": ["ioctl"],
            "action": "SCMP_ACT_ALLOW",
            "args": [{
                "index": 1, "op": "SCMP_CMP_MASKED_EQ", "value": mask, "valueTwo": !BTRFS & mask,
            }],
        })
    }));
    Ok(profile)
}
