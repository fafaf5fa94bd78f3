//! A member is destroyed with all that it has.

use super::context::IncusContext;
use crate::backups::SETTINGS;
use crate::destroyed::come_back;
use crate::engine_restart::end;
use anyhow::{Context as _, Result, ensure};
use wharf_tests::Ports;

/// The member whose end no later test sees.
const DOOMED: usize = 2;
const OTHER: usize = 1;
const PORTS: Ports = Ports {
    from: 15_400,
    to: 15_599,
};

pub fn member(context: &IncusContext) -> Result<()> {
    let settings = context.settings_with(&[DOOMED, OTHER], PORTS, SETTINGS);
    let settings = settings.replace("n_vcpus = 16", "n_vcpus = 32");
    let names = [DOOMED, OTHER].map(|at| context.member(at).name.clone());
    let [doomed, other] = &names;
    come_back(&settings, [doomed, other], |instances, rest| {
        let pids = instances.iter().map(|one| {
            let state = context.on(one, "GET", "/state", None)?;
            let pid = state["pid"].as_u64().filter(|pid| *pid > 1);
            pid.map(|pid| pid.to_string()).context("no pid")
        });
        let pids = pids.collect::<Result<Vec<_>>>()?;
        {
            let mut cluster = context.cluster();
            let member = cluster.member(DOOMED)?;
            member.kill()?;
            pids.iter().try_for_each(|pid| end(pid))?;
            let state = member.directory().display().to_string();
            let all = format!("rm -rf {state}/storage-pools/*/containers/* {state}/database");
            let removed = member.inside("sh").args(["-c", &all]).status()?;
            ensure!(removed.success(), "{all}");
        }
        rest()?;
        // All members take part in the deletion of the images with the content.
        let gone = format!("/1.0/cluster/members/{doomed}?force=1");
        context.ask("DELETE", &gone, None).map(drop)
    })
}
