//! The host's part in native tests of drivers. It writes requests from the request file, and a fake
//! engine answers them.

use crate::Engine;
use crate::types::{
    EngineError, File, JobState, Mount, Network, Node, PublishedPort, Request, ResourceType,
    Response, Size, Source, Spec, Tag, Target, Volume, Written,
};
use std::cell::RefCell;
use std::sync::Arc;
use wharf_domain::blueprint::{self, Blueprint};
use wharf_domain::ids::{Generation, InstanceId, SnapshotId, VolumeId};
use wharf_domain::{capacity, driver, instance};
use wharf_requests::{CallScope, Purpose, Rendered, RequestFile, Requests};

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
}

/// The body of a request.
#[derive(Debug, Clone)]
pub enum Body {
    /// None.
    Empty,
    /// JSON.
    Json(String),
    /// An archive of these files.
    Archive(Vec<File>),
    /// The content of one file.
    File(File),
}

/// A request as an engine receives it.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Its name in the request file.
    pub name: String,
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
}

/// The targets of a transfer.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// Path of the GET for the archive of the content; none if another engine has it.
    pub read: Option<String>,
    /// Path of the GET for the changes to the image, if `read` does not tell all.
    pub changes: Option<String>,
    /// Path of the request that writes the archive; none if another engine gets it.
    pub write: Option<String>,
}

/// A fake engine.
pub trait Http {
    /// Answers one request.
    ///
    /// # Errors
    /// As the test wants.
    fn send(&self, request: &Sent) -> Result<Response, EngineError>;

    /// Starts a job, or reports its state.
    ///
    /// # Errors
    /// As the test wants.
    fn job(&self, request: &Sent) -> Result<JobState, EngineError> {
        Err(EngineError::Refused(format!("{} as a job", request.name)))
    }

    /// Begins a transfer.
    ///
    /// # Errors
    /// As the test wants.
    fn begin_transfer(&self, _: &Transfer) -> Result<(), EngineError> {
        Err(EngineError::Refused("no transfers".into()))
    }

    /// Reports the state of the transfer, if there is one.
    ///
    /// # Errors
    /// As the test wants.
    fn transfer_state(&self) -> Result<Option<JobState>, EngineError> {
        Ok(None)
    }

    /// Ends the transfer, if there is one.
    ///
    /// # Errors
    /// As the test wants.
    fn end_transfer(&self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// The host during one call of a driver.
pub struct Host<'a> {
    engine: &'a dyn Http,
    requests: Requests,
    scope: RefCell<CallScope>,
    files: &'a [File],
}

impl<'a> Host<'a> {
    /// A call about the node: `probe`, `list`, `identify`.
    #[must_use]
    pub fn node(file: &str, node: &Node, engine: &'a dyn Http) -> Self {
        Self::new(file, node, engine, |_| CallScope::node(&node.installation))
    }

    /// The call that surveys the node: `look`.
    #[must_use]
    pub fn look(file: &str, node: &Node, images: &[String], engine: &'a dyn Http) -> Self {
        let scope = |_: &str| CallScope::survey(&node.installation, images);
        Self::new(file, node, engine, scope)
    }

    /// The call that marks the store: `mark`.
    #[must_use]
    pub fn mark(file: &str, node: &Node, mark: &str, engine: &'a dyn Http) -> Self {
        let scope = |_: &str| CallScope::mark(&node.installation, mark);
        Self::new(file, node, engine, scope)
    }

    /// A call that reads an instance: `inspect`, `stats`.
    #[must_use]
    pub fn read(file: &str, node: &Node, tag: &Tag, engine: &'a dyn Http) -> Self {
        let scope = |_: &str| CallScope::read(&node.installation, to_tag(tag));
        Self::new(file, node, engine, scope)
    }

    /// A call that changes an instance: `start`, `stop`, `resize`, `delete`, `set_ports`.
    #[must_use]
    pub fn change(file: &str, node: &Node, target: &Target, engine: &'a dyn Http) -> Self {
        let scope = |_: &str| CallScope::change(&node.installation, &to_target(target));
        Self::new(file, node, engine, scope)
    }

    /// A call that creates an instance: `ensure`, `grow`.
    #[must_use]
    pub fn create(file: &str, node: &Node, spec: &'a Spec, engine: &'a dyn Http) -> Self {
        let scope = |kind: &str| CallScope::create(&node.installation, &to_spec(spec), kind);
        Self {
            files: &spec.blueprint.files,
            ..Self::new(file, node, engine, scope)
        }
    }

    /// The call that moves an instance to the node: `move_here`.
    #[must_use]
    pub fn move_here(file: &str, node: &Node, spec: &'a Spec, engine: &'a dyn Http) -> Self {
        let scope = |kind: &str| CallScope::moves(&node.installation, &to_spec(spec), kind);
        Self::new(file, node, engine, scope)
    }

    /// A call of `make`.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test fails by panicking")]
    pub fn make(
        file: &str,
        node: &Node,
        volume: &Volume,
        images: &[String],
        engine: &'a dyn Http,
    ) -> Self {
        let id = VolumeId::parse(&volume.id).expect("the id of the volume");
        Self::new(file, node, engine, |_| {
            CallScope::make_volume(&node.installation, id, volume.size_gib, images)
        })
    }

    /// A call of `unmake`.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test fails by panicking")]
    pub fn unmake(file: &str, node: &Node, id: &str, engine: &'a dyn Http) -> Self {
        let id = VolumeId::parse(id).expect("the id of the volume");
        Self::new(file, node, engine, |_| {
            CallScope::unmake_volume(&node.installation, id)
        })
    }

    /// A call of `take`.
    #[must_use]
    pub fn take(
        file: &str,
        node: &Node,
        target: &Target,
        snapshot: &str,
        engine: &'a dyn Http,
    ) -> Self {
        let id = to_snapshot(snapshot);
        Self::new(file, node, engine, |_| {
            CallScope::take_snapshot(&node.installation, &to_target(target), id)
        })
    }

    /// A call of `drop`.
    #[must_use]
    pub fn drop(file: &str, node: &Node, of: &Source, engine: &'a dyn Http) -> Self {
        let scope = |_: &str| CallScope::drop_snapshot(&node.installation, to_source(of));
        Self::new(file, node, engine, scope)
    }

    /// A call of `send`.
    #[must_use]
    pub fn send(file: &str, node: &Node, of: &Source, engine: &'a dyn Http) -> Self {
        let scope = |_: &str| CallScope::send_snapshot(&node.installation, to_source(of));
        Self::new(file, node, engine, scope)
    }

    /// A call of `restore`.
    #[must_use]
    pub fn restore(
        file: &str,
        node: &Node,
        spec: &'a Spec,
        snapshot: &str,
        engine: &'a dyn Http,
    ) -> Self {
        let id = to_snapshot(snapshot);
        let scope = |kind: &str| CallScope::restore(&node.installation, &to_spec(spec), kind, id);
        Self {
            files: &spec.blueprint.files,
            ..Self::new(file, node, engine, scope)
        }
    }

    #[expect(clippy::panic, reason = "a test fails by panicking")]
    fn new(
        file: &str,
        node: &Node,
        engine: &'a dyn Http,
        scope: impl FnOnce(&str) -> CallScope,
    ) -> Self {
        let made = RequestFile::parse(file).and_then(|file| {
            let settings = serde_json::from_str(&node.settings).unwrap_or_default();
            Ok((Requests::new(&file, &settings)?, scope(file.kind())))
        });
        let (requests, scope) = made.unwrap_or_else(|why| panic!("{why}"));
        Self {
            engine,
            requests,
            scope: RefCell::new(scope),
            files: &[],
        }
    }

    fn render(&self, request: &Request, purpose: Purpose) -> Result<Rendered, EngineError> {
        let scope = self.scope.borrow();
        self.requests
            .render(&scope, &request.name, &request.arguments, purpose)
            .map_err(|refusal| EngineError::Refused(refusal.0))
    }

    #[expect(clippy::panic, reason = "a test fails by panicking")]
    fn write(&self, request: &Request, purpose: Purpose) -> Result<Sent, EngineError> {
        let rendered = self.render(request, purpose)?;
        let given = |file: blueprint::BlueprintFile| {
            let given = self.files.iter().find(|given| given.path == file.path);
            given.cloned().unwrap_or_else(|| panic!("{}", file.path))
        };
        Ok(Sent {
            name: request.name.clone(),
            method: match rendered.method.as_str() {
                "GET" => Method::Get,
                "HEAD" => Method::Head,
                "POST" => Method::Post,
                "PUT" => Method::Put,
                "PATCH" => Method::Patch,
                "DELETE" => Method::Delete,
                other => panic!("{other}"),
            },
            path: rendered.target,
            headers: rendered.headers,
            body: match rendered.body {
                wharf_requests::RenderedBody::None | wharf_requests::RenderedBody::Noise => {
                    Body::Empty
                }
                wharf_requests::RenderedBody::Json(text) => Body::Json(text),
                wharf_requests::RenderedBody::Archive(files) => {
                    Body::Archive(files.into_iter().map(given).collect())
                }
                wharf_requests::RenderedBody::File(file) => Body::File(given(file)),
            },
        })
    }
}

impl Engine for Host<'_> {
    fn send(&self, request: &Request) -> Result<Response, EngineError> {
        let answer = self.engine.send(&self.write(request, Purpose::Send)?)?;
        self.requests.learn(
            &mut self.scope.borrow_mut(),
            &request.name,
            &request.arguments,
            answer.status,
            &answer.body,
        );
        Ok(answer)
    }

    fn show(&self, request: &Request) -> Result<Written, EngineError> {
        let rendered = self.render(request, Purpose::Show)?;
        Ok(Written {
            method: rendered.method.to_string(),
            target: rendered.target,
            body: match rendered.body {
                wharf_requests::RenderedBody::Json(text) => Some(text),
                _ => None,
            },
        })
    }

    fn job(&self, request: &Request) -> Result<JobState, EngineError> {
        self.engine.job(&self.write(request, Purpose::Job)?)
    }

    fn begin_transfer(&self, request: &Request) -> Result<(), EngineError> {
        let scope = self.scope.borrow();
        let targets = self
            .requests
            .transfer(&scope, &request.name, &request.arguments);
        let targets = targets.map_err(|refusal| EngineError::Refused(refusal.0))?;
        let (read, changes) = targets
            .source
            .map(|source| (source.read, source.changes))
            .unzip();
        self.engine.begin_transfer(&Transfer {
            read,
            changes: changes.flatten(),
            write: targets.write,
        })
    }

    fn transfer_state(&self) -> Result<Option<JobState>, EngineError> {
        self.engine.transfer_state()
    }

    fn end_transfer(&self) -> Result<(), EngineError> {
        self.engine.end_transfer()
    }
}

#[expect(clippy::expect_used, reason = "a test fails by panicking")]
fn to_tag(tag: &Tag) -> driver::Tag {
    driver::Tag {
        instance: InstanceId::parse(&tag.instance).expect("the id of the instance"),
        incarnation: tag.incarnation,
    }
}

#[expect(clippy::expect_used, reason = "a test fails by panicking")]
fn to_snapshot(id: &str) -> SnapshotId {
    SnapshotId::parse(id).expect("the id of the snapshot")
}

fn to_source(source: &Source) -> driver::Source {
    driver::Source {
        snapshot: to_snapshot(&source.snapshot),
        instance: to_tag(&source.instance),
    }
}

fn to_size(size: Size) -> capacity::Size {
    capacity::Size {
        n_vcpus: size.n_vcpus,
        mem_gib: size.mem_gib,
        disk_size_gib: size.disk_size_gib,
    }
}

#[expect(clippy::expect_used, reason = "a test fails by panicking")]
fn to_network(network: &Network) -> driver::InstanceNetwork {
    driver::InstanceNetwork {
        id: network.id.clone(),
        subnet: network.subnet.parse().expect("a subnet"),
        gateway: network.gateway.parse().expect("a gateway"),
        address: network.address.parse().expect("an address"),
    }
}

fn to_type(kind: ResourceType) -> instance::ResourceType {
    match kind {
        ResourceType::Vm => instance::ResourceType::Vm,
        ResourceType::Container => instance::ResourceType::Container,
    }
}

fn to_port(port: &PublishedPort) -> driver::PublishedPort {
    driver::PublishedPort {
        node_port: port.node_port,
        instance_port: port.instance_port,
        private: port.private,
    }
}

#[expect(clippy::expect_used, reason = "a test fails by panicking")]
fn to_mount(mount: &Mount) -> driver::Mount {
    driver::Mount {
        volume: VolumeId::parse(&mount.volume).expect("the id of the volume"),
        path: mount.path.clone(),
        read_only: mount.read_only,
    }
}

fn to_target(target: &Target) -> driver::DriverTarget {
    driver::DriverTarget {
        tag: to_tag(&target.tag),
        generation: Generation(target.generation),
        resource_type: to_type(target.resource_type),
        size: to_size(target.size),
        network: to_network(&target.network),
        public_network: target.public_network.as_ref().map(to_network),
        wan_ports: target.wan_ports.clone(),
        volumes: target.volumes.iter().map(to_mount).collect(),
    }
}

fn to_spec(spec: &Spec) -> driver::Spec {
    let given = &spec.blueprint;
    // Requests name the files; nothing here reads their content.
    let file = |file: &File| blueprint::BlueprintFile {
        path: file.path.clone(),
        mode: file.mode,
        uid: file.uid,
        gid: file.gid,
        content: blueprint::FileContent::Bytes(Vec::new()),
    };
    let image = |image: &crate::Image| blueprint::Image {
        engine_kind: image.engine_kind.clone(),
        reference: image.reference.clone(),
    };
    driver::Spec {
        target: driver::DriverTarget {
            tag: to_tag(&spec.tag),
            generation: Generation(spec.generation),
            resource_type: to_type(spec.resource_type),
            size: to_size(spec.size),
            network: to_network(&spec.network),
            public_network: spec.public_network.as_ref().map(to_network),
            wan_ports: spec.wan_ports.clone(),
            volumes: spec.volumes.iter().map(to_mount).collect(),
        },
        hostname: spec.hostname.clone(),
        published: spec.published.iter().map(to_port).collect(),
        private_address: Some(std::net::Ipv4Addr::LOCALHOST),
        gpu_devices: spec.gpu_devices.clone(),
        source: spec.source.as_ref().map(to_source),
        fetched: spec.fetched,
        may_exist: spec.may_exist,
        image_is_trusted: true,
        blueprint: Arc::new(Blueprint {
            images: given.images.iter().map(image).collect(),
            files: given.files.iter().map(file).collect(),
            environment: given.environment.clone(),
            command: given.command.clone(),
            health: blueprint::Health::Ssh,
            ssh: given.ssh,
            web_port: given.web_port,
        }),
    }
}
