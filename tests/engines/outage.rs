//! An outage of the engine.

use crate::context::Context;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use wharf_tests::{Login, Proxy, until};

/// Far below the timeout of any call to a missing engine.
const AT_ONCE: Duration = Duration::from_secs(2);

pub fn socket_gone(context: &Context) -> Result<()> {
    let mut proxy = Proxy::new(&context.socket()?)?;
    let server = context.server_on(&proxy.socket())?;
    let api = server.user("ann@example.com")?;
    let uuid = |i: &serde_json::Value| i["uuid"].as_str().unwrap_or_default().to_owned();
    let doomed = api.small_container()?;
    let kept = api.small_container()?;
    api.wait_for(&uuid(&doomed), "running")?;
    api.wait_for(&uuid(&kept), "running")?;

    proxy.down()?;
    let at_once = |what: &str, begin: Instant| -> Result<()> {
        let took = begin.elapsed();
        ensure!(took < AT_ONCE, "{what} took {took:?} without the engine");
        Ok(())
    };
    let begin = Instant::now();
    ensure!(api.list()?.len() == 2);
    at_once("list", begin)?;
    let begin = Instant::now();
    ensure!(api.instance(&uuid(&kept))?.expect(200)?["state"] == "running");
    at_once("get", begin)?;
    let begin = Instant::now();
    let waiting = api.small_container()?;
    at_once("create", begin)?;
    let begin = Instant::now();
    api.delete(&uuid(&doomed))?.expect(204)?;
    at_once("delete", begin)?;
    ensure!(api.instance(&uuid(&doomed))?.status == 404);
    // Long enough for a failed observation: the instances still count as running.
    std::thread::sleep(Duration::from_secs(5));
    ensure!(api.instance(&uuid(&kept))?.expect(200)?["state"] == "running");
    ensure!(api.instance(&uuid(&waiting))?.expect(200)?["state"] == "provisioning");
    ensure!(context.containers_of(&doomed)?.len() == 1);

    proxy.up()?;
    let running = api.wait_for(&uuid(&waiting), "running")?;
    until("the deleted instance is gone", || {
        Ok(context.containers_of(&doomed)?.is_empty().then_some(()))
    })?;
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    ensure!(Login::Password(password).output(&running, "id -un")? == "user");
    for instance in [&kept, &waiting] {
        api.delete(&uuid(instance))?.expect(204)?;
    }
    server.finish()
}
