//! Wharf killed with SIGKILL during its work, and restarted.

use crate::context::{Context, inside, uuid};
use anyhow::{Result, ensure};
use std::time::Duration;

/// From a request to the kill. Among them: the network, the instance, its files, its forward and its start.
const AFTER_MS: [u64; 4] = [100, 400, 900, 1_500];

pub fn at_several_points(context: &Context) -> Result<()> {
    let mut server = context.server(&[1])?;
    let mut api = server.user("ann@example.com")?;
    for after in AFTER_MS.map(Duration::from_millis) {
        let created = api.small_container()?;
        std::thread::sleep(after);
        server.kill()?;
        server.run()?;
        api = server.again(&api);
        let running = api.wait_for(uuid(&created), "running")?;
        ensure!(inside(&running, "id -un")? == "user");
        let network = context.network(&running)?;
        ensure!(context.forwards(&network)?.len() == 1);

        api.delete(uuid(&running))?.expect(204)?;
        std::thread::sleep(after / 4);
        server.kill()?;
        server.run()?;
        api = server.again(&api);
        ensure!(api.instance(uuid(&running))?.status == 404);
        context.nothing_left(&network)?;
    }
    server.finish()
}
