//! Wharf killed at various points during the growth of a disk.

use crate::context::EngineContext;
use crate::grow::{ask, host_key};
use crate::lab::{Lab, inside, running, state, uuid};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use wharf_tests::eventually;
use wharf_tests::lanes::is_whole_run;

/// Enough content for a copy that takes a while.
const FILL: &str = "head -c 200000000 /dev/urandom > data; sha256sum data";
/// The points of a kill, as fractions of the undisturbed duration.
const POINTS: [f64; 5] = [0.05, 0.3, 0.6, 0.9, 1.0];
/// Those of a plain run: during the copy, and while one container takes the other's place.
const PLAIN: [f64; 2] = [0.3, 0.9];
/// The deadline for a slow engine, with two copies.
const DEADLINE: Duration = Duration::from_secs(240);

pub fn converges(context: &EngineContext) -> Result<()> {
    if !context.grows_disks() {
        println!("SKIPPED: no disk grows here");
        return Ok(());
    }
    let (mut server, mut api) = context.served("")?;
    let running = running(&api)?;
    let id = uuid(&running).to_owned();
    let sum = inside(&running, FILL)?;
    let key = host_key(&running)?;
    let mut disk = 10;
    let mut undisturbed = Duration::ZERO;
    let points = if is_whole_run() { &POINTS[..] } else { &PLAIN };
    for point in [None].into_iter().chain(points.iter().map(Some)) {
        disk += 1;
        api.act(&id, "stop")?.expect(200)?;
        ask(&api, &id, disk)?;
        let begin = Instant::now();
        let request = {
            let (api, id) = (api.clone(), id.clone());
            std::thread::spawn(move || drop(api.act(&id, "restart")))
        };
        if let Some(point) = point {
            std::thread::sleep(undisturbed.mul_f64(*point));
            server.kill()?;
            drop(request.join());
            server.run()?;
            api = server.again(&api);
            // The request did not arrive before the kill.
            if state(&api, &running)? == "exited" {
                api.act(&id, "restart")?.expect(200)?;
            }
        }
        let found = eventually("the data can be read", DEADLINE, || {
            Ok(inside(&running, "sha256sum data").ok())
        })?;
        if point.is_none() {
            undisturbed = begin.elapsed();
        }
        ensure!(found == sum, "at {point:?}: {found} is not {sum}");
        ensure!(host_key(&running)? == key, "at {point:?}: another host key");
        let much = format!("fallocate -l {}M much && rm much", disk * 1024 - 900);
        inside(&running, &much)?;
        let more = format!("fallocate -l {}G more", disk + 1);
        ensure!(
            inside(&running, &more).is_err(),
            "the limit of {disk} GiB is not enforced"
        );
        // One container is left, so the old disk's limit is gone too.
        context.container_of(&running)?;
        api.wait_for(&id, "running")?;
    }
    println!("undisturbed: {undisturbed:.1?}; killed at {points:?} of that, no data was lost");
    context.remove(&api, &running)?;
    server.finish()
}
