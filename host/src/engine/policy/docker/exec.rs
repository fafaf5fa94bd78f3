//! Programs in the call's own container: only the one that sets a virtual machine's ports to those of
//! the call.

use super::{refuse, subject, unlisted};
use crate::engine::policy::json::{Node, required};
use crate::engine::policy::path::Target;
use crate::engine::policy::{Refusal, Sent};
use crate::engine::scope::CallScope;
use http::Method;
use serde_json::Value;

/// The permitted program.
const COMMAND: [&str; 2] = ["/usr/local/sbin/wharf-vm", "set-ports"];

/// `POST /containers/NAME/exec`.
pub fn create(body: &Value, scope: &CallScope) -> Result<(), Refusal> {
    let ports = subject(scope)?.vm_ports.as_ref();
    let ports = ports.ok_or_else(|| refuse("a program in a container that is no VM"))?;
    for (key, member) in Node::root(body).members()? {
        match key {
            "Cmd" => command(&member, ports)?,
            "AttachStdout" | "AttachStderr" => member.bool()?,
            "AttachStdin" | "Tty" | "Privileged" => member.is_bool(false)?,
            _ => return member.unlisted(),
        }
    }
    required(body, "/Cmd")
}

fn command(cmd: &Node<'_>, ports: &[u16]) -> Result<(), Refusal> {
    let ports = ports.iter().map(ToString::to_string);
    let wanted: Vec<_> = COMMAND
        .map(str::to_owned)
        .into_iter()
        .chain(ports)
        .collect();
    let given: Vec<_> = cmd
        .items()?
        .map(|item| item.text().map(str::to_owned))
        .collect::<Result<_, _>>()?;
    if given == wanted {
        return Ok(());
    }
    Err(cmd.refuse(format!("only {wanted:?}")))
}

/// `/exec/ID/start` and `/exec/ID/json`.
pub fn run(
    scope: &CallScope,
    method: &Method,
    rest: &[&str],
    target: &Target<'_>,
    body: &Sent,
) -> Result<(), Refusal> {
    target.only(&[])?;
    match (method.as_str(), rest) {
        ("POST", [id, "start"]) => {
            own(scope, id)?;
            for (key, member) in Node::root(body.json()?).members()? {
                match key {
                    "Detach" | "Tty" => member.is_bool(false)?,
                    _ => return member.unlisted(),
                }
            }
            Ok(())
        }
        ("GET", [id, "json"]) => {
            own(scope, id)?;
            body.nothing()
        }
        _ => Err(unlisted(method)),
    }
}

/// Checks that the engine has given the id in this call.
fn own(scope: &CallScope, id: &str) -> Result<(), Refusal> {
    if subject(scope)?.programs.iter().any(|known| known == id) {
        return Ok(());
    }
    Err(refuse("a program that this call did not make"))
}
