//! Section 2.7 on random clusters: a request with the values of `nearest_available` succeeds.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use std::fmt::Write;
use wharf_tests::{Answer, Api, Ports, Server};

/// Number of cases; each has its own server.
const CASES: u32 = 24;

/// The minimum of each field.
const MINIMUMS: [(&str, u64); 3] = [("n_vcpus", 1), ("mem_gib", 1), ("disk_size_gib", 10)];

#[derive(Debug, Clone)]
struct ModelNode {
    size: [u32; 3],
    gpus: u32,
    tiers: &'static str,
    public: Option<u8>,
    lan_prefix: u8,
}

#[derive(Debug, Clone)]
enum ModelStep {
    Create {
        vm: bool,
        size: [u32; 3],
        high: bool,
        gpu: bool,
    },
    Resize(usize, [u32; 3]),
    Stop(usize),
    Restart(usize),
    Delete(usize),
}

fn size() -> impl Strategy<Value = [u32; 3]> {
    // Mostly sizes of a typical node, sometimes far larger.
    prop_oneof![
        4 => [1..12u32, 1..24u32, 10..80u32],
        1 => [1..=256u32, 1..=512u32, 10..=2000u32],
    ]
}

fn node() -> impl Strategy<Value = ModelNode> {
    let tiers = prop_oneof![
        3 => Just("\"general-purpose\", \"high-performance\""),
        1 => Just("\"general-purpose\""),
        1 => Just("\"high-performance\""),
    ];
    let public = prop_oneof![1 => Just(None), 3 => Just(Some(30)), 1 => Just(Some(29))];
    let capacity = [1..24u32, 1..48u32, 5..160u32];
    (capacity, 0..3u32, tiers, public, 28..=29u8).prop_map(
        |(size, gpus, tiers, public, lan_prefix)| ModelNode {
            size,
            gpus,
            tiers,
            public,
            lan_prefix,
        },
    )
}

fn step() -> impl Strategy<Value = ModelStep> {
    let create =
        (any::<bool>(), size(), any::<bool>(), any::<bool>()).prop_map(|(vm, size, high, gpu)| {
            ModelStep::Create {
                vm,
                size,
                high,
                gpu: gpu && !vm,
            }
        });
    prop_oneof![
        6 => create,
        3 => (any::<usize>(), size()).prop_map(|(n, size)| ModelStep::Resize(n, size)),
        2 => any::<usize>().prop_map(ModelStep::Stop),
        2 => any::<usize>().prop_map(ModelStep::Restart),
        1 => any::<usize>().prop_map(ModelStep::Delete),
    ]
}

#[test]
fn a_request_with_nearest_available_succeeds() {
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let cluster = prop::collection::vec(node(), 1..=3);
    let steps = prop::collection::vec(step(), 1..14);
    let mut runner = TestRunner::new(config);
    let seen = std::cell::Cell::new(0);
    let result = runner.run(&(cluster, steps), |(nodes, steps)| {
        seen.set(seen.get() + run_steps(&nodes, &steps)?);
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    println!(
        "{} requests with the values of nearest_available succeeded",
        seen.get()
    );
    assert!(
        seen.get() > 2,
        "too few 422 responses with usable values: {}",
        seen.get()
    );
}

#[test]
fn a_422_names_exhausted_addresses_together_with_sizes() {
    let node = ModelNode {
        size: [8, 16, 100],
        gpus: 0,
        tiers: "\"general-purpose\"",
        public: Some(30),
        lan_prefix: 29,
    };
    let server = Server::start(&configuration(&[node])).unwrap();
    let api = server.user("ann@example.com").unwrap();
    // A /30 has one address for VMs.
    api.create(&wharf_tests::small("vm"))
        .unwrap()
        .expect(201)
        .unwrap();
    let mut body = wharf_tests::small("vm");
    body["n_vcpus"] = json!(100);
    let detail = api.create(&body).unwrap().expect(422).unwrap()["detail"].clone();
    assert_eq!(detail["bottleneck"], json!(["n_vcpus", "public_ipv4"]));
    let near = json!({ "n_vcpus": 7, "public_ipv4": 0 });
    assert_eq!(detail["nearest_available"], near);
    server.finish().unwrap();
}

/// Runs the steps on a new server; returns the number of requests with `nearest_available`.
fn run_steps(nodes: &[ModelNode], steps: &[ModelStep]) -> Result<usize, TestCaseError> {
    let server = Server::start(&configuration(nodes)).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let mut world = World {
        api,
        made: Vec::new(),
        succeeded: 0,
    };
    for step in steps {
        world.run(step)?;
    }
    server.finish().unwrap();
    Ok(world.succeeded)
}

struct World {
    api: Api,
    made: Vec<String>,
    succeeded: usize,
}

impl World {
    fn run(&mut self, step: &ModelStep) -> Result<(), TestCaseError> {
        match step {
            ModelStep::Create {
                vm,
                size,
                high,
                gpu,
            } => {
                let mut body = sizes(*size);
                body["resource_type"] = json!(if *vm { "vm" } else { "container" });
                body["cpu_tier"] = json!(if *high {
                    "high-performance"
                } else {
                    "general-purpose"
                });
                if *gpu {
                    body["gpu_model"] = json!("H100");
                }
                let mut answer = self.api.create(&body).unwrap();
                if let Some(near) = nearest(&answer, &body)? {
                    answer = self.api.create(&near).unwrap();
                    self.expect_success(&answer, 201, &near)?;
                }
                if answer.status == 201 {
                    let id = answer.body["uuid"].as_str().unwrap().to_owned();
                    self.api.wait_for(&id, "running").unwrap();
                    self.made.push(id);
                }
            }
            ModelStep::Resize(n, size) => {
                let Some(id) = self.pick(*n) else {
                    return Ok(());
                };
                let path = format!("/api/instance/{id}/");
                let now = self.api.instance(&id).unwrap().expect(200).unwrap();
                let mut body = sizes(*size);
                // Disks only grow.
                let disk = now["disk_size_gib"].as_u64().unwrap();
                body["disk_size_gib"] = json!(disk.max(u64::from(size[2])));
                let answer = self.api.send("PATCH", &path, &body).unwrap();
                if let Some(near) = nearest(&answer, &body)? {
                    let answer = self.api.send("PATCH", &path, &near).unwrap();
                    self.expect_success(&answer, 200, &near)?;
                }
            }
            ModelStep::Stop(n) => {
                let Some(id) = self.pick(*n) else {
                    return Ok(());
                };
                let status = self.api.act(&id, "stop").unwrap().status;
                prop_assert!(matches!(status, 200 | 400));
            }
            ModelStep::Restart(n) => {
                let Some(id) = self.pick(*n) else {
                    return Ok(());
                };
                let answer = self.api.act(&id, "restart").unwrap();
                // A restart takes no sizes, so the instance is resized to the available values first.
                if let Some(near) = nearest(&answer, &json!({}))? {
                    if near.get("gpu_model").is_some() {
                        return Ok(());
                    }
                    let path = format!("/api/instance/{id}/");
                    let patched = self.api.send("PATCH", &path, &near).unwrap();
                    if patched.status != 400 {
                        self.expect_success(&patched, 200, &near)?;
                        let answer = self.api.act(&id, "restart").unwrap();
                        self.expect_success(&answer, 200, &near)?;
                    }
                }
                if answer.status != 400 {
                    let now = self.api.instance(&id).unwrap().expect(200).unwrap();
                    prop_assert_ne!(&now["state"], "error");
                }
            }
            ModelStep::Delete(n) => {
                if let Some(id) = self.pick(*n) {
                    self.api.delete(&id).unwrap().expect(204).unwrap();
                    self.made.retain(|other| *other != id);
                }
            }
        }
        Ok(())
    }

    fn pick(&self, n: usize) -> Option<String> {
        let n = n.checked_rem(self.made.len())?;
        self.made.get(n).cloned()
    }

    fn expect_success(
        &mut self,
        answer: &Answer,
        status: u16,
        request: &Value,
    ) -> Result<(), TestCaseError> {
        prop_assert_eq!(
            answer.status,
            status,
            "request {}: {:?}",
            request,
            answer.body
        );
        self.succeeded += 1;
        Ok(())
    }
}

/// Returns the request with the values of a 422. None for another status, or for values below the
/// minimum.
fn nearest(answer: &Answer, request: &Value) -> Result<Option<Value>, TestCaseError> {
    if answer.status != 422 {
        return Ok(None);
    }
    let detail = &answer.body["detail"];
    let near = detail["nearest_available"].as_object().unwrap();
    let bottleneck: Vec<&str> = detail["bottleneck"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field.as_str().unwrap())
        .collect();
    prop_assert!(!bottleneck.is_empty());
    prop_assert!(
        near.keys()
            .all(|field| bottleneck.contains(&field.as_str()))
    );
    let mut body = request.clone();
    for field in bottleneck {
        let available = near[field].as_u64().unwrap();
        prop_assert!(available < detail["requested"][field].as_u64().unwrap());
        if let Some((_, minimum)) = MINIMUMS.iter().find(|(name, _)| *name == field) {
            if available < *minimum {
                return Ok(None);
            }
            body[field] = json!(available);
        } else if field == "n_gpus" {
            body["gpu_model"] = Value::Null;
        } else {
            // Requests do not name ports or addresses.
            return Ok(None);
        }
    }
    Ok(Some(body))
}

fn sizes([n_vcpus, mem_gib, disk_size_gib]: [u32; 3]) -> Value {
    json!({ "n_vcpus": n_vcpus, "mem_gib": mem_gib, "disk_size_gib": disk_size_gib })
}

fn configuration(nodes: &[ModelNode]) -> String {
    let mut text = Ports::take().settings();
    for (n, node) in nodes.iter().enumerate() {
        let [n_vcpus, mem_gib, disk_size_gib] = node.size;
        let _ = write!(
            text,
            "[[node]]\nname = \"n{n}\"\ndriver = \"simulated\"\nendpoint = \"simulated:\"\n\
             capacity = {{ n_vcpus = {n_vcpus}, mem_gib = {mem_gib}, \
             disk_size_gib = {disk_size_gib} }}\ncpu_tiers = [{}]\n\
             lan_cidr = \"10.{}.0.0/28\"\nlan_subnet_prefix = {}\n",
            node.tiers,
            80 + n,
            node.lan_prefix
        );
        if node.gpus > 0 {
            let _ = writeln!(
                text,
                "gpus = [{{ model = \"H100\", count = {} }}]",
                node.gpus
            );
        }
        if let Some(prefix) = node.public {
            let _ = writeln!(text, "public_ipv4 = [\"203.0.{n}.0/{prefix}\"]");
        }
    }
    text
}
