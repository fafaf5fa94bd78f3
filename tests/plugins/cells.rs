//! Instances on the engine of the example driver, over REST.

use crate::celld::{Celld, is_possible};
use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use wharf_tests::{Api, Server, caught, metric, small, succeed, until};

/// Points of a kill, as fractions of the calls of plugins in an undisturbed step.
const POINTS: [f64; 4] = [0.02, 0.3, 0.6, 1.0];

fn start(celld: &Celld) -> (Server, Api) {
    let plugins = celld.plugins();
    let settings = celld.settings();
    let server = Server::start(&format!(
        "plugins_dir = \"{}\"\n{settings}",
        plugins.display()
    ));
    let server = server.unwrap();
    let api = server.user("ann@example.com").unwrap();
    (server, api)
}

fn notes(name: &str) -> Value {
    let mut body = small("container");
    body["flavor"] = json!("notes");
    body["name"] = json!(name);
    body
}

/// Sends a request to the page of an instance. A body makes it a POST.
fn page(instance: &Value, path: &str, password: &str, body: Option<&str>) -> Result<(u16, String)> {
    let url = format!("{}{path}", instance["webapp_url"].as_str().unwrap());
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(10)))
        .build();
    let agent = ureq::Agent::from(config);
    let basic = format!("Basic {}", STANDARD.encode(format!("u:{password}")));
    let mut answer = match body {
        Some(body) => agent.post(&url).header("Authorization", basic).send(body)?,
        None => agent.get(&url).header("Authorization", basic).call()?,
    };
    Ok((
        answer.status().as_u16(),
        answer.body_mut().read_to_string()?,
    ))
}

fn password(instance: &Value) -> &str {
    instance["original_service_password"].as_str().unwrap()
}

fn inside(instance: &Value) -> Value {
    let (status, body) = page(instance, "inside", password(instance), None).unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Creation, page, isolation, sizes, stop, a larger disk, restart, a killed engine, deletion.
#[test]
fn an_instance_lives_on_the_example_engine() {
    if !is_possible() {
        return;
    }
    let mut celld = Celld::start();
    let (server, api) = start(&celld);
    api.create(&notes("one")).unwrap().expect(201).unwrap();
    let one = api.wait_for("one", "running").unwrap();
    let (status, _) = page(&one, "", "wrong", None).unwrap();
    assert_eq!(status, 401);
    let (status, shown) = page(&one, "", password(&one), Some("kept")).unwrap();
    assert_eq!((status, shown.trim()), (200, "kept"));

    let seen = inside(&one);
    assert_eq!(seen["hostname"], "one");
    assert_eq!(
        seen["processes"],
        json!([1]),
        "it sees its own process only"
    );
    assert_eq!(seen["users"][0], "0");
    assert_ne!(seen["users"][1], "0", "its root is not the node's");
    assert_eq!(seen["usr_is_writable"], false);
    assert_eq!(seen["reached"], json!([]), "{seen}");
    let disk = |seen: &Value| seen["disk_bytes"].as_u64().unwrap() >> 20;
    assert!((9 << 10..10 << 10).contains(&disk(&seen)), "{seen}");
    // Two instances of an owner have networks in common, and one of another owner's has not.
    isolated(&server, &api, &one);

    let larger = json!({ "n_vcpus": 2, "mem_gib": 2 });
    let path = "/api/instance/one/";
    let resized = api.send("PATCH", path, &larger).unwrap().expect(200);
    assert_eq!(resized.unwrap()["mem_gib"], 2.0);
    let stats = api.get(&format!("{path}stats/")).unwrap().expect(200);
    let stats = stats.unwrap();
    assert!(stats["mem_used_gib"].as_f64().unwrap() > 0.0, "{stats}");

    celld.kill_and_start();
    until("the page answers through the new celld", || {
        Ok(page(&one, "health", "", None)
            .ok()
            .filter(|(s, _)| *s == 200))
    })
    .unwrap();
    assert_eq!(api.instance("one").unwrap().body["state"], "running");

    api.act("one", "stop").unwrap().expect(200).unwrap();
    api.wait_for("one", "exited").unwrap();
    // The stop is durable first.
    until("its port is closed", || {
        Ok(page(&one, "health", "", None).is_err().then_some(()))
    })
    .unwrap();
    let disk_size = json!({ "disk_size_gib": 12 });
    api.send("PATCH", path, &disk_size)
        .unwrap()
        .expect(200)
        .unwrap();
    api.act("one", "restart").unwrap().expect(200).unwrap();
    let again = api.wait_for("one", "running").unwrap();
    until("the note is there", || {
        let shown = page(&again, "", password(&one), None).ok();
        Ok(shown.filter(|(_, text)| text.trim() == "kept"))
    })
    .unwrap();
    assert!(disk(&inside(&again)) > 11 << 10);

    api.delete("one").unwrap().expect(204).unwrap();
    nothing_is_left(&celld);
    server.finish().unwrap();
}

/// The addresses of owners' instances: reachable within the owner's network alone.
fn isolated(server: &Server, api: &Api, one: &Value) {
    api.create(&notes("two")).unwrap().expect(201).unwrap();
    let two = api.wait_for("two", "running").unwrap();
    let bob = server.user("bob@example.com").unwrap();
    bob.create(&notes("three")).unwrap().expect(201).unwrap();
    let three = bob.wait_for("three", "running").unwrap();
    let lan = |instance: &Value| instance["lan_ipv4"].as_str().unwrap().to_owned();
    let reach = |address: &str| {
        let path = format!("reach/{address}");
        let (_, body) = page(one, &path, password(one), None).unwrap();
        body.trim().to_owned()
    };
    assert_eq!(reach(&lan(&two)), "reached");
    assert_eq!(reach(&lan(&three)), "not reached");
    assert_eq!(reach("127.0.0.1"), "reached", "its own page");
    api.delete("two").unwrap().expect(204).unwrap();
    bob.delete("three").unwrap().expect(204).unwrap();
}

/// The server is killed at several points of each step, and the instance gets where it should be.
#[test]
fn operations_on_the_example_engine_complete_after_kills() {
    if !is_possible() {
        return;
    }
    let celld = Celld::start();
    let (mut server, mut api) = start(&celld);
    let calls = |api: &Api| metric(api, "wharf_plugin_call_duration_seconds_count");
    let mut took = [0.0_f64; 4];
    // The first round is undisturbed, and tells how many calls the steps take.
    for point in [None].into_iter().chain(POINTS.map(Some)) {
        let mut step =
            |n: usize, begin: &(dyn Fn(&Api) + Sync), state: Option<&str>| -> Result<()> {
                let (acting, before) = (api.clone(), calls(&api)?);
                std::thread::scope(|scope| {
                    scope.spawn(|| begin(&acting));
                    if let Some(point) = point {
                        let goal = before + took[n] * point;
                        caught("the step has got so far", || {
                            Ok((calls(&acting)? >= goal).then_some(()))
                        })?;
                        server.kill()?;
                        server.run()?;
                        api = server.again(&api);
                    }
                    Ok::<_, anyhow::Error>(())
                })?;
                match state {
                    // The request may not have arrived before the kill.
                    Some("running") if api.instance("victim")?.status == 404 => {
                        drop(api.create(&notes("victim")));
                    }
                    Some("exited") => drop(api.act("victim", "stop")),
                    Some("running") if state_of(&api)? == "exited" => {
                        drop(api.act("victim", "restart"));
                    }
                    None => drop(api.delete("victim")),
                    _ => {}
                }
                match state {
                    Some(state) => drop(api.wait_for("victim", state)?),
                    None => {
                        let gone = || Ok(celld.cells().is_empty().then_some(()));
                        until("the cell is gone", gone)?;
                        ensure!(api.instance("victim")?.status == 404);
                    }
                }
                if state != Some("exited") {
                    ensure!(celld.cells().len() == usize::from(state.is_some()));
                }
                if point.is_none() {
                    took[n] = calls(&api)? - before;
                }
                Ok(())
            };
        step(
            0,
            &|api| drop(api.create(&notes("victim"))),
            Some("running"),
        )
        .unwrap();
        step(1, &|api| drop(api.act("victim", "stop")), Some("exited")).unwrap();
        let id = celld.cells().pop().unwrap();
        // A stop is durable before the engine has carried it out.
        let is = |phase| {
            until(phase, || {
                Ok((celld.cell(&id)["phase"] == phase).then_some(()))
            })
        };
        is("stopped").unwrap();
        step(
            2,
            &|api| drop(api.act("victim", "restart")),
            Some("running"),
        )
        .unwrap();
        is("running").unwrap();
        step(3, &|api| drop(api.delete("victim")), None).unwrap();
    }
    nothing_is_left(&celld);
    server.finish().unwrap();
}

fn state_of(api: &Api) -> Result<String> {
    let body = api.instance("victim")?.expect(200)?;
    Ok(body["state"].as_str().unwrap_or_default().to_owned())
}

/// Neither cells nor networks nor mounts nor control groups.
fn nothing_is_left(celld: &Celld) {
    let gone = || Ok(celld.cells().is_empty().then_some(()));
    until("the cells are gone", gone).unwrap();
    let store = celld.store();
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(store.to_str().unwrap()), "{mounts}");
    let loops = succeed(Command::new("losetup").arg("-a")).unwrap();
    assert!(!loops.contains(store.to_str().unwrap()), "{loops}");
}
