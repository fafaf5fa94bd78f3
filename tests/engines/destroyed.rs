//! A node is destroyed with twenty instances, and the operator brings them back elsewhere from the backups of their
//! plans.

use crate::backups::{SETTINGS, bucket};
use crate::context::EngineContext;
use crate::engine_restart::end;
use crate::lab::{OFTEN, inside, patient, text, user, uuid};
use crate::many::side_by_side;
use crate::moves::NAMES;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use wharf_testkit::object_store::ObjectStore;
use wharf_tests::{Api, FakeClock, Ports, Server, eventually};

const INSTANCES: u16 = 20;
const PORTS: Ports = Ports {
    from: 15_200,
    to: 15_399,
};
/// Twenty backups or instances on a slow machine, of which four come at a time.
const DEADLINE: Duration = Duration::from_secs(1200);
const WRITE: &str = "head -c 3M /dev/urandom > kept && \
    sudo sh -c 'uname -n > /etc/kept && chmod 640 /etc/kept && cp /etc/kept /srv' && sync";
const HASHES: &str =
    "sudo sha256sum kept /etc/kept /srv/kept && sudo stat -c '%n %a %U %s' kept /etc/kept";

/// A dockerd dies with all that it has.
pub fn dockerd(context: &EngineContext) -> Result<()> {
    if !context.grows_disks() {
        println!("SKIPPED: this kernel has no btrfs, so the engines cannot limit disks");
        return Ok(());
    }
    let mut engines = [context.another("lost-1")?, context.another("lost-2")?];
    let nodes = [engines[0].node(NAMES[0])?, engines[1].node(NAMES[1])?].concat();
    let settings = format!("{}{}{SETTINGS}{nodes}", patient(OFTEN), PORTS.settings());
    let [doomed, _] = &mut engines;
    come_back(&settings, NAMES, |instances, rest| {
        let pids = instances.iter().map(|one| doomed.container_pid(one));
        let pids = pids.collect::<Result<Vec<_>>>()?;
        let store = doomed.store();
        doomed.crash(|| {
            pids.iter().try_for_each(|pid| end(pid))?;
            removed(&store)?;
            rest()
        })
    })?;
    let stopped = engines.map(EngineContext::stop);
    stopped.into_iter().collect()
}

/// Removes a directory with what is mounted in it.
fn removed(directory: &Path) -> Result<()> {
    let script = r#"awk -v at="$1/" 'index($2, at) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount -l; rm -rf "$1""#;
    let mut remove = Command::new("sh");
    let done = remove.args(["-c", script, "sh"]).arg(directory).status()?;
    ensure!(done.success(), "{}: {done}", directory.display());
    Ok(())
}

/// Has instances with plans on the first node, which `destroy` destroys before it calls the rest.
pub fn come_back(
    settings: &str,
    [doomed, other]: [&str; 2],
    destroy: impl FnOnce(&[Value], &mut dyn FnMut() -> Result<()>) -> Result<()>,
) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = ObjectStore::start(directory.path())?;
    let clock = FakeClock::new()?;
    let mut server = Server::start_in(settings, &clock.environment())?;
    let mut api = server.user("ann@example.com")?;
    let added = api.send("POST", "/api/bucket/", &bucket(&store))?;
    added.expect(201)?;
    server.cli(&["node", "drain", other])?;
    side_by_side(INSTANCES, |_| api.small_container())?;
    let before = all_run(&api)?;
    let mut hashes = Vec::new();
    for one in &before {
        user(one).wait_for_login(one)?;
        inside(one, WRITE)?;
        hashes.push(inside(one, HASHES)?);
        let path = format!("/api/instance/{}/backup-plan/", uuid(one));
        let plan = json!({ "bucket": "store", "every_h": 1, "keep": 2 });
        api.send("PUT", &path, &plan)?.expect(200)?;
    }
    let began = Instant::now();
    clock.set("+3600")?;
    server.cli(&["clock", "adopt"])?;
    let bytes = eventually("all plans have run", DEADLINE, || {
        let listed = api.get("/api/backup/")?.expect(200)?;
        let listed = listed.as_array().context("no list")?;
        let failed = listed.iter().find(|one| one["state"] == "failed");
        ensure!(failed.is_none(), "{failed:?}");
        let done = listed.iter().filter(|one| one["state"] == "done");
        let bytes = done.map(|one| one["content_bytes"].as_u64());
        let bytes: Vec<_> = bytes.flatten().collect();
        Ok((bytes.len() == usize::from(INSTANCES)).then_some(bytes.iter().sum::<u64>()))
    })?;
    println!(
        "{INSTANCES} plans: {} MB in {:.0?}",
        bytes / 1_000_000,
        began.elapsed()
    );
    for one in &before {
        inside(one, "date > late && rm kept && sync")?;
    }

    destroy(&before, &mut || {
        server.cli(&["node", "resume", other])?;
        eventually("the node is given up", DEADLINE, || {
            Ok(server.cli(&["node", "lost", doomed, "--yes"]).ok())
        })?;
        let began = Instant::now();
        let said = server.cli(&["node", "restore", doomed])?;
        let all = format!("{INSTANCES} are made again, 0 stay lost");
        ensure!(said.contains(&all), "{said}");
        eventually("some are back", DEADLINE, || {
            Ok((running(&api.list()?) > 2).then_some(()))
        })?;
        server.kill()?;
        server.run()?;
        api = server.again(&api);
        let after = all_run(&api)?;
        println!(
            "{INSTANCES} instances are back after {:.0?}, with a kill of the server",
            began.elapsed()
        );
        for ((was, hashes), is) in before.iter().zip(&hashes).zip(&after) {
            for field in ["uuid", "name", "original_service_password", "disk_size_gib"] {
                ensure!(is[field] == was[field], "{field}: {was} {is}");
            }
            let now = inside(is, &format!("test ! -e late && {HASHES}"))?;
            ensure!(now == *hashes, "{}: {hashes} {now}", was["name"]);
        }
        Ok(())
    })?;
    for one in &before {
        api.delete(uuid(one))?.expect(204)?;
    }
    eventually("nothing is claimed", DEADLINE, || {
        let nodes = server.cli(&["node", "list"])?;
        let mut lines = nodes.lines().filter(|line| line.contains('/'));
        Ok(lines.all(|line| line.contains(" 0/")).then_some(()))
    })?;
    server.finish()
}

/// All instances once they run, in the order of creation.
fn all_run(api: &Api) -> Result<Vec<Value>> {
    eventually("all run", DEADLINE, || {
        let list = api.list()?;
        let stuck = list.iter().find(|one| text(&one["state"]) == "error");
        ensure!(stuck.is_none(), "{stuck:?}");
        Ok((running(&list) == list.len()).then_some(list))
    })
}

fn running(list: &[Value]) -> usize {
    let runs = |one: &&Value| one["state"] == "running";
    list.iter().filter(runs).count()
}
