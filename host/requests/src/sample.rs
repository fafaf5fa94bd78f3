//! Samples of calls, for a review of the requests of a file and for tests.

use crate::scope::{SnapshotPurpose, SnapshotScope};
use crate::show::escaped_lines;
use crate::{CallScope, CallSubject, CreateScope, Purpose, RequestFile, Requests};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use wharf_domain::blueprint::{BlueprintFile, FileContent};
use wharf_domain::capacity::Size;
use wharf_domain::driver::{InstanceNetwork, Mount, PublishedPort, Source, Tag};
use wharf_domain::ids::{InstanceId, SnapshotId, VolumeId};
use wharf_domain::instance::ResourceType;
use wharf_domain::secret::SecretKind;

/// The members of a sample that has none: the creation of a container.
const DEFAULT: &str = include_str!("sample.json");

/// A call as a request sees it.
#[derive(Debug, Clone)]
pub struct SampleCall {
    /// The scope of the call.
    pub scope: CallScope,
    /// The settings of its node.
    pub settings: Value,
}

/// As JSON. The members have the names of the placeholders.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleToml {
    call: Call,
    installation: String,
    mark: String,
    instance: String,
    incarnation: u64,
    kind: ResourceType,
    hostname: String,
    size: WrittenSize,
    network: WrittenNetwork,
    public: Option<WrittenNetwork>,
    images: Vec<String>,
    image_is_trusted: bool,
    environment: Vec<String>,
    command: Vec<String>,
    gpus: Vec<String>,
    published: Vec<WrittenPort>,
    private_address: Option<Ipv4Addr>,
    ports: Vec<u16>,
    files: Vec<WrittenFile>,
    mounts: Vec<WrittenMount>,
    volume: WrittenVolume,
    snapshot: Option<WrittenSnapshot>,
    learnt: BTreeMap<String, WrittenLearnt>,
    settings: Value,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Call {
    Node,
    Survey,
    Mark,
    Instance,
    Change,
    Create,
    Move,
    Volume,
    Make,
    Take,
    Drop,
    Restore,
    Send,
    SendVolume,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenVolume {
    id: String,
    size_gib: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSnapshot {
    id: String,
    instance: String,
    incarnation: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMount {
    volume: String,
    path: String,
    #[serde(default)]
    read_only: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSize {
    vcpus: u32,
    mem_gib: u32,
    disk_gib: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenNetwork {
    id: String,
    subnet: ipnet::Ipv4Net,
    gateway: Ipv4Addr,
    address: Ipv4Addr,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPort {
    node_port: u16,
    instance_port: u16,
    #[serde(default)]
    private: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    path: String,
    /// The content; a file without it has a secret.
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenLearnt {
    Fact(bool),
    Number(u64),
    Ids(Vec<String>),
}

impl SampleCall {
    /// Reads a sample. Its members replace those of the default one.
    pub fn parse(json: &str) -> Result<Self, String> {
        let read = |json| serde_json::from_str::<Map<String, Value>>(json);
        let read = |json| read(json).map_err(|error| error.to_string());
        let mut members = read(DEFAULT)?;
        members.extend(read(json)?);
        let written = SampleToml::deserialize(Value::Object(members));
        written.map_err(|error| error.to_string())?.into_sample()
    }
}

impl SampleToml {
    fn into_sample(self) -> Result<SampleCall, String> {
        let instance = InstanceId::parse(&self.instance).ok_or("instance: must be a UUID")?;
        let tag = Tag {
            instance,
            incarnation: self.incarnation,
        };
        let mut scope = match self.call {
            Call::Node => CallScope::node(&self.installation),
            Call::Survey => CallScope::survey(&self.installation, &self.images),
            Call::Mark => CallScope::mark(&self.installation, &self.mark),
            Call::Volume => CallScope::unmake_volume(&self.installation, volume(&self.volume.id)?),
            Call::Make => CallScope::make_volume(
                &self.installation,
                volume(&self.volume.id)?,
                self.volume.size_gib,
                &self.images,
            ),
            Call::SendVolume => {
                CallScope::send_volume(&self.installation, volume(&self.volume.id)?)
            }
            _ => CallScope::read(&self.installation, tag),
        };
        let call = self.call;
        let creates = matches!(call, Call::Create | Call::Move | Call::Restore);
        let changes = creates || matches!(call, Call::Change | Call::Take);
        scope.changes |= changes || matches!(call, Call::Drop | Call::Send);
        scope.moves = call == Call::Move;
        let purpose = match call {
            Call::Take => Some(SnapshotPurpose::Take),
            Call::Drop => Some(SnapshotPurpose::Drop),
            Call::Restore => Some(SnapshotPurpose::Restore),
            Call::Send => Some(SnapshotPurpose::Send),
            Call::Create => Some(SnapshotPurpose::Source),
            _ => None,
        };
        if let Some((purpose, snapshot)) = purpose.zip(self.snapshot) {
            let of = snapshot.read()?;
            scope.snapshot = Some(SnapshotScope { of, purpose });
        }
        for (name, learnt) in self.learnt {
            match learnt {
                WrittenLearnt::Ids(ids) => drop(scope.learnt.insert(name, ids)),
                WrittenLearnt::Number(number) => drop(scope.numbers.insert(name, number)),
                WrittenLearnt::Fact(true) => drop(scope.facts.insert(name)),
                WrittenLearnt::Fact(false) => {}
            }
        }
        if changes {
            let variable = |text: String| match text.split_once('=') {
                Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
                None => Err(format!("environment: {text:?} is not NAME=VALUE")),
            };
            let environment = self.environment.into_iter().map(variable);
            let mounts = self.mounts.into_iter().map(WrittenMount::read);
            let mounts = mounts.collect::<Result<_, _>>()?;
            let creation = CreateScope {
                hostname: self.hostname,
                images: self.images,
                image_is_trusted: self.image_is_trusted,
                environment: environment.collect::<Result<_, _>>()?,
                command: self.command,
                published: self.published.into_iter().map(Into::into).collect(),
                private_address: self.private_address,
                gpu_devices: self.gpus,
                files: self.files.into_iter().map(Into::into).collect(),
            };
            scope.subject = Some(CallSubject {
                size: Some(Size {
                    n_vcpus: self.size.vcpus,
                    mem_gib: self.size.mem_gib,
                    disk_size_gib: self.size.disk_gib,
                }),
                network: Some(self.network.into()),
                public_network: self.public.map(Into::into),
                vm_ports: (self.kind == ResourceType::Vm).then_some(self.ports),
                mounts: Some(mounts),
                creation: creates.then_some(creation),
                ..CallSubject::new(tag)
            });
        }
        Ok(SampleCall {
            scope,
            settings: self.settings,
        })
    }
}

fn volume(id: &str) -> Result<VolumeId, String> {
    VolumeId::parse(id).ok_or_else(|| "volume: must be a UUID".to_owned())
}

impl WrittenSnapshot {
    fn read(self) -> Result<Source, String> {
        let instance = InstanceId::parse(&self.instance);
        Ok(Source {
            snapshot: SnapshotId::parse(&self.id).ok_or("snapshot: must be a UUID")?,
            instance: Tag {
                instance: instance.ok_or("snapshot: its instance must be a UUID")?,
                incarnation: self.incarnation,
            },
        })
    }
}

impl WrittenMount {
    fn read(self) -> Result<Mount, String> {
        Ok(Mount {
            volume: volume(&self.volume)?,
            path: self.path,
            read_only: self.read_only,
        })
    }
}

impl From<WrittenNetwork> for InstanceNetwork {
    fn from(written: WrittenNetwork) -> Self {
        Self {
            id: written.id,
            subnet: written.subnet,
            gateway: written.gateway,
            address: written.address,
        }
    }
}

impl From<WrittenPort> for PublishedPort {
    fn from(written: WrittenPort) -> Self {
        Self {
            node_port: written.node_port,
            instance_port: written.instance_port,
            private: written.private,
        }
    }
}

impl From<WrittenFile> for BlueprintFile {
    fn from(written: WrittenFile) -> Self {
        Self {
            path: written.path,
            mode: 0o644,
            uid: 0,
            gid: 0,
            content: match written.text {
                Some(text) => FileContent::Bytes(text.into_bytes()),
                None => FileContent::Secret(SecretKind::Password),
            },
        }
    }
}

impl SampleCall {
    /// Writes a request, or a transfer, of a file in this call, as text for a review.
    pub fn render(
        &self,
        file: &RequestFile,
        name: &str,
        arguments: &[(String, String)],
    ) -> Result<String, String> {
        let written = self.write(file, name, arguments);
        written
            .map(|text| escaped_lines(&text))
            .map_err(|why| escaped_lines(&why))
    }

    fn write(
        &self,
        file: &RequestFile,
        name: &str,
        arguments: &[(String, String)],
    ) -> Result<String, String> {
        let requests = Requests::new(file, &self.settings);
        let requests = requests.map_err(|why| format!("settings.{why}"))?;
        let scope = &self.scope;
        let written = if file.0.transfer.contains_key(name) {
            let targets = requests.transfer(scope, name, arguments);
            targets.map(|targets| targets.to_string())
        } else {
            let rendered = requests.render(scope, name, arguments, Purpose::Show);
            rendered.map(|rendered| rendered.to_string())
        };
        written.map_err(|refusal| refusal.0)
    }
}
