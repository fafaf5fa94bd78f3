//! Limits and walls that a container must have. The host knows them from its own specification and the
//! node's settings, so a driver can neither omit nor change one.

use super::settings::Settings;
use super::{creation as creation_of, network, refuse, subject};
use crate::policy::Refusal;
use crate::policy::json::{Node, exact};
use serde_json::{Value, json};
use wharf_domain::capacity::Size;
use wharf_requests::{CallScope, CreateScope, Limits, Subject};

/// The scheduling period in microseconds; the kernel's default.
const CPU_PERIOD: u64 = 100_000;
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// Memory of a virtual machine's container beyond the machine's RAM, for QEMU.
const MACHINE_MEMORY: u64 = 384 * MIB;
/// Disk of a virtual machine's container beyond the machine's, for the image.
const MACHINE_DISK_GIB: u32 = 3;
/// Size of the console log, in Docker's notation and in bytes.
const LOG_SIZES: [&str; 2] = ["10m", "10485760"];

/// The paths of memory, swap, CPU period and CPU quota in a body.
pub type LimitPaths = [&'static str; 4];

/// Their paths in Docker's updates.
pub const DOCKER: LimitPaths = ["/Memory", "/MemorySwap", "/CpuPeriod", "/CpuQuota"];
/// Their paths in Podman's own updates.
pub const LIBPOD: LimitPaths = ["/memory/limit", "/memory/swap", "/cpu/period", "/cpu/quota"];
const CREATION: LimitPaths = [
    "/HostConfig/Memory",
    "/HostConfig/MemorySwap",
    "/HostConfig/CpuPeriod",
    "/HostConfig/CpuQuota",
];

/// Checks the body of a creation, in Docker's form.
pub fn creation(body: &Value, scope: &CallScope, settings: &Settings) -> Result<(), Refusal> {
    let (subject, creation) = (subject(scope)?, creation_of(scope)?);
    let size = size_of(subject)?;
    let is_vm = subject.vm_ports.is_some();
    limits(body, CREATION, of(size, is_vm))?;
    let pids = json!(settings.pids_limit);
    exact(body, "/HostConfig/PidsLimit", &pids)?;
    // Users are root in a container, but must not forge addresses. The process around a machine needs
    // no capability and no privilege. In a container, `sudo` gains privileges.
    let (dropped, secured) = match is_vm {
        true => (json!(["ALL"]), json!(["no-new-privileges"])),
        false => (json!(["NET_RAW"]), json!([])),
    };
    exact(body, "/HostConfig/CapDrop", &dropped)?;
    if is_vm || body.pointer("/HostConfig/SecurityOpt").is_some() {
        exact(body, "/HostConfig/SecurityOpt", &secured)?;
    }
    // Half of the RAM; a machine's QEMU needs none. Echo requests need no privilege.
    let (shared, sysctls) = match is_vm {
        true => (None, json!({ "net.ipv4.ip_unprivileged_port_start": "0" })),
        false => (
            Some(json!(u64::from(size.mem_gib) * GIB / 2)),
            json!({ "net.ipv4.ping_group_range": "0 65535" }),
        ),
    };
    match shared {
        Some(half) => exact(body, "/HostConfig/ShmSize", &half)?,
        None if body.pointer("/HostConfig/ShmSize").is_some() => {
            return Err(refuse("HostConfig.ShmSize: not for a virtual machine"));
        }
        None => {}
    }
    exact(body, "/HostConfig/Sysctls", &sysctls)?;
    log(body)?;
    disk(body, subject, size, settings)?;
    if let Some(mode) = &settings.userns {
        exact(body, "/HostConfig/UsernsMode", &json!(mode))?;
    }
    if !settings.dns.is_empty() {
        exact(body, "/HostConfig/Dns", &json!(settings.dns))?;
    }
    ulimits(body, settings)?;
    reachable(body, creation)?;
    let network = network::of(scope)?;
    // The creation has checked the name.
    let name = body.pointer("/HostConfig/NetworkMode");
    let address = format!(
        "/NetworkingConfig/EndpointsConfig/{}/IPAMConfig/IPv4Address",
        name.and_then(Value::as_str).unwrap_or_default()
    );
    exact(body, &address, &json!(network.address))
}

/// Checks the limits of an update: those of the call, or those that the container had before the call.
pub fn update(body: &Value, paths: LimitPaths, scope: &CallScope) -> Result<(), Refusal> {
    let subject = subject(scope)?;
    let wanted = of(size_of(subject)?, subject.vm_ports.is_some());
    match subject.limits_before {
        Some(before) if limits(body, paths, before).is_ok() => Ok(()),
        _ => limits(body, paths, wanted),
    }
}

/// Each port of the call is published, and each GPU of the call is attached. No other one is: the
/// values have been checked.
fn reachable(body: &Value, creation: &CreateScope) -> Result<(), Refusal> {
    const PORTS: &str = "/HostConfig/PortBindings";
    const GPUS: &str = "/HostConfig/DeviceRequests";
    for port in &creation.published {
        let wanted = json!(port.node_port.to_string());
        let inside = format!("{}/tcp", port.instance_port);
        let bindings = body.pointer(PORTS).and_then(|ports| ports.get(&inside));
        let mut bindings = bindings.and_then(Value::as_array).into_iter().flatten();
        if !bindings.any(|binding| binding.get("HostPort") == Some(&wanted)) {
            let why = format!(
                "{}: {inside} at {} is required",
                shown(PORTS),
                port.node_port
            );
            return Err(refuse(why));
        }
    }
    let requests = body.pointer(GPUS).and_then(Value::as_array);
    let ids = requests
        .into_iter()
        .flatten()
        .filter_map(|r| r.get("DeviceIDs")?.as_array());
    let attached: Vec<&Value> = ids.flatten().collect();
    for device in &creation.gpu_devices {
        if !attached.iter().any(|id| id.as_str() == Some(device)) {
            return Err(refuse(format!("{}: {device} is required", shown(GPUS))));
        }
    }
    Ok(())
}

fn size_of(subject: &Subject) -> Result<Size, Refusal> {
    subject.size.ok_or_else(|| refuse("this call has no size"))
}

fn of(size: Size, is_vm: bool) -> Limits {
    let machine = if is_vm { MACHINE_MEMORY } else { 0 };
    Limits {
        memory: u64::from(size.mem_gib)
            .saturating_mul(GIB)
            .saturating_add(machine),
        cpu_period: CPU_PERIOD,
        cpu_quota: u64::from(size.n_vcpus).saturating_mul(CPU_PERIOD),
    }
}

/// There is no swap: memory and swap together have the limit of memory.
fn limits(body: &Value, paths: LimitPaths, wanted: Limits) -> Result<(), Refusal> {
    let Limits {
        memory,
        cpu_period,
        cpu_quota,
    } = wanted;
    paths
        .into_iter()
        .zip([memory, memory, cpu_period, cpu_quota])
        .try_for_each(|(path, limit)| exact(body, path, &json!(limit)))
}

fn log(body: &Value) -> Result<(), Refusal> {
    const SIZE: &str = "/HostConfig/LogConfig/Config/max-size";
    let size = body.pointer(SIZE).and_then(Value::as_str);
    if size.is_some_and(|size| LOG_SIZES.contains(&size)) {
        return Ok(());
    }
    exact(body, SIZE, &json!(LOG_SIZES[0]))
}

/// On some engines the image counts towards the limit, or the metadata of the file system do. The image's
/// size is known from the engine's answer in this call.
fn disk(body: &Value, subject: &Subject, size: Size, settings: &Settings) -> Result<(), Refusal> {
    const SIZE: &str = "/HostConfig/StorageOpt/size";
    let is_vm = subject.vm_ports.is_some();
    let machine = if is_vm { MACHINE_DISK_GIB } else { 0 };
    let own = u64::from(size.disk_size_gib.saturating_add(machine)).saturating_mul(GIB);
    let image = subject.image_bytes;
    let room = match is_vm {
        true => 0,
        false => image.saturating_add(image / 16).saturating_add(65 * MIB),
    };
    let Some(given) = body.pointer(SIZE) else {
        return match settings.disk_limit.as_str() {
            "off" => Ok(()),
            "auto" if subject.no_disk_limit => Ok(()),
            "auto" => Err(refuse(format!(
                "{}: required until the engine refuses it",
                shown(SIZE)
            ))),
            _ => Err(refuse(format!("{}: required", shown(SIZE)))),
        };
    };
    match given.as_str().and_then(bytes) {
        Some(bytes) if (own..=own.saturating_add(room)).contains(&bytes) => Ok(()),
        _ => Err(refuse(format!(
            "{}: must be {}G, with at most {}M more for the image and for metadata",
            shown(SIZE),
            own / GIB,
            room / MIB
        ))),
    }
}

/// `10G` → 10 GiB
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix('G') {
        Some(number) => (number, GIB),
        None => (text.strip_suffix('M')?, MIB),
    };
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    number
        .parse::<u64>()
        .ok()
        .filter(|_| digits)?
        .checked_mul(unit)
}

/// The settings name both the soft and the hard limits.
fn ulimits(body: &Value, settings: &Settings) -> Result<(), Refusal> {
    let given = body.pointer("/HostConfig/Ulimits").unwrap_or(&Value::Null);
    let list = given.as_array().map(Vec::as_slice).unwrap_or_default();
    for (name, n) in &settings.ulimits {
        let wanted = json!({ "Name": name, "Soft": n, "Hard": n });
        if !list.contains(&wanted) {
            let why = format!("HostConfig.Ulimits: {name} = {n} is required");
            return Err(refuse(why));
        }
    }
    match list.len() == settings.ulimits.len() {
        true => Ok(()),
        false => Err(Node::root(given).refuse("HostConfig.Ulimits: not the node's settings")),
    }
}

fn shown(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}
