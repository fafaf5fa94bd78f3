//! A private Podman with the base image, and a server with one node on it.

use super::cdi;
use super::driver::Gpu;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use wharf_subnets::{Reservation, free, in_use};
use wharf_testkit::engine::{Allowed, DockerOptions, Kind, PrivateEngine};
use wharf_testkit::http::{Endpoint, HttpClient, Request, Response};
use wharf_testkit::process::{output, wait_until};
use wharf_testkit::server::Server;
use wharf_testkit::ssh::{Destination, KeyPair, wait_for_banner};
use wharf_testkit::{images, workspace};

/// GiB of the storage, a sparse file.
const DISK_GIB: u64 = 24;
const LOGIN_USER: &str = "user";
const HOST: &str = "127.0.0.1";
/// The first of the ports; tests and `up` use others.
const PORTS: u16 = 19_000;
/// The second numbers of the networks to choose from, `10.N.0.0/16`.
const SECONDS: std::ops::RangeInclusive<u8> = 80..=127;
/// The size of an instance. CUDA maps hundreds of MiB.
const SIZE: (u32, u32, u32) = (2, 8, 10);
/// A restart waits for the node.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// From a create to a running instance.
const RUNNING_LIMIT: Duration = Duration::from_secs(60);
/// A device is free when the node was seen without its instance.
const FREE_LIMIT: Duration = Duration::from_secs(60);
/// From a restart to the banner of its SSH server.
const BANNER_LIMIT: Duration = Duration::from_secs(30);
/// Lines of a log that are shown after a failure.
const LAST_LINES: usize = 60;

/// An engine of our own.
pub(crate) struct Engine(PrivateEngine);

impl Engine {
    /// Starts it in a new directory.
    pub fn start(dir: &Path) -> Result<Self> {
        let engine = PrivateEngine::start(DockerOptions {
            kind: Kind::Podman5,
            dir: dir.join("engine"),
            disk_gib: Some(DISK_GIB),
            disposable: true,
            allowed: Allowed::new(&[])?,
            tls: None,
        })?;
        Ok(Self(engine))
    }

    /// The engine's version, and whether it enforces disk sizes.
    pub fn describe(&self) -> Result<String> {
        let version = self.0.client().get("/version")?;
        let of = |pointer: &str| {
            version
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let enforced = if self.0.enforces_disk_size() {
            "on btrfs"
        } else {
            "without disk limits"
        };
        let version = of("/Version").context("the engine has no version")?;
        Ok(format!("Podman {version}, {enforced}"))
    }

    /// Makes the image of instances.
    pub fn make_image(&self) -> Result<()> {
        images::ensure(&self.0.client(), &["base"])
    }

    /// Describes the GPU to the engine.
    pub fn provide(&self, gpu: &mut Gpu, own: Option<&Path>) -> Result<String> {
        // A Podman of another release has a root of its own, which shows little more than its storage.
        if own.is_none() && !wharf_images::platform()?.starts_with("trixie-") {
            gpu.copy_files(&self.0.store().with_file_name("driver"))?;
        }
        let directory = self.0.device_files();
        cdi::provide(
            gpu,
            own,
            &directory.context("the engine has no directory for devices")?,
        )
    }

    /// Stops it, and removes its data.
    pub fn stop(self) -> Result<()> {
        self.0.stop()
    }

    fn endpoint(&self) -> Result<PathBuf> {
        match self.0.endpoint() {
            Endpoint::Unix(path) => Ok(path),
            Endpoint::Tcp(_) | Endpoint::Tls { .. } => bail!("the engine has no socket"),
        }
    }
}

/// A server, and a user with a key.
pub(crate) struct Wharf {
    server: Server,
    client: HttpClient,
    config: PathBuf,
    key: String,
    ssh: KeyPair,
    _reserved: (Reservation, Reservation),
}

impl Wharf {
    /// Starts a server whose node has the GPU.
    pub fn start(dir: &Path, engine: &Engine, gpu: &Gpu) -> Result<Self> {
        let data = dir.join("data");
        let config = dir.join("wharf.toml");
        let ports = Reservation::of_ports(&PORTS.to_string())?;
        let ports = ports.context("another proof runs on this machine")?;
        let (network, subnet) = free_network(&data)?;
        let text = text(
            &data,
            &engine.endpoint()?,
            &network,
            gpu,
            &engine.0.settings(),
        );
        fs::write(&config, text)?;
        let server = Server::start(&config, &dir.join("wharf.log"))?;
        let mut wharf = Self {
            client: server.client()?,
            server,
            config,
            key: String::new(),
            ssh: KeyPair::in_directory(&dir.join("ssh"))?,
            _reserved: (ports, subnet),
        };
        let key = wharf.cli(&["key", "new", "you@example.org"])?;
        key.trim().clone_into(&mut wharf.key);
        Ok(wharf)
    }

    /// Runs a command of the operator.
    fn cli(&self, arguments: &[&str]) -> Result<String> {
        let mut wharf = Command::new(workspace::wharf_binary());
        output(wharf.args(arguments).arg("--config").arg(&self.config))
    }

    fn send(&self, method: &str, path: &str, body: Option<Value>) -> Result<Response> {
        let request = Request::new(method, path)
            .key(&self.key)
            .timeout(ANSWER_LIMIT);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        self.client.send(request)
    }

    /// Asks for an instance, with a GPU of a model or without one.
    pub fn ask(&self, model: Option<&str>) -> Result<Response> {
        let (n_vcpus, mem_gib, disk_size_gib) = SIZE;
        let mut body = json!({
            "resource_type": "container", "n_vcpus": n_vcpus, "mem_gib": mem_gib,
            "disk_size_gib": disk_size_gib, "public_key": self.ssh.public()?,
        });
        if let (Some(model), Some(fields)) = (model, body.as_object_mut()) {
            fields.insert("gpu_model".to_owned(), model.into());
        }
        self.send("POST", "/api/instance/", Some(body))
    }

    /// Creates an instance, as soon as the GPU is free, and waits until it runs.
    pub fn create(&self, model: Option<&str>) -> Result<Instance> {
        let start = Instant::now();
        let answer = until_free(|| self.ask(model))?;
        let waited = start.elapsed();
        let created = answer.ok().context("create")?.json()?;
        let uuid = text_of(&created, "uuid")?;
        let start = Instant::now();
        let instance = self.wait_for(&uuid, "running")?;
        let port = instance.get("wan_ssh_port").and_then(Value::as_u64);
        Ok(Instance {
            uuid,
            port: u16::try_from(port.context("no wan_ssh_port")?)?,
            shown: if waited > Duration::from_millis(100) {
                format!("free after {} ms, ", waited.as_millis())
            } else {
                String::new()
            } + &format!("running after {} ms", start.elapsed().as_millis()),
        })
    }

    /// Waits for a state.
    pub fn wait_for(&self, uuid: &str, state: &str) -> Result<Value> {
        let path = format!("/api/instance/{uuid}/");
        let start = Instant::now();
        loop {
            let instance = self.send("GET", &path, None)?.ok()?.json()?;
            let now = text_of(&instance, "state")?;
            if now == state {
                return Ok(instance);
            }
            let is_over = now == "error" || start.elapsed() > RUNNING_LIMIT;
            ensure!(
                !is_over,
                "it is {now}, and not {state}: {}",
                self.cli(&["events", uuid]).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops or restarts an instance.
    pub fn act(&self, instance: &Instance, action: &str) -> Result<Response> {
        self.send(
            "POST",
            &format!("/api/instance/{}/{action}/", instance.uuid),
            None,
        )
    }

    /// Restarts an instance, as soon as its GPU is free, and waits until it runs.
    pub fn restart(&self, instance: &Instance) -> Result<()> {
        let answer = until_free(|| self.act(instance, "restart"))?;
        answer.ok().context("restart")?;
        self.wait_for(&instance.uuid, "running")?;
        wait_for_banner(HOST, instance.port, BANNER_LIMIT)
    }

    /// Deletes an instance.
    pub fn delete(&self, instance: &Instance) -> Result<()> {
        let path = format!("/api/instance/{}/", instance.uuid);
        self.send("DELETE", &path, None)?.ok().map(drop)
    }

    /// Runs a script in an instance.
    pub fn run(&self, instance: &Instance, script: &str) -> Result<String> {
        let to = Destination {
            user: LOGIN_USER,
            host: HOST,
            port: instance.port,
        };
        self.ssh.run(to, script)
    }

    /// Checks the database, after the end of the server.
    pub fn finish(self) -> Result<String> {
        let config = self.config;
        self.server.stop();
        let mut fsck = Command::new(workspace::wharf_binary());
        output(fsck.args(["fsck", "--config"]).arg(config))
    }
}

/// An instance that runs.
pub(crate) struct Instance {
    pub uuid: String,
    port: u16,
    /// The times of its start, for people.
    pub shown: String,
}

/// The ends of the logs, for a person who looks for the cause of a failure.
pub(crate) fn logs(dir: &Path) -> String {
    let logs = ["engine/engine.log", "wharf.log"].map(|name| {
        let text = fs::read_to_string(dir.join(name)).unwrap_or_default();
        let lines: Vec<_> = text
            .lines()
            .filter(|line| !line.contains("wharf::request"))
            .collect();
        let first = lines.len().saturating_sub(LAST_LINES);
        let last = lines.get(first..).unwrap_or_default();
        format!("── The end of {name}\n{}\n", last.join("\n"))
    });
    logs.concat()
}

/// Whether an answer refuses a placement for lack of a GPU.
pub(crate) fn is_out_of_gpus(answer: &Response) -> bool {
    let is_named = |body: &Value| body.pointer("/detail/bottleneck") == Some(&json!(["n_gpus"]));
    answer.status == 422 && answer.json().is_ok_and(|body| is_named(&body))
}

fn text(data: &Path, socket: &Path, network: &str, gpu: &Gpu, settings: &str) -> String {
    let (model, device) = (&gpu.model, cdi::DEVICE);
    let (data, socket) = (data.display(), socket.display());
    let (ssh_end, web, end) = (PORTS + 49, PORTS + 50, PORTS + 99);
    format!(
        "listen = \"{HOST}:0\"\ndata_dir = \"{data}\"\nssh_host = \"{HOST}\"\n\
         login_user = \"{LOGIN_USER}\"\n\
         [ssh_ports]\nfrom = {PORTS}\nto = {ssh_end}\n\
         [web]\nhost = \"{HOST}\"\nfrom = {web}\nto = {end}\n\
         [rates.gpu]\n\"{model}\" = 3\n\
         [[node]]\nname = \"gpu\"\ndriver = \"docker\"\nendpoint = \"unix://{socket}\"\n\
         capacity = {{ n_vcpus = 8, mem_gib = 32, disk_size_gib = 100 }}\n\
         lan_cidr = \"{network}\"\n\
         gpus = [{{ model = \"{model}\", devices = [\"{device}\"] }}]\n\
         settings = {{ {settings}publish_address = \"{HOST}\" }}\n"
    )
}

/// Sends a request until a GPU is free for it.
fn until_free(mut send: impl FnMut() -> Result<Response>) -> Result<Response> {
    let mut answer = None;
    wait_until(FREE_LIMIT, || {
        answer = Some(send());
        !matches!(&answer, Some(Ok(response)) if response.status == 422)
    });
    answer.context("no answer")?
}

/// A network that nothing else on this machine uses, reserved.
fn free_network(data: &Path) -> Result<(String, Reservation)> {
    let network = free(SECONDS, &in_use(data));
    let network =
        network.context("the machine uses all networks from 10.80.0.0 to 10.127.255.255")?;
    Ok((network.to_string(), Reservation::of_subnet(&network, data)?))
}

fn text_of(object: &Value, field: &str) -> Result<String> {
    let value = object.get(field).and_then(Value::as_str);
    Ok(value.with_context(|| format!("no {field}"))?.to_owned())
}
