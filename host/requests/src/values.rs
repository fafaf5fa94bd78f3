//! The host's values in one call.

use super::fault::Fault;
use super::file::Document;
use super::publish;
use super::scope::{CallScope, CreateScope, Subject};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use wharf_domain::blueprint::File;
use wharf_domain::driver::{Network, PublishedPort};

/// Characters of the short form of an installation's id.
const INSTALLATION_END: usize = 8;
/// Characters of its shortest form, which leaves room in the name of an interface.
const INSTALLATION_END_SHORT: usize = 3;
/// Mebibytes in a gibibyte.
const MIB: u64 = 1024;
/// Bytes in a gibibyte.
const GIB: u64 = 1 << 30;

/// The values of one call.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    pub document: &'a Document,
    pub settings: &'a BTreeMap<String, Value>,
    pub scope: &'a CallScope,
}

/// A member of a list, or the value of an argument.
#[derive(Debug, Clone)]
pub enum Member<'a> {
    Published(&'a PublishedPort),
    File(&'a File),
    Network(&'a Network),
    Variable(&'a (String, String)),
    /// Any other value.
    Value(Value),
}

impl Member<'_> {
    /// Whether a driver calls it so.
    pub fn is_called(&self, given: &str) -> bool {
        match self {
            Self::Published(port) => port.node_port.to_string() == given,
            Self::File(file) => file.path == given,
            Self::Network(network) => network.id == given,
            Self::Variable((name, _)) => name == given,
            Self::Value(_) => false,
        }
    }

    /// The value itself; of a member with parts, that it is there.
    pub fn whole(&self) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            _ => Value::Bool(true),
        }
    }
}

impl<'a> Values<'a> {
    /// The value of a name that needs no other part of the file.
    pub fn get(&self, name: &str) -> Result<Value, Fault> {
        let (table, key) = name.split_once('.').unwrap_or((name, ""));
        Ok(match (table, key) {
            ("settings", _) => return self.setting(key),
            ("learnt", _) => return self.learnt(key),
            ("size", _) => self.size(key)?.into(),
            ("network", _) => network(self.network()?, key)?,
            ("public", _) => {
                let public = self.subject()?.public_network.as_ref();
                network(
                    public.ok_or_else(|| Fault::absent("this call has no such network"))?,
                    key,
                )?
            }
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
                let images = match &self.scope.survey {
                    Some(images) => images,
                    None => &self.creation()?.images,
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
            _ => return Err(Fault::absent("the host does not know it")),
        })
    }

    /// The members of a list of the host, if they have parts.
    pub fn members(&self, list: &str) -> Result<Option<Vec<Member<'a>>>, Fault> {
        Ok(Some(match list {
            "published" => {
                let published = self.creation()?.published.iter();
                published.map(Member::Published).collect()
            }
            "environment" => {
                let variables = self.creation()?.environment.iter();
                variables.map(Member::Variable).collect()
            }
            "files" => self.files()?.iter().map(Member::File).collect(),
            "networks" => {
                let subject = self.subject()?;
                let networks = subject.network.iter().chain(&subject.public_network);
                networks.map(Member::Network).collect()
            }
            _ => return Ok(None),
        }))
    }

    /// A part of a member.
    pub fn part(&self, of: &Member<'_>, key: &str) -> Result<Value, Fault> {
        Ok(match (of, key) {
            (Member::Published(port), "node_port") => port.node_port.into(),
            (Member::Published(port), "instance_port") => port.instance_port.into(),
            (Member::Published(port), _) => publish::address(self.settings, port.node_port)
                .map_err(Fault::refused)?
                .to_string()
                .into(),
            (Member::File(file), "path") => file.path.as_str().into(),
            (Member::File(file), "uid") => file.uid.into(),
            (Member::File(file), "gid") => file.gid.into(),
            (Member::File(file), _) => format!("0{:o}", file.mode & 0o7777).into(),
            (Member::Network(of), _) => network(of, key)?,
            (Member::Variable((name, _)), "name") => name.as_str().into(),
            (Member::Variable((_, value)), _) => value.as_str().into(),
            (Member::Value(value), _) => match value.get(key) {
                Some(part) => part.clone(),
                None => return Err(Fault::absent("the member has no such part")),
            },
        })
    }

    /// The blueprint's files, in the call that creates the instance.
    pub fn files(&self) -> Result<&'a [File], Fault> {
        Ok(&self.creation()?.files)
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

    fn subject(&self) -> Result<&'a Subject, Fault> {
        let subject = self.scope.subject.as_ref();
        subject.ok_or_else(|| Fault::absent("a call about the whole node touches no instance"))
    }

    fn creation(&self) -> Result<&'a CreateScope, Fault> {
        let creation = self.subject()?.creation.as_ref();
        creation.ok_or_else(|| Fault::absent("only ensure creates"))
    }

    fn network(&self) -> Result<&'a Network, Fault> {
        let network = self.subject()?.network.as_ref();
        network.ok_or_else(|| Fault::absent("this call has no such network"))
    }

    fn size(&self, key: &str) -> Result<u64, Fault> {
        let size = self.subject()?.size;
        let size = size.ok_or_else(|| Fault::absent("this call has no size"))?;
        let (mem, disk) = (u64::from(size.mem_gib), u64::from(size.disk_size_gib));
        Ok(match key {
            "vcpus" => size.n_vcpus.into(),
            "mem_gib" => mem,
            "mem_mib" => mem.saturating_mul(MIB),
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

fn network(network: &Network, key: &str) -> Result<Value, Fault> {
    let subnet = network.subnet;
    Ok(match key {
        "id" => network.id.as_str().into(),
        "subnet" => subnet.to_string().into(),
        "prefix" => subnet.prefix_len().into(),
        "hex" => format!("{:08x}", u32::from(subnet.network())).into(),
        "prefix_hex" => format!("{:02x}", subnet.prefix_len()).into(),
        "gateway" => network.gateway.to_string().into(),
        "mac" => mac(network.address).into(),
        "public" if network.is_public() => true.into(),
        "public" => return Err(Fault::absent("the network is the owner's")),
        _ => network.address.to_string().into(),
    })
}

/// The hardware address of an address, by dockerd's rule. With another one, an endpoint would get
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

fn directories(files: &[File]) -> Value {
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
