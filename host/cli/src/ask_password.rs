//! Passwords for OpenSSH. It starts this program to ask, so that the password of an instance goes
//! through a pipe only, never into arguments or variables.

use crate::block_on;
use crate::connection::Connection;
use anyhow::{Context, Result};
use console::Term;
use std::env;
use std::fs::File;
use std::process::{Command, ExitCode};

/// The instance whose password is asked for.
const INSTANCE: &str = "WHARF_ASK_PASSWORD_OF";
/// The profile in use, if an option named it.
const PROFILE: &str = "WHARF_ASK_PASSWORD_PROFILE";

/// Makes OpenSSH ask this program.
pub fn prepare(ssh: &mut Command, connection: &Connection, uuid: &str) -> Result<()> {
    let own = env::current_exe().context("the path of this program")?;
    ssh.env("SSH_ASKPASS", own)
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env(INSTANCE, uuid)
        .env_remove(PROFILE)
        .args(["-o", "NumberOfPasswordPrompts=1"]);
    if let Some(profile) = &connection.profile {
        ssh.env(PROFILE, profile);
    }
    Ok(())
}

/// Answers OpenSSH, if it is the caller.
pub fn answer_if_asked() -> Option<ExitCode> {
    let instance = env::var(INSTANCE).ok()?;
    let mut arguments = env::args().skip(1);
    let prompt = arguments.next().filter(|_| arguments.next().is_none())?;
    // OpenSSH's prompts contain spaces; a command of this program does not.
    if !prompt.contains(' ') {
        return None;
    }
    let answer = if prompt.trim_end().ends_with("'s password:") {
        password(&instance)
    } else {
        // The passphrase of a key, for example.
        of_terminal(&prompt)
    };
    Some(match answer {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("wharf: {error:#}");
            ExitCode::FAILURE
        }
    })
}

fn password(instance: &str) -> Result<String> {
    let connection = Connection {
        profile: env::var(PROFILE).ok(),
        ..Connection::default()
    };
    block_on(async {
        let instance = connection.client()?.get_instance(instance).fetch().await?;
        Ok(instance.original_service_password.expose().to_owned())
    })
}

/// Asks on the terminal, without showing the answer.
pub fn of_terminal(prompt: &str) -> Result<String> {
    let terminal = File::options().read(true).write(true).open("/dev/tty");
    let terminal = terminal.with_context(|| format!("no terminal to ask on: {prompt}"))?;
    let terminal = Term::read_write_pair(terminal.try_clone()?, terminal);
    terminal.write_str(prompt)?;
    Ok(terminal.read_secure_line()?)
}
