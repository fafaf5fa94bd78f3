//! Wharf is killed while a disk grows, at points all over the way.

use crate::context::Context;
use crate::grow::{ask, host_key};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use wharf_tests::{Login, eventually};

/// How much there is to move: enough to be in the middle of it for a while.
const FILL: &str = "head -c 200000000 /dev/urandom > data; sha256sum data";
/// Parts of the time that it takes undisturbed.
const POINTS: [f64; 5] = [0.05, 0.3, 0.6, 0.9, 1.0];
/// A slow engine, twice the work.
const PATIENCE: Duration = Duration::from_secs(240);

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
            // If the request never got through, it is as if it had not been sent.
            if api.instance(&id)?.expect(200)?["state"] == "exited" {
                api.act(&id, "restart")?.expect(200)?;
            }
        }
        let found = eventually("its data can be read", PATIENCE, || {
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
            "{disk} GiB are no limit"
        );
        // One container, and the old one's limit is gone with it.
        context.container_of(&running)?;
        api.wait_for(&id, "running")?;
    }
    println!(
        "undisturbed: {undisturbed:.1?}; killed at {POINTS:?} of it, everything was there each time"
    );
    api.delete(&id)?.expect(204)?;
    eventually("nothing of it is left", PATIENCE, || {
        Ok(context.containers_of(&running)?.is_empty().then_some(()))
    })?;
    server.finish()
}
