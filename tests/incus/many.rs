//! Many instances at once.

use crate::context::{Context, inside, uuid};
use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use std::time::Instant;
use wharf_tests::until;

const MANY: usize = 8;

pub fn at_once(context: &Context) -> Result<()> {
    let server = context.server(&[0, 1, 2])?;
    let api = server.user("ann@example.com")?;
    let begin = Instant::now();
    let created = (0..MANY)
        .map(|_| api.small_container())
        .collect::<Result<Vec<_>>>()?;
    until("all are running", || {
        let list = api.list()?;
        let stuck = list.iter().find(|i| i["state"] == "error");
        ensure!(stuck.is_none(), "{stuck:?}");
        let all = list.iter().all(|i| i["state"] == "running");
        Ok(all.then_some(()))
    })?;
    let up = begin.elapsed();
    let mut members = BTreeSet::new();
    for field in ["uuid", "name", "lan_ipv4", "ssh_command"] {
        let values: BTreeSet<_> = created.iter().map(|i| i[field].to_string()).collect();
        ensure!(values.len() == MANY, "{field} twice: {values:?}");
    }
    for instance in &created {
        ensure!(inside(instance, "uname -n")? == instance["name"]);
        members.insert(context.object(instance)?["location"].to_string());
    }
    ensure!(members.len() == 3, "{members:?}");
    let begin = Instant::now();
    for instance in &created {
        api.delete(uuid(instance))?.expect(204)?;
    }
    for instance in &created {
        context.gone(instance)?;
    }
    println!(
        "{MANY} at once: up after {up:.1?}, gone after {:.1?}",
        begin.elapsed()
    );
    server.finish()
}
