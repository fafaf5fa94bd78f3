//! Wharf killed at various points during the growth of a disk.

use crate::context::Context;
use crate::grow::{ask, host_key};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use wharf_tests::{Login, eventually};

/// Enough content for a copy that takes a while.
const FILL: &str = "head -c 200000000 /dev/urandom > data; sha256sum data";
/// The points of a kill, as fractions of the undisturbed duration.
const POINTS: [f64; 5] = [0.05, 0.3, 0.6, 0.9, 1.0];
/// The deadline for a slow engine, with two copies.
const DEADLINE: Duration = Duration::from_secs(240);

pub fn converges(context: &Context) -> Result<()> {
    if !context.grows_disks() {
        println!("SKIPPED: no disk grows here");
        return Ok(());
    }
    let mut server = context.server()?;
    let mut api = server.user("ann@example.com")?;
    let created = api.small_container()?;
    let id = created["uuid"].as_str().unwrap_or_default().to_owned();
    let running = api.wait_for(&id, "running")?;
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    let login = Login::Password(password);
    let sum = login.output(&running, FILL)?;
    let key = host_key(&running)?;
    let mut disk = 10;
    let mut undisturbed = Duration::ZERO;
    for point in [None].into_iter().chain(POINTS.map(Some)) {
        disk += 1;
        api.act(&id, "stop")?.expect(200)?;
        ask(&api, &id, disk)?;
        let begin = Instant::now();
        let request = {
            let (api, id) = (api.clone(), id.clone());
            std::thread::spawn(move || drop(api.act(&id, "restart")))
        };
        if let Some(point) = point {
            std::thread::sleep(undisturbed.mul_f64(point));
            server.kill()?;
            drop(request.join());
            server.run()?;
            api = server.again(&api);
            // The request did not arrive before the kill.
            if api.instance(&id)?.expect(200)?["state"] == "exited" {
                api.act(&id, "restart")?.expect(200)?;
            }
        }
        let found = eventually("the data can be read", DEADLINE, || {
            Ok(login.output(&running, "sha256sum data").ok())
        })?;
        if point.is_none() {
            undisturbed = begin.elapsed();
        }
        ensure!(found == sum, "at {point:?}: {found} is not {sum}");
        ensure!(host_key(&running)? == key, "at {point:?}: another host key");
        let much = format!("fallocate -l {}M much && rm much", disk * 1024 - 900);
        login.output(&running, &much)?;
        let more = format!("fallocate -l {}G more", disk + 1);
        ensure!(
            !login.run(&running, &more)?.status.success(),
            "the limit of {disk} GiB is not enforced"
        );
        // One container is left, so the old disk's limit is gone too.
        context.container_of(&running)?;
        api.wait_for(&id, "running")?;
    }
    println!("undisturbed: {undisturbed:.1?}; killed at {POINTS:?} of that, no data was lost");
    api.delete(&id)?.expect(204)?;
    eventually("the engine has no object of the instance", DEADLINE, || {
        Ok(context.containers_of(&running)?.is_empty().then_some(()))
    })?;
    server.finish()
}
