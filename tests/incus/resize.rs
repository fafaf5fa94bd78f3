//! Live resize, as seen from the instance.

use crate::context::{Context, inside, named, remove, running};
use anyhow::{Result, ensure};
use serde_json::json;
use std::time::{Duration, Instant};
use wharf_tests::until;

/// The time in which an idle engine gives an instance its number of CPUs.
const SOON: Duration = Duration::from_secs(10);

pub fn live(context: &Context) -> Result<()> {
    let server = context.server(&[1])?;
    let api = server.user("ann@example.com")?;
    let instance = named(&api, Some("elastic"))?;
    let run = |command: &str| inside(&instance, command);
    let pid = run("nohup sleep 600 >/dev/null 2>&1 & echo $!")?;
    ensure!(run("nproc")? == "1");
    ensure!(
        run("fallocate -l 11G ~/x").is_err(),
        "11 GiB fit on a disk of 10"
    );
    run("rm -f ~/x; fallocate -l 9500M ~/x && rm ~/x")?;

    let patch = |body| api.send("PATCH", "/api/instance/elastic/", &body);
    let wanted = json!({ "n_vcpus": 2, "mem_gib": 2, "disk_size_gib": 12 });
    let resized = patch(wanted)?.expect(200)?;
    ensure!(
        resized["state"] == "running" && resized["n_vcpus"] == 2,
        "{resized}"
    );
    // The engine moves instances to their CPUs in the background. On a busy machine it may read the old
    // number then, until the next instance starts or stops.
    let has_two = || Ok::<_, anyhow::Error>(run("nproc")? == "2");
    let begun = Instant::now();
    while !has_two()? && begun.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(200));
    }
    if !has_two()? {
        println!("the engine has missed the new number of CPUs");
        remove(context, &api, &running(&api)?)?;
    }
    until("the instance has two CPUs", || Ok(has_two()?.then_some(())))?;
    ensure!(run("free --mebi | awk '/^Mem/ {print $2}'")? == "2048");
    run("fallocate -l 11G ~/x && rm ~/x")?;
    ensure!(
        run("fallocate -l 13G ~/x").is_err(),
        "13 GiB fit on a disk of 12"
    );
    run(&format!("rm -f ~/x; kill -0 {pid}"))?;

    // A size below the usage is refused, and nothing changes.
    run("head -c 1200M /dev/zero >/dev/shm/x")?;
    let refused = until("the usage is known", || {
        let answer = patch(json!({ "mem_gib": 1, "n_vcpus": 1 }))?;
        if answer.status == 200 {
            patch(json!({ "mem_gib": 2, "n_vcpus": 2 }))?.expect(200)?;
        }
        Ok((answer.status != 200).then_some(answer))
    })?;
    ensure!(
        refused.status == 400 && refused.body["mem_gib"].is_array(),
        "{refused:?}"
    );
    ensure!(context.object(&instance)?["config"]["limits.memory"] == "2GiB");
    ensure!(context.object(&instance)?["config"]["limits.cpu"] == "2");
    remove(context, &api, &instance)?;
    server.finish()
}
