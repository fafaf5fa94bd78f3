//! A port of the node that another program has.

use crate::context::EngineContext;
use anyhow::{Result, ensure};
use std::net::TcpListener;
use std::time::{Duration, Instant};
use wharf_tests::{Ports, Server};

/// Checks that a new instance gets another port, and that a start tells which port is taken.
pub fn port(context: &EngineContext) -> Result<()> {
    let ports = Ports::take();
    let [first, second] = [ports.from, ports.from + 1];
    let held = TcpListener::bind(("127.0.0.1", first))?;
    let server = Server::start(&context.settings_with(ports, "")?)?;
    let api = server.user("ann@example.com")?;
    let begin = Instant::now();
    let created = api.small_container()?;
    ensure!(created["wan_ssh_port"] == first, "{created}");
    let id = created["uuid"].as_str().unwrap_or_default();
    let ready = api.wait_for(id, "running")?;
    ensure!(ready["wan_ssh_port"] == second, "{ready}");
    println!("running on another port after {:.1?}", begin.elapsed());
    let events = api
        .get(&format!("/api/event/?instance={id}"))?
        .expect(200)?;
    let told = format!("something outside Wharf holds SSH port {first}");
    ensure!(events.to_string().contains(&told), "{events}");
    let nodes = server.cli(&["node", "list"])?;
    ensure!(
        nodes.contains(&format!("SSH port {first} until")),
        "{nodes}"
    );
    drop(held);

    api.act(id, "stop")?.expect(200)?;
    let held = TcpListener::bind(("127.0.0.1", second))?;
    let begin = Instant::now();
    let refused = api.act(id, "restart")?.expect(422)?;
    let fields = &refused["detail"]["bottleneck"];
    ensure!(*fields == serde_json::json!(["wan_ssh_port"]), "{refused}");
    ensure!(
        begin.elapsed() < Duration::from_secs(45),
        "{:?}",
        begin.elapsed()
    );
    drop(held);
    api.act(id, "restart")?.expect(200)?;
    api.wait_for(id, "running")?;
    api.delete(id)?.expect(204)?;
    server.finish()
}
