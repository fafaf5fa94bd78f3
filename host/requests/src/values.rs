//! The host's values in one call.

use super::fault::Fault;
use super::file::Document;
use super::publish;
use super::scope::{CallScope, CallSubject, CreateScope, VolumeCreation};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use wharf_domain::blueprint::BlueprintFile;
use wharf_domain::driver::{InstanceNetwork, Mount, PublishedPort};

/// Characters of the short form of an installation's id.
const INSTALLATION_END: usize = 8;
/// Characters of its shortest form, which leaves room in the name of an interface.
const INSTALLATION_END_SHORT: usize = 3;
/// Bytes in a gibibyte.
const GIB: u64 = 1 << 30;

/// The values of one call.
#[derive(Debug, Clone, Copy)]
pub struct CallValues<'a> {
    pub document: &'a Document,
    pub settings: &'a BTreeMap<String, Value>,
    pub scope: &'a CallScope,
}

impl<'a> CallValues<'a> {
    /// The value of a name that needs no other part of the file.
    pub fn get(&self, name: &str) -> Result<Value, Fault> {
        let (table, key) = name.split_once('.').unwrap_or((name, ""));
        Ok(match (table, key) {
            ("settings", _) => return self.setting(key),
            ("learnt", _) => return self.learnt(key),
            ("size", _) => self.size(key)?.into(),
            ("network", _) => self.network(self.subject()?.network.as_ref(), key)?,
            ("public", _) => self.network(self.subject()?.public_network.as_ref(), key)?,
            ("installation", "") => self.scope.installation.as_str().into(),
            ("installation", "end") => end(&self.scope.installation, INSTALLATION_END).into(),
            ("installation", _) => end(&self.scope.installation, INSTALLATION_END_SHORT).into(),
            ("mark", _) => match &self.scope.mark {
                Some(mark) => mark.as_str().into(),
                None => return Err(Fault::absent("the call does not mark the store")),
            },
            ("instance", _) => self.subject()?.tag.instance.to_string().into(),
            ("incarnation", _) => self.subject()?.tag.incarnation.into(),
            ("kind", _) => match self.subject()?.vm_ports {
                Some(_) => "vm".into(),
                None => "container".into(),
            },
            ("hostname", _) => self.creation()?.hostname.as_str().into(),
            ("image", _) => match self.creation()?.images.first() {
                Some(image) => self.image(image).into(),
                None => {
                    return Err(Fault::absent(
                        "the blueprint has no image for this kind of engine",
                    ));
                }
            },
            ("images", _) => {
                let images = match (&self.scope.survey, &self.scope.volume) {
                    (Some(images), _) => images,
                    (None, Some(_)) => &self.volume_creation()?.images,
                    (None, None) => &self.creation()?.images,
                };
                images.iter().map(|image| self.image(image)).collect()
            }
            ("gpus", _) => texts(&self.creation()?.gpu_devices),
            ("command", _) => texts(&self.creation()?.command),
            ("directories", _) => directories(&self.creation()?.files),
            ("ports", _) => {
                let ports = self.subject()?.vm_ports.as_deref();
                let ports = ports.ok_or_else(|| Fault::absent("the instance is not a VM"))?;
                ports.iter().copied().collect()
            }
            ("mounts", _) => {
                let mounts = self.subject()?.mounts.as_deref();
                let mounts = mounts.ok_or_else(|| Fault::absent("this call has no volumes"))?;
                mounts.iter().map(mount).collect()
            }
            ("volume", "id") => match &self.scope.volume {
                Some(volume) => volume.id.to_string().into(),
                None => return Err(Fault::absent("a call about a volume has it")),
            },
            ("volume", "size_gib") => self.volume_creation()?.size_gib.into(),
            ("volume", "size_bytes") => {
                (u64::from(self.volume_creation()?.size_gib).saturating_mul(GIB)).into()
            }
            ("snapshot", part) => {
                let snapshot = self.scope.snapshot.as_ref();
                let of = snapshot
                    .ok_or_else(|| Fault::absent("this call has no snapshot"))?
                    .of;
                match part {
                    "id" => of.snapshot.to_string().into(),
                    "instance" => of.instance.instance.to_string().into(),
                    _ => of.instance.incarnation.into(),
                }
            }
            ("published", _) => {
                let creation = self.creation()?;
                let ports = creation.published.iter();
                ports
                    .map(|one| port(one, creation.private_address))
                    .collect()
            }
            ("environment", _) => {
                let variables = self.creation()?.environment.iter();
                let pair =
                    |(name, value): &(String, String)| json!({ "name": name, "value": value });
                variables.map(pair).collect()
            }
            ("files", _) => self.files()?.iter().map(file).collect(),
            _ => return Err(Fault::absent("the host does not know it")),
        })
    }

    /// A part of a member of a list.
    pub fn part(&self, of: &Value, key: &str) -> Result<Value, Fault> {
        if let Some(part) = of.get(key) {
            return Ok(part.clone());
        }
        let port = of.get("node_port").and_then(Value::as_u64);
        match port.and_then(|port| u16::try_from(port).ok()) {
            Some(port) if key == "address" => publish::address(self.settings, port)
                .map(Value::from)
                .map_err(Fault::refused),
            _ => Err(Fault::absent("the member has no such part")),
        }
    }

    /// The blueprint's files, in the call that creates the instance.
    pub fn files(&self) -> Result<&'a [BlueprintFile], Fault> {
        Ok(&self.creation()?.files)
    }

    /// Whether the image of the creation is one of the program's or of the operator's.
    pub fn has_trusted_image(&self) -> Result<bool, Fault> {
        Ok(self.creation()?.image_is_trusted)
    }

    fn setting(&self, name: &str) -> Result<Value, Fault> {
        let missing = || Fault::absent("the node has no such setting");
        let (name, group) = name.split_once('.').unwrap_or((name, ""));
        let value = self.settings.get(name).ok_or_else(missing)?;
        if group.is_empty() {
            return Ok(value.clone());
        }
        let setting = self.document.settings.get(name);
        let part = setting.and_then(|setting| setting.group(group, value));
        part.map(Value::from)
            .ok_or_else(|| Fault::absent("the setting has no such part"))
    }

    fn learnt(&self, name: &str) -> Result<Value, Fault> {
        if let Some(number) = self.scope.numbers.get(name) {
            return Ok((*number).into());
        }
        if self.scope.facts.contains(name) {
            return Ok(true.into());
        }
        match self.scope.learnt.get(name) {
            Some(ids) if !ids.is_empty() => Ok(texts(ids)),
            _ => Err(Fault::absent("the engine has not told it in this call")),
        }
    }

    fn subject(&self) -> Result<&'a CallSubject, Fault> {
        let subject = self.scope.subject.as_ref();
        subject.ok_or_else(|| Fault::absent("a call about the whole node touches no instance"))
    }

    fn creation(&self) -> Result<&'a CreateScope, Fault> {
        let creation = self.subject()?.creation.as_ref();
        creation.ok_or_else(|| Fault::absent("only ensure creates"))
    }

    fn volume_creation(&self) -> Result<&'a VolumeCreation, Fault> {
        let volume = self.scope.volume.as_ref();
        let creation = volume.and_then(|volume| volume.creation.as_ref());
        creation.ok_or_else(|| Fault::absent("only make makes a volume"))
    }

    fn network(&self, of: Option<&InstanceNetwork>, key: &str) -> Result<Value, Fault> {
        let of = of.ok_or_else(|| Fault::absent("this call has no such network"))?;
        self.part(&network(of), key)
    }

    fn size(&self, key: &str) -> Result<u64, Fault> {
        let size = self.subject()?.size;
        let size = size.ok_or_else(|| Fault::absent("this call has no size"))?;
        let (mem, disk) = (u64::from(size.mem_gib), u64::from(size.disk_size_gib));
        Ok(match key {
            "vcpus" => size.n_vcpus.into(),
            "mem_gib" => mem,
            "mem_bytes" => mem.saturating_mul(GIB),
            "disk_gib" => disk,
            _ => disk.saturating_mul(GIB),
        })
    }

    /// The name of an image on this node.
    fn image(&self, image: &str) -> String {
        let replaced = self
            .document
            .replacement()
            .and_then(|(beginning, setting)| {
                let rest = image.strip_prefix(beginning)?;
                let replacement = self.settings.get(setting)?.as_str()?;
                Some(format!("{replacement}{rest}"))
            });
        replaced.unwrap_or_else(|| image.to_owned())
    }
}

fn network(network: &InstanceNetwork) -> Value {
    let subnet = network.subnet;
    json!({
        "id": network.id,
        "subnet": subnet,
        "prefix": subnet.prefix_len(),
        "hex": format!("{:08x}", u32::from(subnet.network())),
        "prefix_hex": format!("{:02x}", subnet.prefix_len()),
        "gateway": network.gateway,
        "address": network.address,
        "mac": mac(network.address),
    })
}

/// A port. A public one gets its address from the settings of the node.
fn port(port: &PublishedPort, private_address: Option<Ipv4Addr>) -> Value {
    let (node_port, instance_port) = (port.node_port, port.instance_port);
    match private_address {
        Some(address) if port.private => {
            json!({ "node_port": node_port, "instance_port": instance_port, "address": address })
        }
        _ => json!({ "node_port": node_port, "instance_port": instance_port }),
    }
}

fn mount(mount: &Mount) -> Value {
    json!({ "volume": mount.volume.to_string(), "path": mount.path, "read_only": mount.read_only })
}

fn file(file: &BlueprintFile) -> Value {
    let mode = format!("0{:o}", file.mode & 0o7777);
    json!({ "path": file.path, "uid": file.uid, "gid": file.gid, "mode": mode })
}

/// The hardware address of an address, by the rule of engines. With another one, an endpoint would get
/// foreign packets.
fn mac(address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets();
    format!("02:42:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

fn texts(list: &[String]) -> Value {
    list.iter().map(String::as_str).collect()
}

fn end(installation: &str, length: usize) -> String {
    let letters: Vec<_> = installation
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let start = letters.len().saturating_sub(length);
    letters.into_iter().skip(start).collect()
}

fn directories(files: &[BlueprintFile]) -> Value {
    let parents: BTreeSet<_> = files
        .iter()
        .flat_map(|file| {
            let slashes = file.path.match_indices('/');
            slashes.filter_map(|(at, _)| file.path.get(..at))
        })
        .filter(|parent| !parent.is_empty())
        .collect();
    parents.into_iter().collect()
}
