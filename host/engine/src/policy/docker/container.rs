//! Bodies that create and change containers. Unlisted keys are refused: privileges, devices, mounts,
//! capabilities and namespaces of the node.

use super::settings::Settings;
use super::{creation, network, required as walls, subject};
use crate::policy::Refusal;
use crate::policy::json::{Node, required};
use serde_json::Value;
use wharf_requests::{CallScope, CreateScope};

/// The directory of the node's lxcfs.
const LXCFS: &str = "/var/lib/lxcfs";
/// The files of the kernel that show the machine's size, which lxcfs may replace.
const SIZES: [&str; 8] = [
    "/proc/cpuinfo",
    "/proc/diskstats",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/swaps",
    "/proc/uptime",
    "/sys/devices/system/cpu/online",
];

/// `POST /containers/create`.
pub fn create(body: &Value, scope: &CallScope, settings: &Settings) -> Result<(), Refusal> {
    let creation = creation(scope)?;
    for (key, member) in Node::root(body).members()? {
        match key {
            "Image" => settings.image(member.text()?, &creation.images)?,
            "Hostname" => member.is(&creation.hostname)?,
            "Labels" => labels(&member, scope)?,
            "Env" => environment(&member, creation)?,
            "Cmd" => command(&member, creation)?,
            "ExposedPorts" => exposed(&member)?,
            "HostConfig" => host_config(&member, scope, settings)?,
            "NetworkingConfig" => networking(&member, scope)?,
            "StopSignal" => member.one_of(&["SIGTERM", "SIGPWR", "SIGRTMIN+3"])?,
            "StopTimeout" => member.between(0, 3600)?,
            "Tty" | "OpenStdin" | "StdinOnce" | "AttachStdin" | "AttachStdout" | "AttachStderr" => {
                member.is_bool(false)?;
            }
            _ => return member.unlisted(),
        }
    }
    for pointer in ["/Image", "/Labels", "/HostConfig/NetworkMode"] {
        required(body, pointer)?;
    }
    walls::creation(body, scope, settings)
}

/// `POST /containers/NAME/update`.
pub fn update(body: &Value, scope: &CallScope) -> Result<(), Refusal> {
    for (key, member) in Node::root(body).members()? {
        match key {
            "RestartPolicy" => no_restart(&member)?,
            _ if is_limit(key) => {}
            _ => return member.unlisted(),
        }
    }
    walls::update(body, walls::DOCKER, scope)
}

/// The update on Podman's own path.
pub fn libpod_update(body: &Value, scope: &CallScope) -> Result<(), Refusal> {
    for (key, member) in Node::root(body).members()? {
        for (inner, number) in member.members()? {
            match (key, inner) {
                ("cpu", "quota" | "period") | ("memory", "limit" | "swap") => {}
                _ => return number.unlisted(),
            }
        }
    }
    walls::update(body, walls::LIBPOD, scope)
}

/// The limits of creations and updates. [`walls`] checks their values.
fn is_limit(key: &str) -> bool {
    matches!(key, "Memory" | "MemorySwap" | "CpuPeriod" | "CpuQuota")
}

fn host_config(host: &Node<'_>, scope: &CallScope, settings: &Settings) -> Result<(), Refusal> {
    for (key, member) in host.members()? {
        match key {
            // The values are checked with all that must be there.
            "PidsLimit" | "CapDrop" | "SecurityOpt" | "Ulimits" | "ShmSize" | "Sysctls" => {}
            "StorageOpt" => storage(&member)?,
            _ if is_limit(key) => {}
            "NetworkMode" => {
                let network = network::of(scope)?;
                if !network::is_called(scope, network, member.text()?) {
                    member.is(&network::name(scope, network))?;
                }
            }
            "PortBindings" => bindings(&member, creation(scope)?, settings)?,
            "RestartPolicy" => no_restart(&member)?,
            "LogConfig" => log_config(&member)?,
            "Mounts" => each(&member, |item| size_file(item, scope, settings))?,
            "Devices" => each(&member, |item| device(item, scope, settings))?,
            "DeviceRequests" => each(&member, |item| gpus(&item, creation(scope)?))?,
            "Init" => member.bool()?,
            "Privileged" | "PublishAllPorts" | "AutoRemove" => member.is_bool(false)?,
            "IpcMode" | "CgroupnsMode" => member.is("private")?,
            "UsernsMode" => match &settings.userns {
                Some(mode) => member.is(mode)?,
                None => return Err(member.refuse("the node's settings name no userns")),
            },
            "Dns" => {
                for item in member.items()? {
                    if !settings
                        .dns
                        .iter()
                        .any(|server| item.text().is_ok_and(|text| text == server.to_string()))
                    {
                        return Err(item.refuse("not in the node's settings"));
                    }
                }
            }
            _ => return member.unlisted(),
        }
    }
    Ok(())
}

fn labels(labels: &Node<'_>, scope: &CallScope) -> Result<(), Refusal> {
    let tag = subject(scope)?.tag;
    let mut own = 0;
    for (key, member) in labels.members()? {
        match key {
            "io.wharf.installation" => member.is(&scope.installation)?,
            "io.wharf.instance" => member.is(&tag.instance.to_string())?,
            "io.wharf.incarnation" => member.is(&tag.incarnation.to_string())?,
            _ if key.starts_with("io.wharf.") => {
                member.text()?;
                continue;
            }
            _ => return member.unlisted(),
        }
        own += 1;
    }
    if own == 3 {
        return Ok(());
    }
    Err(labels.refuse("io.wharf.installation, .instance and .incarnation are required"))
}

fn environment(env: &Node<'_>, creation: &CreateScope) -> Result<(), Refusal> {
    for item in env.items()? {
        let text = item.text()?;
        let known = text.split_once('=').is_some_and(|(name, value)| {
            creation
                .environment
                .iter()
                .any(|(n, v)| n == name && v == value)
        });
        if !known {
            return Err(item.refuse("not in the blueprint"));
        }
    }
    Ok(())
}

fn command(cmd: &Node<'_>, creation: &CreateScope) -> Result<(), Refusal> {
    let given: Vec<_> = cmd
        .items()?
        .map(|item| item.text())
        .collect::<Result<_, _>>()?;
    if given == creation.command {
        Ok(())
    } else {
        Err(cmd.refuse("not the blueprint's"))
    }
}

fn exposed(ports: &Node<'_>) -> Result<(), Refusal> {
    for (key, member) in ports.members()? {
        port(key).ok_or_else(|| member.refuse("not a TCP port"))?;
        member.empty()?;
    }
    Ok(())
}

fn bindings(ports: &Node<'_>, creation: &CreateScope, settings: &Settings) -> Result<(), Refusal> {
    for (key, member) in ports.members()? {
        let inside = port(key).ok_or_else(|| member.refuse("not a TCP port"))?;
        for binding in member.items()? {
            let (mut address, mut outside) = (false, false);
            for (key, member) in binding.members()? {
                match key {
                    "HostIp" => {
                        member.is(&settings.publish_address.to_string())?;
                        address = true;
                    }
                    "HostPort" => {
                        let number = member.text()?.parse::<u16>().ok();
                        outside = creation
                            .published
                            .iter()
                            .any(|p| Some(p.node_port) == number && p.instance_port == inside);
                        if !outside {
                            return Err(member.refuse("not a port of this call"));
                        }
                    }
                    _ => return member.unlisted(),
                }
            }
            if !(address && outside) {
                return Err(binding.refuse("HostIp and HostPort are required"));
            }
        }
    }
    Ok(())
}

fn each(
    list: &Node<'_>,
    check: impl FnMut(Node<'_>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    list.items()?.try_for_each(check)
}

/// Checks a mount: a file of lxcfs, at the path that it replaces, read-only. No other file of the node
/// is shown in a container.
fn size_file(mount: Node<'_>, scope: &CallScope, settings: &Settings) -> Result<(), Refusal> {
    if subject(scope)?.vm_ports.is_some() || settings.lxcfs != "auto" {
        return Err(mount.refuse("not for this instance"));
    }
    for (key, member) in mount.members()? {
        match key {
            "Type" => member.is("bind")?,
            "Source" | "Target" => {}
            "ReadOnly" => member.is_bool(true)?,
            _ => return member.unlisted(),
        }
    }
    let text = |key: &str| mount.value().get(key).and_then(Value::as_str);
    let target = text("Target").filter(|target| SIZES.contains(target));
    let is_right = target.is_some_and(|target| text("Source") == Some(&format!("{LXCFS}{target}")));
    let is_whole = ["Type", "ReadOnly"].map(|key| mount.value().get(key).is_some());
    match is_right && is_whole == [true; 2] {
        true => Ok(()),
        false => Err(mount.refuse("not a file of lxcfs at its own path, read-only")),
    }
}

/// Checks a device: the node's hardware virtualisation, for a virtual machine.
fn device(device: Node<'_>, scope: &CallScope, settings: &Settings) -> Result<(), Refusal> {
    if subject(scope)?.vm_ports.is_none() || settings.kvm != "auto" {
        return Err(device.refuse("not for this instance"));
    }
    for (key, member) in device.members()? {
        match key {
            "PathOnHost" | "PathInContainer" => member.is("/dev/kvm")?,
            "CgroupPermissions" => member.is("rw")?,
            _ => return member.unlisted(),
        }
    }
    Ok(())
}

/// Checks for exactly the GPUs that the host has picked for the instance.
fn gpus(request: &Node<'_>, creation: &CreateScope) -> Result<(), Refusal> {
    for (key, member) in request.members()? {
        match key {
            "Driver" => member.is("cdi")?,
            "DeviceIDs" => {
                for item in member.items()? {
                    let device = item.text()?;
                    if !creation.gpu_devices.iter().any(|own| own == device) {
                        return Err(item.refuse("not a GPU of this call"));
                    }
                }
            }
            _ => return member.unlisted(),
        }
    }
    Ok(())
}

/// `22/tcp` → 22
fn port(key: &str) -> Option<u16> {
    key.strip_suffix("/tcp")?
        .parse()
        .ok()
        .filter(|port| *port != 0)
}

/// Refuses restart policies: an engine would start instances that a user has stopped.
fn no_restart(policy: &Node<'_>) -> Result<(), Refusal> {
    for (key, member) in policy.members()? {
        match key {
            "Name" => member.one_of(&["", "no"])?,
            "MaximumRetryCount" => member.between(0, 0)?,
            _ => return member.unlisted(),
        }
    }
    Ok(())
}

fn log_config(log: &Node<'_>) -> Result<(), Refusal> {
    for (key, member) in log.members()? {
        match key {
            "Type" => member.one_of(&["json-file", "local", "k8s-file"])?,
            "Config" => {
                for (key, member) in member.members()? {
                    match key {
                        "max-size" => member.text().map(|_| ())?,
                        _ => return member.unlisted(),
                    }
                }
            }
            _ => return member.unlisted(),
        }
    }
    Ok(())
}

/// The size alone; [`walls`] checks its value.
fn storage(options: &Node<'_>) -> Result<(), Refusal> {
    for (key, member) in options.members()? {
        if key != "size" {
            return member.unlisted();
        }
    }
    Ok(())
}

fn networking(config: &Node<'_>, scope: &CallScope) -> Result<(), Refusal> {
    let network = network::of(scope)?;
    for (key, member) in config.members()? {
        if key != "EndpointsConfig" {
            return member.unlisted();
        }
        for (name, endpoint) in member.members()? {
            if !network::is_called(scope, network, name) {
                return endpoint.unlisted();
            }
            network::endpoint(&endpoint, network)?;
        }
    }
    Ok(())
}
