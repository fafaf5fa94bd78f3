//! An engine that ceases to hold the sizes of disks, and users who escape them.

use crate::context::EngineContext;
use crate::lab::{Lab, inside, running, state, uuid};
use anyhow::{Result, ensure};
use std::process::Command;
use wharf_tests::{Server, small, until};

/// Makes a subvolume of btrfs in the working directory, and copies a file.
const SUBVOLUME: &str = "cd ~ && perl -e 'open(D, q(<), q(.)); $name = pack(q(q a4088), 0, q(inner)); \
    $made = ioctl(D, 0x5000940e, $name); print $made ? qq(made) : qq(refused)' && cp /etc/passwd copy && \
    cmp /etc/passwd copy";

/// The limits of the node break, and are mended. The server has these settings.
pub fn found_and_mended(
    lab: &impl Lab,
    settings: &str,
    refuses_subvolumes: bool,
    breach: impl FnOnce() -> Result<()>,
    mend: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let mut server = Server::start(settings)?;
    let api = server.user("ann@example.com")?;
    let kept = running(&api)?;
    let subvolume = inside(&kept, SUBVOLUME)?;
    ensure!(
        subvolume == "refused" || !refuses_subvolumes,
        "a subvolume in an instance: {subvolume}"
    );

    breach()?;
    server.terminate()?;
    server.run()?;
    let api = server.again(&api);
    until("the breach is found", || {
        let list = server.cli(&["node", "list"])?;
        Ok(list.contains("limits broken").then(|| println!("{list}")))
    })?;
    let refused = api.create(&small("container"))?;
    let why = refused.body["detail"]["message"].to_string();
    ensure!(
        refused.status == 422 && why.contains("does not hold the sizes"),
        "{why}"
    );
    ensure!(state(&api, &kept)? == "running");

    mend()?;
    until("a proof succeeds", || {
        Ok((!server.cli(&["node", "list"])?.contains("broken")).then_some(()))
    })?;
    let young = running(&api)?;
    for instance in [&kept, &young] {
        api.delete(uuid(instance))?.expect(204)?;
        lab.gone(instance)?;
    }
    server.finish()
}

/// The quotas of dockerd's storage are switched off and on.
pub fn of_dockerd(engine: &mut EngineContext) -> Result<()> {
    let store = engine.store();
    let disable = || {
        let mut btrfs = Command::new("btrfs");
        let status = btrfs.args(["quota", "disable"]).arg(&store).status()?;
        ensure!(status.success(), "btrfs quota disable: {status}");
        Ok(())
    };
    let refuses = engine.refuses_subvolumes();
    found_and_mended(engine, &engine.settings("")?, refuses, disable, || {
        engine.enable_quotas()
    })
}
