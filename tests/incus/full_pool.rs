//! A member whose pool is full.

use super::context::IncusContext;
use crate::lab::{Lab as _, after_observations, inside, running, user, uuid};
use crate::snapshots::{begun, cloned, one, restoring, taken};
use crate::{volumes, without_room};
use anyhow::{Result, ensure};
use serde_json::Value;
use wharf_tests::{Server, until};

/// The member, which has no instances of other tests.
const LAST: usize = 2;
/// Leaves no block of the pool. The blocks are reserved, and none of them is written.
const FILL: &str = "mkdir $1/filler; cd $1/filler; for m in 8192 1024 128 16 1; do \
    while fallocate -l ${m}M f$((n = n + 1)) 2>/dev/null; do :; done; done; \
    dd if=/dev/zero of=rest bs=4096 2>/dev/null || true; sync -f .";
const FREE: &str = "rm -rf $1/filler; btrfs filesystem sync $1";
/// Prints the MiB that are free.
const ROOM: &str = "df -m --output=avail $1 | tail -n 1";

/// A snapshot, a volume, a clone and a restore without room have an end, and all of them work again with it.
pub fn of_a_member(context: &IncusContext) -> Result<()> {
    let server = Server::start(&context.settings_of(&[LAST], without_room::SETTINGS))?;
    let api = server.user("ann@example.com")?;
    let source = running(&api)?;
    user(&source).wait_for_login(&source)?;
    inside(&source, "head -c 5000000 /dev/urandom > data; sync")?;
    let sum = inside(&source, "sha256sum data")?;
    let before = taken(&api, &source, "before")?;
    inside(&source, "echo later > later; sync")?;
    api.act(uuid(&source), "stop")?.expect(200)?;
    api.wait_for(uuid(&source), "exited")?;
    let tried = || -> Result<[Value; 2]> {
        context.on_pool(LAST, FILL)?;
        let full = begun(&api, &source, "without-room")?;
        without_room::volume(&api)?;
        let clone = without_room::clone(&api, &before)?;
        let full = until("the snapshot has an end", || {
            let now = one(&api, &full)?;
            Ok((now["state"] != "creating").then_some(now))
        })?;
        println!("a snapshot without room: {full}");
        restoring(&api, &before)?;
        // The engine may refuse it again and again.
        after_observations(&server, 1)?;
        Ok([clone, full])
    };
    let tried = tried();
    context.on_pool(LAST, FREE)?;
    until("the pool has its room again", || {
        let free: u64 = context.on_pool(LAST, ROOM)?.trim().parse()?;
        Ok((free > 20 << 10).then_some(()))
    })?;
    let [clone, full] = tried?;
    let source = without_room::restored(&api, &source, &before, &sum)?;
    without_room::removed(context, &api, &clone, &sum)?;
    let mut complete = vec![taken(&api, &source, "with-room")?];
    complete.extend(Some(full).filter(|full| full["state"] == "ready"));
    for snapshot in &complete {
        let clone = cloned(&api, snapshot)?;
        ensure!(inside(&clone, "sha256sum data")? == sum, "{snapshot}");
        context.remove(&api, &clone)?;
    }
    volumes::made(&api, "with-room")?;
    volumes::removed(&api, "with-room")?;
    context.remove(&api, &source)?;
    server.finish()
}
