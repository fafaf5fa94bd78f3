//! Conversion of Podman's own creation body to Docker's, so that one set of rules checks both.

use super::own_name;
use crate::policy::Refusal;
use crate::policy::json::Node;
use serde_json::{Map, Value, json};
use wharf_requests::CallScope;

/// The body in Docker's form. Its name must be that of the call's container.
pub fn as_docker(body: &Value, scope: &CallScope) -> Result<Value, Refusal> {
    let (mut docker, mut host) = (Map::new(), Map::new());
    let mut named = false;
    for (key, member) in Node::root(body).members()? {
        let copied = match key {
            "image" => "Image",
            "hostname" => "Hostname",
            "labels" => "Labels",
            "command" => "Cmd",
            _ => "",
        };
        if !copied.is_empty() {
            docker.insert(copied.to_owned(), member.value().clone());
            continue;
        }
        let (key, value) = match key {
            "name" => {
                own_name(scope, member.text()?)?;
                named = true;
                continue;
            }
            "env" => {
                docker.insert("Env".to_owned(), environment(&member)?);
                continue;
            }
            "netns" => {
                only(&member, "nsmode", "bridge")?;
                continue;
            }
            "networks" => {
                let (mode, endpoints) = networks(&member)?;
                docker.insert("NetworkingConfig".to_owned(), endpoints);
                ("NetworkMode", mode)
            }
            "portmappings" => ("PortBindings", ports(&member)?),
            "resource_limits" => {
                resources(&member, &mut host)?;
                continue;
            }
            "storage_opts" => ("StorageOpt", member.value().clone()),
            "shm_size" => ("ShmSize", member.value().clone()),
            "sysctl" => ("Sysctls", member.value().clone()),
            "mounts" => ("Mounts", mounts(&member)?),
            "cap_drop" => ("CapDrop", member.value().clone()),
            "dns_server" => ("Dns", member.value().clone()),
            "restart_policy" => ("RestartPolicy", json!({ "Name": member.text()? })),
            "log_configuration" => ("LogConfig", log(&member)?),
            "r_limits" => ("Ulimits", limits(&member)?),
            "userns" => ("UsernsMode", user_namespace(&member)?),
            "devices" => ("DeviceRequests", devices(&member)?),
            "no_new_privileges" => {
                member.is_bool(true)?;
                ("SecurityOpt", json!(["no-new-privileges"]))
            }
            _ => return member.unlisted(),
        };
        host.insert(key.to_owned(), value);
    }
    if !named {
        return Err(Node::root(body).refuse("name is required"));
    }
    docker.insert("HostConfig".to_owned(), host.into());
    Ok(docker.into())
}

/// An object with one member of this value.
fn only(object: &Node<'_>, wanted: &str, value: &str) -> Result<(), Refusal> {
    for (key, member) in object.members()? {
        match key == wanted {
            true => member.is(value)?,
            false => return member.unlisted(),
        }
    }
    Ok(())
}

fn environment(env: &Node<'_>) -> Result<Value, Refusal> {
    let entries = env
        .members()?
        .map(|(name, value)| Ok(json!(format!("{name}={}", value.text()?))));
    entries.collect()
}

/// One network with an address.
fn networks(networks: &Node<'_>) -> Result<(Value, Value), Refusal> {
    let mut all = networks.members()?;
    let (Some((name, options)), None) = (all.next(), all.next()) else {
        return Err(networks.refuse("one network only"));
    };
    let mut endpoint = Map::new();
    for (key, member) in options.members()? {
        match key {
            "static_ips" => {
                let mut items = member.items()?;
                let (Some(item), None) = (items.next(), items.next()) else {
                    return Err(member.refuse("one address only"));
                };
                let address = json!({ "IPv4Address": item.text()? });
                endpoint.insert("IPAMConfig".to_owned(), address);
            }
            "static_mac" => {
                endpoint.insert("MacAddress".to_owned(), json!(member.text()?));
            }
            _ => return member.unlisted(),
        }
    }
    if !endpoint.contains_key("IPAMConfig") {
        return Err(options.refuse("static_ips is required"));
    }
    let endpoints = json!({ "EndpointsConfig": { name: endpoint } });
    Ok((json!(name), endpoints))
}

fn ports(mappings: &Node<'_>) -> Result<Value, Refusal> {
    let mut bindings = Map::new();
    for mapping in mappings.items()? {
        let (mut inside, mut binding) = (None, Map::new());
        for (key, member) in mapping.members()? {
            match key {
                "container_port" => inside = Some(number(&member)?),
                "host_port" => {
                    let port = json!(number(&member)?.to_string());
                    binding.insert("HostPort".to_owned(), port);
                }
                "host_ip" => {
                    binding.insert("HostIp".to_owned(), json!(member.text()?));
                }
                "protocol" => member.is("tcp")?,
                _ => return member.unlisted(),
            }
        }
        let inside = inside.ok_or_else(|| mapping.refuse("container_port is required"))?;
        let key = format!("{inside}/tcp");
        let list = bindings.entry(key).or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(binding.into());
        }
    }
    Ok(bindings.into())
}

fn resources(limits: &Node<'_>, host: &mut Map<String, Value>) -> Result<(), Refusal> {
    for (key, member) in limits.members()? {
        for (inner, amount) in member.members()? {
            let docker = match (key, inner) {
                ("cpu", "quota") => "CpuQuota",
                ("cpu", "period") => "CpuPeriod",
                ("memory", "limit") => "Memory",
                ("memory", "swap") => "MemorySwap",
                ("pids", "limit") => "PidsLimit",
                _ => return amount.unlisted(),
            };
            host.insert(docker.to_owned(), amount.value().clone());
        }
    }
    Ok(())
}

fn log(config: &Node<'_>) -> Result<Value, Refusal> {
    let mut docker = Map::new();
    for (key, member) in config.members()? {
        match key {
            "driver" => docker.insert("Type".to_owned(), json!(member.text()?)),
            "size" => {
                let size = number(&member)?.to_string();
                docker.insert("Config".to_owned(), json!({ "max-size": size }))
            }
            _ => return member.unlisted(),
        };
    }
    Ok(docker.into())
}

fn limits(limits: &Node<'_>) -> Result<Value, Refusal> {
    let mut all = Vec::new();
    for limit in limits.items()? {
        let mut docker = Map::new();
        for (key, member) in limit.members()? {
            let key = match key {
                "type" => "Name",
                "soft" => "Soft",
                "hard" => "Hard",
                _ => return member.unlisted(),
            };
            docker.insert(key.to_owned(), member.value().clone());
        }
        all.push(docker.into());
    }
    Ok(Value::Array(all))
}

fn user_namespace(namespace: &Node<'_>) -> Result<Value, Refusal> {
    let (mut mode, mut value) = ("", "");
    for (key, member) in namespace.members()? {
        match key {
            "nsmode" => mode = member.text()?,
            "value" => value = member.text()?,
            _ => return member.unlisted(),
        }
    }
    Ok(match value {
        "" => json!(mode),
        value => json!(format!("{mode}:{value}")),
    })
}

/// Bind mounts that are read-only.
fn mounts(mounts: &Node<'_>) -> Result<Value, Refusal> {
    let mut all = Vec::new();
    for mount in mounts.items()? {
        let mut docker = Map::new();
        for (key, member) in mount.members()? {
            let (key, value) = match key {
                "type" => ("Type", member.value().clone()),
                "source" => ("Source", member.value().clone()),
                "destination" => ("Target", member.value().clone()),
                "options" if *member.value() == json!(["ro"]) => ("ReadOnly", json!(true)),
                _ => return member.unlisted(),
            };
            docker.insert(key.to_owned(), value);
        }
        all.push(docker.into());
    }
    Ok(Value::Array(all))
}

/// Devices by their CDI names; paths are refused.
fn devices(devices: &Node<'_>) -> Result<Value, Refusal> {
    let mut names = Vec::new();
    for device in devices.items()? {
        for (key, member) in device.members()? {
            match key {
                "path" => names.push(json!(member.text()?)),
                _ => return member.unlisted(),
            }
        }
    }
    Ok(json!([{ "Driver": "cdi", "DeviceIDs": names }]))
}

fn number(node: &Node<'_>) -> Result<u64, Refusal> {
    let number = node.value().as_u64();
    number.ok_or_else(|| node.refuse("not a whole number"))
}
