//! Terminals of real instances.

use crate::context::EngineContext;
use crate::lab::{Lab, user, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::time::Instant;
use wharf_tests::{Api, Terminal, until};

pub fn of_a_container(context: &EngineContext) -> Result<()> {
    let (server, api) = context.served("")?;
    let begin = Instant::now();
    let created = api.small_container()?;
    let uuid = uuid(&created);
    let running = api.wait_for(uuid, "running")?;
    let mut terminal = Terminal::open(&api, uuid, "")?;
    terminal.wait_for_from(0, "$ ")?;
    println!("container: prompt {:?} after the create", begin.elapsed());
    drop(terminal);
    exercise(&api, &running, "container")?;
    ends_with_the_instance(&api, uuid)?;
    refuses_a_changed_host_key(&api, uuid)?;
    refuses_a_changed_password(&api, uuid)?;
    context.remove(&api, &running)?;
    server.finish()
}

/// Opens a terminal, resizes it, attaches to it again, and ends it.
pub fn exercise(api: &Api, instance: &Value, kind: &str) -> Result<()> {
    let uuid = uuid(instance);
    // Wharf waits 20 s for a login, which an emulated processor of a busy machine may not finish.
    let mut terminal = until("a prompt", || {
        let mut terminal = Terminal::open(api, uuid, "?cols=100&rows=30")?;
        Ok(terminal.wait_for_from(0, "$ ").is_ok().then_some(terminal))
    })?;
    println!(
        "{kind}: prompt {:?} after the upgrade",
        terminal.upgraded.elapsed()
    );
    terminal.run("echo $((6*7))", "42\r\n")?;
    terminal.run("stty size", "30 100\r\n")?;
    for cols in 50..72 {
        terminal.resize(cols, 19)?;
        terminal.run("stty size", &format!("19 {cols}\r\n"))?;
    }
    terminal.run(
        "echo $TERM/$(id -un)/$LANG",
        "xterm-256color/user/C.UTF-8\r\n",
    )?;
    terminal.run("printf 'gr\\303\\274\\303\\237e\\n'", "grüße\r\n")?;
    let session = format!("?session={}&cols=90&rows=20", terminal.session);
    let before = terminal.output.len();
    drop(terminal);
    let mut terminal = Terminal::open(api, uuid, &session)?;
    ensure!(
        terminal.replayed >= u64::try_from(before)?,
        "{}",
        terminal.replayed
    );
    terminal.wait_for_from(0, "42\r\n")?;
    terminal.run("stty size", "20 90\r\n")?;
    terminal.send(b"exit 7\r")?;
    let end = terminal.end()?;
    ensure!(end == (json!({ "exit": 7 }), Some(1000)), "{end:?}");
    Ok(())
}

fn ends_with_the_instance(api: &Api, uuid: &str) -> Result<()> {
    let mut terminal = Terminal::open(api, uuid, "")?;
    terminal.wait_for_from(0, "$ ")?;
    api.act(uuid, "stop")?.expect(200)?;
    let (last, code) = terminal.end()?;
    ensure!(code == Some(4001), "{last} {code:?}");
    api.act(uuid, "restart")?.expect(200)?;
    let running = api.wait_for(uuid, "running")?;
    user(&running).wait_for_login(&running)
}

/// A host key that changes while the instance runs is refused. A restart notes it, with an event.
fn refuses_a_changed_host_key(api: &Api, uuid: &str) -> Result<()> {
    let mut terminal = Terminal::open(api, uuid, "")?;
    terminal.wait_for_from(0, "$ ")?;
    let key = "/etc/ssh/ssh_host_ed25519_key";
    terminal.run(
        &format!(
            "sudo rm {key} {key}.pub && sudo ssh-keygen -q -t ed25519 -N '' -f {key} && \
             sudo kill -HUP $(cat /run/sshd.pid) && echo chan''ged"
        ),
        "changed\r\n",
    )?;
    let shown = || {
        let path = format!("/api/instance/{uuid}/host-key/");
        api.get(&path)?.expect(200)
    };
    let before = shown()?;
    until("the new key is refused", || {
        let mut terminal = Terminal::open(api, uuid, "")?;
        // The server may still have the old key. A terminal that was refused takes no input.
        let _ = terminal.send(b"exit\r");
        let (last, code) = terminal.end()?;
        let error = last["error"].as_str().unwrap_or_default();
        Ok((error.contains("another SSH host key") && code == Some(1011)).then_some(()))
    })?;
    ensure!(shown()? == before);
    api.act(uuid, "stop")?.expect(200)?;
    api.act(uuid, "restart")?.expect(200)?;
    api.wait_for(uuid, "running")?;
    until("the new key is noted", || {
        Ok((shown()? != before).then_some(()))
    })?;
    let events = api.get("/api/event/")?.expect(200)?;
    let is_change = |event: &Value| event["type"] == "host-key-changed";
    let changes = events
        .as_array()
        .map(|events| events.iter().filter(|e| is_change(e)));
    ensure!(changes.map(Iterator::count) == Some(1), "{events}");
    Terminal::open(api, uuid, "")?.wait_for_from(0, "$ ")?;
    Ok(())
}

fn refuses_a_changed_password(api: &Api, uuid: &str) -> Result<()> {
    let mut terminal = Terminal::open(api, uuid, "")?;
    terminal.wait_for_from(0, "$ ")?;
    terminal.run(
        "echo user:another-one | sudo chpasswd && echo chan''ged",
        "changed\r\n",
    )?;
    // The terminal that is open stays, and a new one is refused.
    let (last, code) = Terminal::open(api, uuid, "")?.end()?;
    let error = last["error"].as_str().unwrap_or_default();
    ensure!(
        error.contains("original password") && code == Some(1011),
        "{last}"
    );
    terminal.run("echo $((6*7))", "42\r\n")?;
    Ok(())
}
