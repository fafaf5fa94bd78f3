//! Wharf killed with SIGKILL during its work, and restarted.

use crate::context::{Context, inside, user, uuid};
use anyhow::{Result, ensure};
use serde_json::Value;
use std::time::Duration;
use wharf_tests::{Api, Server, until};

/// From a request to the kill.
const AFTER_MS: [u64; 3] = [30, 300, 1200];

/// A server that is killed repeatedly, and its user.
struct Victim<'a> {
    context: &'a Context,
    server: Server,
    api: Api,
}

pub fn at_several_points(context: &Context) -> Result<()> {
    let server = context.server(&[1])?;
    let api = server.user("ann@example.com")?;
    let mut victim = Victim {
        context,
        server,
        api,
    };
    for after in AFTER_MS.map(Duration::from_millis) {
        let created = victim.api.small_container()?;
        std::thread::sleep(after);
        victim.kill_and_start()?;
        let running = victim.api.wait_for(uuid(&created), "running")?;
        ensure!(inside(&running, "id -un")? == "user");
        victim.engine_has("Running", &running)?;
        victim.act(&running, "stop", "exited", after)?;
        victim.engine_has("Stopped", &running)?;
        victim.act(&running, "restart", "running", after)?;
        user(&running).wait_for_login(&running)?;
        victim.engine_has("Running", &running)?;
        victim.api.delete(uuid(&running))?.expect(204)?;
        std::thread::sleep(after);
        victim.kill_and_start()?;
        ensure!(victim.api.instance(uuid(&running))?.status == 404);
        context.gone(&running)?;
    }
    victim.server.finish()
}

impl Victim<'_> {
    fn kill_and_start(&mut self) -> Result<()> {
        self.server.kill()?;
        self.server.run()?;
        self.api = self.server.again(&self.api);
        Ok(())
    }

    /// Sends an action, kills the server, and sends the action again unless it was durable.
    fn act(&mut self, instance: &Value, action: &str, state: &str, after: Duration) -> Result<()> {
        let (api, id) = (self.api.clone(), uuid(instance).to_owned());
        let sent = action.to_owned();
        let request = std::thread::spawn(move || api.act(&id, &sent).is_ok());
        std::thread::sleep(after);
        self.kill_and_start()?;
        drop(request.join());
        let now = self.api.instance(uuid(instance))?.expect(200)?;
        if now["state"] != state {
            // It may complete meanwhile.
            let again = self.api.act(uuid(instance), action)?;
            ensure!([200, 400].contains(&again.status), "{again:?}");
        }
        self.api.wait_for(uuid(instance), state).map(drop)
    }

    fn engine_has(&self, status: &str, instance: &Value) -> Result<()> {
        until(
            &format!("the engine has one object that is {status}"),
            || {
                let object = self.context.object(instance)?;
                Ok((object["status"] == status).then_some(()))
            },
        )
    }
}
