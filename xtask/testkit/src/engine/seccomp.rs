//! The profile of system calls for the instances of a private dockerd on btrfs: that of Docker without the requests
//! of btrfs. Any user could make a subvolume within a disk by them, and no limit applies there.
//!
//! No package has Docker's profile as a file. Podman's allows more, such as a user namespace for any user. So the
//! profile has Podman's list of harmless calls without those of Docker's own rules.

use crate::packages::{self, Need};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Podman's profile.
const NEED: Need = Need {
    program: "/usr/share/containers/seccomp.json",
    package: "golang-github-containers-common",
    why: "the system calls that instances may use",
};
const ALLOW: &str = "SCMP_ACT_ALLOW";
/// The type of the requests of btrfs, as requests have it.
const BTRFS: u64 = 0x94 << 8;
/// The flags of `clone` that make a namespace.
const NAMESPACES: u64 = 0x7e02_0000;
/// The family of sockets between a virtual machine and its host, which no network namespace confines.
const AF_VSOCK: u64 = 40;
const ENOSYS: u64 = 38;
const EPERM: u64 = 1;
/// The calls that Docker allows only with a capability.
const PRIVILEGED: [(&str, &[&str]); 4] = [
    (
        "CAP_SYS_ADMIN",
        &[
            "bpf",
            "clone",
            "clone3",
            "fanotify_init",
            "fsconfig",
            "fsmount",
            "fsopen",
            "fspick",
            "lookup_dcookie",
            "mount",
            "mount_setattr",
            "move_mount",
            "name_to_handle_at",
            "open_tree",
            "perf_event_open",
            "quotactl",
            "quotactl_fd",
            "setdomainname",
            "sethostname",
            "setns",
            "syslog",
            "umount",
            "umount2",
            "unshare",
        ],
    ),
    ("CAP_SYS_BOOT", &["reboot"]),
    ("CAP_SYS_NICE", &["get_mempolicy", "mbind", "set_mempolicy"]),
    ("CAP_SYS_PTRACE", &["pidfd_getfd"]),
];
/// The calls that Docker never allows, and those that have rules of their own here.
const OTHERS: [&str; 6] = [
    "add_key",
    "ioctl",
    "keyctl",
    "pivot_root",
    "request_key",
    "socket",
];
/// Harmless calls that Podman refuses.
const MORE: [&str; 3] = ["futex_waitv", "io_pgetevents", "vmsplice"];

/// Installs Podman's profile.
pub(super) fn install() -> Result<()> {
    packages::ensure_unless(&[NEED], |need| Path::new(need.program).is_file())
}

/// The profile.
pub(super) fn profile() -> Result<Value> {
    let packaged = fs::read_to_string(NEED.program).context(NEED.program)?;
    of(serde_json::from_str(&packaged)?)
}

fn of(mut profile: Value) -> Result<Value> {
    let rules = profile
        .pointer_mut("/syscalls")
        .and_then(Value::as_array_mut);
    let rules = rules.context("the profile has no rules")?;
    // A refusal is the default.
    rules.retain(|rule| rule.pointer("/action").and_then(Value::as_str) == Some(ALLOW));
    let privileged = PRIVILEGED.iter().flat_map(|(_, names)| names.iter());
    let own: Vec<_> = privileged.chain(&OTHERS).copied().collect();
    for rule in rules.iter_mut() {
        if let Some(names) = rule.pointer_mut("/names").and_then(Value::as_array_mut) {
            names.retain(|name| name.as_str().is_some_and(|name| !own.contains(&name)));
        }
    }
    rules.retain(|rule| rule.pointer("/names/0").is_some());
    rules.push(json!({ "names": MORE, "action": ALLOW }));
    rules.extend(PRIVILEGED.map(|(capability, names)| {
        json!({ "names": names, "action": ALLOW, "includes": { "caps": [capability] } })
    }));
    let unprivileged = json!({ "caps": ["CAP_SYS_ADMIN"] });
    rules.push(json!({
        "names": ["clone"],
        "action": ALLOW,
        "args": [{ "index": 0, "op": "SCMP_CMP_MASKED_EQ", "value": NAMESPACES, "valueTwo": 0 }],
        "excludes": unprivileged,
    }));
    // The flags of `clone3` are in memory, where no rule sees them. Programs then use `clone`.
    rules.push(json!({
        "names": ["clone3"],
        "action": "SCMP_ACT_ERRNO",
        "errnoRet": ENOSYS,
        "excludes": unprivileged,
    }));
    rules.push(json!({
        "names": ["socket"],
        "action": ALLOW,
        "args": [{ "index": 0, "op": "SCMP_CMP_NE", "value": AF_VSOCK }],
    }));
    // A rule that denies has no effect beside one that allows. So a rule for each bit of the type allows the
    // requests that differ in it.
    rules.extend((8..16).map(|bit| {
        let mask = 1_u64 << bit;
        json!({
            "names": ["ioctl"],
            "action": ALLOW,
            "args": [{
                "index": 1, "op": "SCMP_CMP_MASKED_EQ", "value": mask, "valueTwo": !BTRFS & mask,
            }],
        })
    }));
    let keys = profile
        .as_object_mut()
        .context("the profile is no object")?;
    keys.remove("defaultErrno");
    keys.insert("defaultErrnoRet".to_owned(), EPERM.into());
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_of_a_rule_of_its_own_is_allowed_by_the_list() {
        let names = [
            "read", "clone", "unshare", "mount", "setns", "keyctl", "socket", "ioctl", "reboot",
        ];
        let packaged = json!({ "defaultErrno": "ENOSYS", "syscalls": [
            { "names": ["swapon"], "action": "SCMP_ACT_ERRNO" },
            { "names": names, "action": ALLOW, "args": [], "includes": {}, "excludes": {} },
            { "names": ["setns", "bpf"], "action": ALLOW, "includes": { "caps": ["CAP_SYS_ADMIN"] } },
        ] });
        let made = of(packaged).unwrap();
        let rules = made["syscalls"].as_array().unwrap();
        let is_free = |rule: &&Value| {
            rule["args"].as_array().is_none_or(Vec::is_empty)
                && rule.pointer("/includes/caps").is_none()
                && rule["action"] == ALLOW
        };
        let free: Vec<_> = rules.iter().filter(is_free).collect();
        assert_eq!(free.len(), 2, "{free:?}");
        assert_eq!(free[0]["names"], json!(["read"]));
        assert_eq!(free[1]["names"], json!(MORE));
        assert_eq!(made["defaultErrnoRet"], 1);
        assert!(made.get("defaultErrno").is_none());
        // Each request of btrfs meets no rule, and any other type meets one.
        let allows = |request: u64| {
            rules.iter().any(|rule| {
                let argument = &rule["args"][0];
                rule["names"] == json!(["ioctl"])
                    && request & argument["value"].as_u64().unwrap()
                        == argument["valueTwo"].as_u64().unwrap()
            })
        };
        for kind in 0..=0xff_u64 {
            assert_eq!(allows(0x5000_0001 | (kind << 8)), kind != 0x94, "{kind:#x}");
        }
    }
}
