//! GPUs through the Container Device Interface, simulated by harmless device nodes.

use crate::context::EngineContext;
use crate::lab::{self, Lab, running, state, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use wharf_testkit::process::{command, run};
use wharf_tests::{Answer, Api, Server, small, until};

const MODEL: &str = "A100";
/// A model of the configuration without a CDI file.
const BROKEN: &str = "H100";

/// The names of the two devices. Older versions of CDI do not allow a leading digit.
const NAMES: [&str; 2] = ["a", "b"];

/// Two nodes like `/dev/null`, and the CDI file that describes them.
struct Devices {
    nodes: [PathBuf; 2],
    file: PathBuf,
}

impl Devices {
    fn make(directory: &Path) -> Result<Self> {
        let node = |n| PathBuf::from(format!("/dev/wharf-gpu-{}-{n}", std::process::id()));
        let devices = Self {
            nodes: [node(0), node(1)],
            file: directory.join("wharf-test.json"),
        };
        for node in &devices.nodes {
            run(command("mknod")
                .args(["--mode=666"])
                .arg(node)
                .args(["c", "1", "3"]))?;
        }
        let edits = |(n, node): (usize, &PathBuf)| {
            let edits = json!({ "deviceNodes": [{ "path": node }] });
            json!({ "name": NAMES[n], "containerEdits": edits })
        };
        let list: Vec<_> = devices.nodes.iter().enumerate().map(edits).collect();
        let file = json!({ "cdiVersion": "0.3.0", "kind": "wharf.test/gpu", "devices": list });
        fs::write(&devices.file, file.to_string())?;
        Ok(devices)
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        for path in self.nodes.iter().chain([&self.file]) {
            drop(fs::remove_file(path));
        }
    }
}

fn server(context: &EngineContext) -> Result<(Server, Api)> {
    let node = context.settings("")?;
    let server = Server::start(&format!(
        "{node}gpus = [\n  {{ model = \"{MODEL}\", devices = [\"wharf.test/gpu=a\", \
         \"wharf.test/gpu=b\"] }},\n  {{ model = \"{BROKEN}\", devices = [\"wharf.test/gpu=none\"] \
         }},\n]\n"
    ))?;
    let api = server.user("ann@example.com")?;
    Ok((server, api))
}

fn with_gpu(model: &str) -> Value {
    let mut body = small("container");
    body["gpu_model"] = json!(model);
    body
}

fn running_with_gpu(api: &Api) -> Result<Value> {
    let created = api.create(&with_gpu(MODEL))?.expect(201)?;
    api.wait_for(uuid(&created), "running")
}

/// Lists the test's device nodes that an instance can read.
fn inside(instance: &Value) -> Result<String> {
    let look = "for node in $(ls /dev | grep wharf-gpu); do \
                test -c /dev/$node && cat /dev/$node && echo /dev/$node; done";
    lab::inside(instance, look)
}

fn none_is_free(answer: &Answer) -> Result<()> {
    ensure!(answer.status == 422, "{answer:?}");
    ensure!(
        answer.body["detail"]["bottleneck"] == json!(["n_gpus"]),
        "{answer:?}"
    );
    Ok(())
}

pub fn one_at_a_time(context: &EngineContext) -> Result<()> {
    let Some(directory) = context.device_files() else {
        return not_at_all(context);
    };
    let devices = Devices::make(&directory)?;
    let (server, api) = server(context)?;
    let all = devices.nodes.each_ref().map(|node| node.to_string_lossy());
    let (a, b) = (running_with_gpu(&api)?, running_with_gpu(&api)?);
    ensure!(a["n_gpus"] == 1 && a["gpu_model"] == MODEL, "{a}");
    let (first, second) = (inside(&a)?, inside(&b)?);
    ensure!(first == all[0] && second == all[1], "{first} and {second}");
    ensure!(inside(&running(&api)?)?.is_empty());
    none_is_free(&api.create(&with_gpu(MODEL))?)?;

    // A stopped instance releases its GPU, and cannot restart while another instance has it.
    api.act(uuid(&a), "stop")?.expect(200)?;
    let c = until("the GPU is free", || {
        let answer = api.create(&with_gpu(MODEL))?;
        Ok((answer.status == 201).then_some(answer.body))
    })?;
    let c = api.wait_for(uuid(&c), "running")?;
    ensure!(inside(&c)? == first);
    none_is_free(&api.act(uuid(&a), "restart")?)?;
    ensure!(state(&api, &a)? == "exited");
    api.delete(uuid(&c))?.expect(204)?;
    until("the restart succeeds", || {
        Ok((api.act(uuid(&a), "restart")?.status == 200).then_some(()))
    })?;
    let a = api.wait_for(uuid(&a), "running")?;
    ensure!(inside(&a)? == first, "the instance has another GPU now");

    // A device without a CDI file is an error whose reason is reported.
    let broken = api.create(&with_gpu(BROKEN))?.expect(201)?;
    api.wait_for(uuid(&broken), "error")?;
    let events = server.cli(&["events", uuid(&broken)])?;
    ensure!(events.contains("wharf.test/gpu=none"), "{events}");
    for instance in api.list()? {
        api.delete(uuid(&instance))?.expect(204)?;
    }
    server.finish()
}

/// An engine without CDI support does not offer the node's GPUs.
fn not_at_all(context: &EngineContext) -> Result<()> {
    let known = &context.client().get("/info")?["CDISpecDirs"];
    if known.as_array().is_some_and(|dirs| !dirs.is_empty()) {
        println!("NOT TESTED: this dockerd looks for devices in {known}, which are the machine's");
        return Ok(());
    }
    let (server, api) = server(context)?;
    let refused = until("the node's probe has succeeded", || {
        let answer = api.create(&with_gpu(MODEL))?;
        if answer.status == 201 {
            api.delete(uuid(&answer.body))?.expect(204)?;
        }
        Ok((answer.status != 201).then_some(answer))
    })?;
    none_is_free(&refused)?;
    server.finish().context("without GPUs")
}
