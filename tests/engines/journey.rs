//! The commands for users on a real instance.

use crate::context::EngineContext;
use anyhow::{Result, ensure};
use std::fs;
use wharf_tests::{KeyPair, Shell, end};

/// Creates instances and logs in: by the password of the instance, by a key, and by the console.
pub fn create_and_log_in(context: &EngineContext) -> Result<()> {
    let server = context.server()?;
    let shell = Shell::signed_in(&server, "ann@example.com")?;
    shell.ok(&["create", "--wait", "journey"])?;
    let first = shell.run(&["ssh", "journey", "--", "uname", "-a"])?;
    let first = first.succeeded()?;
    ensure!(first.stdout.starts_with("Linux journey "), "{first:?}");
    // Wharf knows the host key, so OpenSSH accepts no key by itself.
    ensure!(!first.stderr.contains("added"), "{first:?}");
    let failed = shell.run(&["ssh", "journey", "--", "exit", "17"])?;
    ensure!(failed.code == Some(17), "{failed:?}");

    let mut console = shell.on_terminal("wharf console journey; echo ended with $?")?;
    console.wait_for("$ ")?;
    console.type_in("uname -n; exit 7\r")?;
    // A shell may begin its output with a return of the cursor alone.
    console.wait_for("journey\r\n")?;
    console.wait_for("ended with 7")?;
    console.end()?;

    let pair = KeyPair::new()?;
    fs::write(shell.home().join("id.pub"), &pair.public)?;
    shell.ok(&["ssh-keys", "add", "saved", "id.pub"])?;
    shell.ok(&["create", "by-key", "--ssh-key", "saved", "--wait"])?;
    let identity = pair.path();
    let identity = identity.to_string_lossy();
    let said = shell.ok(&["ssh", "by-key", "-i", &identity, "--", "hostname"])?;
    ensure!(said.trim() == "by-key", "{said}");
    by_openssh_alone(&shell, &identity)?;
    shell.ok(&["rm", "--yes", "journey", "by-key"])?;
    server.finish()
}

/// Logs in by the entry of `config-ssh`.
fn by_openssh_alone(shell: &Shell, identity: &str) -> Result<()> {
    shell.ok(&["config-ssh"])?;
    let entry = shell.home().join(".ssh/wharf_config");
    let entry = entry.to_string_lossy();
    let options = ["-F", &entry, "-i", identity, "-o", "BatchMode=yes"];
    let arguments = [&options[..], &["by-key.wharf", "hostname"]].concat();
    let login = end(&mut shell.own("ssh".as_ref(), &arguments), "")?;
    ensure!(login.succeeded()?.stdout.trim() == "by-key");
    Ok(())
}
