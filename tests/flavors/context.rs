//! The engine that all tests of this binary share, with the flavors' images.

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use wharf_testkit::engine::{Allowed, DockerOptions, Kind, PrivateEngine};
use wharf_testkit::http::{Endpoint, HttpClient, Request};
use wharf_testkit::workspace::root;
use wharf_tests::{Ports, Registry, Server, docker_node, free_network, until};

/// A private dockerd. Its storage is kept between runs, because images are slow to build.
pub struct FlavorContext {
    engine: PrivateEngine,
}

fn directory() -> PathBuf {
    let usual = || wharf_testkit::workspace::target().join("test-engine");
    let all = std::env::var_os("WHARF_TEST_ENGINE_DIR").map_or_else(usual, PathBuf::from);
    all.join("flavors")
}

impl FlavorContext {
    /// Starts the engine and builds the missing ones of these images.
    pub fn start(images: &[&str]) -> Result<Self> {
        let engine = PrivateEngine::start(DockerOptions {
            kind: Kind::Dockerd,
            dir: directory(),
            disk_gib: Some(60),
            disposable: false,
            allowed: Allowed::new(&[])?,
            tls: None,
        })?;
        let context = Self { engine };
        context.remove_containers()?;
        let mut recipes = wharf_testkit::images::recipes();
        recipes.sources = Some(root().join("tests/flavors/substitutes.toml"));
        recipes.ensure(&context.client(), images)?;
        Ok(context)
    }

    /// Stops the engine.
    pub fn stop(self) -> Result<()> {
        self.remove_containers()?;
        self.engine.stop()
    }

    /// A client of the engine.
    pub fn client(&self) -> HttpClient {
        self.engine.client()
    }

    /// Removes containers of an interrupted run or of a failed test.
    fn remove_containers(&self) -> Result<()> {
        until("the engine has no containers", || {
            let all = self.client().get("/containers/json?all=true")?;
            let all = all.as_array().cloned().unwrap_or_default();
            for one in &all {
                let id = one["Id"].as_str().unwrap_or_default();
                let path = format!("/containers/{id}?force=true&v=true");
                let delete = Request::new("DELETE", &path).timeout(Duration::from_secs(60));
                // A container that Wharf has deleted may take a while to disappear.
                if let Ok(answer) = self.client().send(delete)
                    && ![404, 409].contains(&answer.status)
                {
                    answer.ok()?;
                }
            }
            Ok(all.is_empty().then_some(()))
        })?;
        self.client()
            .send(Request::new("POST", "/networks/prune"))?
            .ok()
            .map(drop)
    }

    /// Starts a server with this engine as its only node.
    pub fn server(&self) -> Result<Server> {
        self.server_with("")
    }

    /// Does what [`Self::server`] does, with more settings.
    pub fn server_with(&self, settings: &str) -> Result<Server> {
        let Endpoint::Unix(socket) = self.engine.endpoint() else {
            bail!("a private engine listens on a socket");
        };
        let networks = [
            format!("10.{}.0.0/16", free_network()?),
            format!("10.{}.0.0/24", free_network()?),
        ];
        let socket = socket.to_str().context("socket path")?;
        let networks = networks.each_ref().map(String::as_str);
        let node = docker_node(
            "real",
            &format!("unix://{socket}"),
            networks,
            &self.engine.settings(),
        );
        let ports = Ports::take().settings();
        Server::start(&format!("{settings}{ports}{node}"))
    }

    /// Returns the engine's `inspect` output for an instance's container.
    pub fn inspect(&self, instance: &Value) -> Result<Value> {
        let uuid = instance["uuid"].as_str().context("uuid")?;
        let filter = format!("%7B%22label%22%3A%5B%22io.wharf.instance%3D{uuid}%22%5D%7D");
        let list = self
            .client()
            .get(&format!("/containers/json?all=true&filters={filter}"))?;
        let id = list[0]["Id"].as_str().context("no container")?.to_owned();
        self.client().get(&format!("/containers/{id}/json"))
    }

    /// Returns the port of this machine that leads to a port of an instance, such as `8888/tcp`.
    pub fn published(&self, instance: &Value, port: &str) -> Result<u16> {
        let container = self.inspect(instance)?;
        let published = &container["NetworkSettings"]["Ports"][port][0]["HostPort"];
        Ok(published.as_str().context("not published")?.parse()?)
    }

    /// Returns the output of an instance's container.
    pub fn output_of(&self, instance: &Value) -> Result<String> {
        let container = self.inspect(instance)?;
        let id = container["Id"].as_str().context("no container")?;
        let path = format!("/containers/{id}/logs?stdout=true&stderr=true");
        let answer = self.client().send(Request::new("GET", &path))?.ok()?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// Gives an image another name, with a tag.
    pub fn tag(&self, image: &str, name: &str) -> Result<()> {
        let (repository, tag) = name.rsplit_once(':').context("no tag")?;
        let path = format!("/images/{image}/tag?repo={repository}&tag={tag}");
        self.client().send(Request::new("POST", &path))?.ok()?;
        Ok(())
    }

    /// Moves an image from the engine to the registry of its name.
    pub fn push(&self, name: &str) -> Result<()> {
        Registry::push(&self.client(), name)?;
        self.forget(name)
    }

    /// Removes the name of an image, if the engine has it.
    pub fn forget(&self, name: &str) -> Result<()> {
        let path = format!("/images/{name}?force=true");
        let answer = self.client().send(Request::new("DELETE", &path))?;
        if answer.status != 404 {
            answer.ok()?;
        }
        Ok(())
    }

    /// Runs a shell command in an image, without Wharf and a network, and returns its output.
    pub fn run_in(&self, image: &str, command: &str) -> Result<String> {
        let wanted = json!({
            "Image": image,
            "Entrypoint": ["bash", "-c", command],
            "HostConfig": { "NetworkMode": "none" },
        });
        let post = |path: &str| self.client().send(Request::new("POST", path));
        let create = Request::new("POST", "/containers/create").json(wanted);
        let made = self.client().send(create)?.ok()?.json()?;
        let path = format!(
            "/containers/{}",
            made["Id"].as_str().context("no container")?
        );
        post(&format!("{path}/start"))?.ok()?;
        let (wait, logs) = (
            format!("{path}/wait"),
            format!("{path}/logs?stdout=true&stderr=true"),
        );
        let wait = Request::new("POST", &wait).timeout(Duration::from_secs(300));
        let ended = self.client().send(wait)?.ok()?.json()?;
        let text = plain(&self.client().send(Request::new("GET", &logs))?.ok()?.body);
        self.client()
            .send(Request::new("DELETE", &format!("{path}?force=true")))?
            .ok()?;
        if ended["StatusCode"] != 0 {
            bail!("{image}: {}: {text}", ended["StatusCode"]);
        }
        Ok(text.trim().to_owned())
    }

    /// Runs a shell command in an instance as root, like `sudo` in the page's terminal.
    pub fn inside(&self, instance: &Value, command: &str) -> Result<String> {
        let container = self.inspect(instance)?;
        let id = container["Id"].as_str().context("no container")?;
        let path = format!("/containers/{id}/exec");
        let wanted = json!({
            "Cmd": ["bash", "-c", command], "AttachStdout": true, "AttachStderr": true,
        });
        let made = self
            .client()
            .send(Request::new("POST", &path).json(wanted))?
            .ok()?
            .json()?;
        let exec = made["Id"].as_str().context("no exec")?;
        let path = format!("/exec/{exec}/start");
        let start = Request::new("POST", &path)
            .json(json!({ "Detach": false, "Tty": false }))
            .timeout(Duration::from_secs(120));
        let text = plain(&self.client().send(start)?.ok()?.body);
        let ended = self.client().get(&format!("/exec/{exec}/json"))?;
        if ended["ExitCode"] != 0 {
            bail!("`{command}`: {}: {text}", ended["ExitCode"]);
        }
        Ok(text.trim().to_owned())
    }

    /// Runs a shell command in an instance as the login user.
    pub fn inside_as_user(&self, instance: &Value, command: &str) -> Result<String> {
        let quoted = command.replace('\'', r"'\''");
        self.inside(
            instance,
            &format!("/usr/local/lib/wharf/as-user bash -c '{quoted}'"),
        )
    }
}

/// Extracts the text of the engine's framed stream. A frame begins with eight bytes, of which four
/// are its length.
fn plain(mut stream: &[u8]) -> String {
    let mut text = Vec::new();
    while let Some((head, rest)) = stream.split_at_checked(8) {
        let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let (frame, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        text.extend_from_slice(frame);
        stream = rest;
    }
    String::from_utf8_lossy(&text).into_owned()
}
