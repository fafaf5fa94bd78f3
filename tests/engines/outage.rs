//! An outage of the engine.

use crate::context::EngineContext;
use crate::lab::{Lab, after_observations, inside, running, state, uuid};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use wharf_tests::Proxy;

/// Below the time for which a request waits for its engine, and long enough for a slow machine.
const AT_ONCE: Duration = Duration::from_secs(20);

pub fn socket_gone(context: &EngineContext) -> Result<()> {
    let mut proxy = Proxy::new(&context.socket()?)?;
    let server = context.server_on(&proxy.socket())?;
    let api = server.user("ann@example.com")?;
    let (doomed, kept) = (running(&api)?, running(&api)?);

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
    ensure!(state(&api, &kept)? == "running");
    at_once("get", begin)?;
    let begin = Instant::now();
    let waiting = api.small_container()?;
    at_once("create", begin)?;
    let begin = Instant::now();
    api.delete(uuid(&doomed))?.expect(204)?;
    at_once("delete", begin)?;
    ensure!(api.instance(uuid(&doomed))?.status == 404);
    // After failed observations, the instances still count as running.
    after_observations(&server, 2)?;
    ensure!(state(&api, &kept)? == "running");
    ensure!(state(&api, &waiting)? == "provisioning");
    ensure!(context.objects(&doomed)?.len() == 1);

    proxy.up()?;
    let running = api.wait_for(uuid(&waiting), "running")?;
    context.gone(&doomed)?;
    ensure!(inside(&running, "id -un")? == "user");
    for instance in [&kept, &waiting] {
        api.delete(uuid(instance))?.expect(204)?;
    }
    server.finish()
}
