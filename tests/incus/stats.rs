//! Live stats under a known load.

use super::context::IncusContext;
use crate::lab::{Lab, inside, named};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use wharf_tests::until;

const HELD_MIB: u32 = 400;
const FILE_MIB: u32 = 300;

pub fn of_a_known_load(context: &IncusContext) -> Result<()> {
    let (server, api) = context.served("")?;
    let instance = named(&api, "busy-box")?;
    let stats = || api.stats("busy-box");
    let idle = stats()?;
    ensure!(
        idle["mem_total_gib"] == 1.0 && idle["disk_total_gib"] == 10.0,
        "{idle}"
    );

    inside(
        &instance,
        &format!(
            "dd if=/dev/urandom of=file bs=1M count={FILE_MIB} 2>/dev/null; sync; \
             nohup timeout 600 python3 -c 'x = b\"x\" * ({HELD_MIB} << 20)\nwhile True: pass' \
             </dev/null >/dev/null 2>&1 &"
        ),
    )?;
    let gib = |mib: u32| f64::from(mib) / 1024.0;
    let more = |now: &Value, field| Ok::<_, anyhow::Error>(of(now, field)? - of(&idle, field)?);
    let loaded = until("the load is shown", || {
        let now = stats()?;
        let shown = more(&now, "mem_used_gib")? >= 0.9 * gib(HELD_MIB)
            && more(&now, "disk_used_gib")? >= 0.9 * gib(FILE_MIB)
            && more(&now, "cpu_percent")? > 20.0;
        Ok(shown.then_some(now))
    })?;
    ensure!(
        more(&loaded, "disk_used_gib")? < 1.2 * gib(FILE_MIB),
        "{loaded}"
    );
    // One CPU at most, with the error of short windows.
    ensure!(of(&loaded, "cpu_percent")? < 130.0, "{loaded}");
    context.remove(&api, &instance)?;
    server.finish()
}

fn of(stats: &Value, field: &str) -> Result<f64> {
    stats[field]
        .as_f64()
        .with_context(|| format!("{field}: {stats}"))
}
