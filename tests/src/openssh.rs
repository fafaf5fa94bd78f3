//! OpenSSH with the entry of `wharf config-ssh`, as a user or an editor runs it.

use crate::{Ended, Shell, end};
use anyhow::{Result, ensure};
use std::fs;
use std::process::Command;

/// A user whose running instances OpenSSH knows as `NAME.wharf`.
pub struct OpenSsh {
    pub shell: Shell,
    entries: String,
}

impl OpenSsh {
    /// Adds the entry and the key; all running instances take the key.
    pub fn of(shell: Shell) -> Result<Self> {
        let added = shell.run(&["config-ssh"])?.succeeded()?;
        ensure!(!added.stderr.contains("did not get the key"), "{added:?}");
        let entries = shell.home().join(".ssh/wharf_config");
        let entries = entries.to_string_lossy().into_owned();
        Ok(Self { shell, entries })
    }

    /// OpenSSH, as an editor starts it: without the path of a shell, and without a terminal.
    pub fn ssh(&self, arguments: &[&str]) -> Command {
        let options = ["-F", &self.entries, "-o", "BatchMode=yes"];
        let arguments = [&options[..], arguments].concat();
        let mut ssh = self.shell.own("ssh".as_ref(), &arguments);
        ssh.env("PATH", "/usr/bin:/bin");
        ssh
    }

    /// Runs a command in an instance.
    pub fn run(&self, name: &str, command: &str) -> Result<Ended> {
        end(&mut self.ssh(&[&format!("{name}.wharf"), command]), "")
    }

    /// Checks that `scp` and `rsync` bring a file of this size to an instance and back.
    pub fn copies_files(&self, name: &str, bytes: u32) -> Result<()> {
        let home = self.shell.home();
        let sent: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8).collect();
        fs::create_dir_all(home.join("sent"))?;
        fs::write(home.join("sent/file"), &sent)?;
        let remote = format!("ssh -F {} -o BatchMode=yes", self.entries);
        let scp = ["-q", "-F", &self.entries, "-o", "BatchMode=yes"];
        let rsync = ["-a", "-e", &remote];
        for (program, options, to, at) in [
            ("scp", &scp[..], "copied", "sent/file"),
            ("rsync", &rsync, "synced/", "sent/"),
        ] {
            let back = format!("back-{program}");
            let there = format!("{name}.wharf:{to}");
            for (from, to) in [(at, there.as_str()), (&there, &back)] {
                let arguments = [options, &[from, to]].concat();
                end(&mut self.shell.own(program.as_ref(), &arguments), "")?.succeeded()?;
            }
            let mut back = home.join(back);
            if back.is_dir() {
                back.push("file");
            }
            ensure!(fs::read(back)? == sent, "{program} changed the bytes");
        }
        Ok(())
    }
}
