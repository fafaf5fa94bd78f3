//! Live resize, as seen from the instance.

use crate::context::Context;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use wharf_tests::{Answer, Api, Login, small};

const CPU: &str = "cat /sys/fs/cgroup/cpu.max 2>/dev/null || \
    echo $(cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us) $(cat /sys/fs/cgroup/cpu/cpu.cfs_period_us)";
const MEMORY: &str = "cat /sys/fs/cgroup/memory.max 2>/dev/null || \
    cat /sys/fs/cgroup/memory/memory.limit_in_bytes";

fn patch(api: &Api, body: &Value) -> Result<Answer> {
    api.send("PATCH", "/api/instance/elastic/", body)
}

fn check(login: &Login<'_>, instance: &Value, n_vcpus: f64, mem_gib: u64) -> Result<()> {
    let cpu = login.output(instance, CPU)?;
    let cpu: Vec<f64> = cpu
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    ensure!(
        (cpu[0] / cpu[1] - n_vcpus).abs() < 0.01,
        "{cpu:?} is not {n_vcpus}"
    );
    let memory = login.output(instance, MEMORY)?;
    ensure!(
        memory == (mem_gib << 30).to_string(),
        "{memory} is not {mem_gib} GiB"
    );
    Ok(())
}

/// vCPUs and RAM change on a running instance: its processes continue, and the answer comes after
/// the change.
pub fn live(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let mut body = small("container");
    body["name"] = json!("elastic");
    api.create(&body)?.expect(201)?;
    let running = api.wait_for("elastic", "running")?;
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    let login = Login::Password(password);
    let pid = login.output(&running, "nohup sleep 600 >/dev/null 2>&1 & echo $!")?;

    for (n_vcpus, mem_gib) in [(3, 4), (2, 2), (4, 2)] {
        let body = json!({ "n_vcpus": n_vcpus, "mem_gib": mem_gib });
        let resized = patch(&api, &body)?.expect(200)?;
        ensure!(resized["n_vcpus"] == n_vcpus && resized["state"] == "running");
        check(
            &login,
            &running,
            f64::from(n_vcpus),
            u64::try_from(mem_gib)?,
        )?;
    }
    login.output(&running, &format!("kill -0 {pid}"))?;

    // A size below the usage is refused, and nothing changes.
    let hold = "python3 -c 'x = b\"x\" * (1300 << 20); print(\"held\", flush=True); \
                import time; time.sleep(20)' >held 2>&1 & while ! grep -q held held; do sleep 0.1; done";
    login.output(&running, hold)?;
    let answer = patch(&api, &json!({ "mem_gib": 1, "n_vcpus": 1 }))?;
    ensure!(
        answer.status == 400 && answer.body["mem_gib"].is_array(),
        "{answer:?}"
    );
    check(&login, &running, 4.0, 2)?;
    let shown = api.instance("elastic")?.expect(200)?;
    ensure!(shown["n_vcpus"] == 4 && shown["mem_gib"] == 2.0, "{shown}");

    // The new sizes stay in effect after a restart.
    api.act("elastic", "stop")?.expect(200)?;
    patch(&api, &json!({ "n_vcpus": 2 }))?.expect(200)?;
    api.act("elastic", "restart")?.expect(200)?;
    let running = api.wait_for("elastic", "running")?;
    login.wait_for_login(&running)?;
    check(&login, &running, 2.0, 2)?;
    api.delete("elastic")?.expect(204)?;
    server.finish()
}
