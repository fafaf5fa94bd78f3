//! Live resize, as seen from the instance, and a restart, after which everything is as before.

use crate::lab::{Lab, NAME, Neighbours, inside, restarted, user, uuid};
use crate::login;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use wharf_tests::{Answer, until};

/// Holds 1.3 GiB until it is killed.
const HOLD: &str = "nohup python3 -c 'x = b\"x\" * (1300 << 20); print(\"held\", flush=True); \
    import time; time.sleep(600)' >held 2>&1 </dev/null & while ! grep -q held held; do sleep 0.1; done";

/// vCPUs and RAM change on a running instance: its processes continue, and the answer comes after
/// the change.
pub fn live(lab: &impl Lab, all: &mut Neighbours) -> Result<()> {
    let facts = lab.facts();
    let (api, mine) = (&all.api, &all.mine);
    let path = format!("/api/instance/{}/", uuid(mine));
    let patch = |body: Value| -> Result<Answer> { api.send("PATCH", &path, &body) };
    let pid = inside(mine, "nohup sleep 600 >/dev/null 2>&1 & echo $!")?;
    for (n_vcpus, mem_gib) in facts.sizes {
        let resized = patch(json!({ "n_vcpus": n_vcpus, "mem_gib": mem_gib }))?.expect(200)?;
        ensure!(resized["n_vcpus"] == *n_vcpus && resized["state"] == "running");
        lab.has_size(mine, (*n_vcpus, *mem_gib))?;
    }
    if facts.grows_running {
        patch(json!({ "disk_size_gib": 12 }))?.expect(200)?;
        inside(mine, "fallocate -l 11G ~/x && rm ~/x")?;
        let much = inside(mine, "fallocate -l 13G ~/x");
        ensure!(much.is_err(), "13 GiB fit on a disk of 12");
        inside(mine, "rm -f ~/x")?;
    }
    inside(mine, &format!("kill -0 {pid}"))?;

    // A size below the usage is refused, and nothing changes.
    let (n_vcpus, mem_gib) = *facts.sizes.last().unwrap_or(&(1, 2));
    inside(mine, HOLD)?;
    let mut answer = patch(json!({ "mem_gib": 1, "n_vcpus": 1 }))?;
    if !facts.knows_usage_at_once && answer.status == 200 {
        answer = until("the usage is known", || {
            patch(json!({ "mem_gib": mem_gib, "n_vcpus": n_vcpus }))?.expect(200)?;
            let answer = patch(json!({ "mem_gib": 1, "n_vcpus": 1 }))?;
            Ok((answer.status != 200).then_some(answer))
        })?;
    }
    ensure!(
        answer.status == 400 && answer.body["mem_gib"].is_array(),
        "{answer:?}"
    );
    lab.has_size(mine, (n_vcpus, mem_gib))?;
    let shown = api.instance(uuid(mine))?.expect(200)?;
    ensure!(
        shown["n_vcpus"] == n_vcpus && shown["mem_gib"] == f64::from(mem_gib),
        "{shown}"
    );
    inside(mine, "pkill -f 'print.\"hel[d]'; true").map(drop)
}

/// Sizes, limits and host keys stay, and so does the hostname of a renamed instance: no engine changes it.
pub fn restart(lab: &impl Lab, all: &mut Neighbours) -> Result<()> {
    let (api, mine) = (&all.api, &all.mine);
    let path = format!("/api/instance/{}/", uuid(mine));
    let keys = login::shown(api, mine)?;
    let renamed = json!({ "name": "renamed" });
    api.send("PATCH", &path, &renamed)?.expect(200)?;
    api.act(uuid(mine), "stop")?.expect(200)?;
    let wanted = json!({ "n_vcpus": 2, "mem_gib": 3 });
    api.send("PATCH", &path, &wanted)?.expect(200)?;
    api.act(uuid(mine), "restart")?.expect(200)?;
    api.wait_for(uuid(mine), "running")?;
    user(mine).wait_for_login(mine)?;
    lab.has_size(mine, (2, 3))?;
    ensure!(inside(mine, "uname -n")? == NAME);
    ensure!(login::shown(api, mine)? == keys, "other host keys");
    let other = login::shown(api, &all.other)?;
    restarted(api, &all.other)?;
    ensure!(login::shown(api, &all.other)? == other, "other host keys");
    for instance in [mine, &all.other] {
        let events = all.server.cli(&["events", uuid(instance)])?;
        ensure!(!events.contains("host-key-changed"), "{events}");
    }
    Ok(())
}
