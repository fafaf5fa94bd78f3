//! Commands for users, which reach a server over its REST interface.

mod api;
mod ask_password;
mod completions;
mod config_ssh;
mod connection;
mod console;
mod cost;
mod create;
mod device;
mod events;
mod failure;
mod flavors;
mod keys;
mod known_hosts;
mod lifecycle;
mod list;
mod login;
mod names;
pub(super) mod output;
mod port;
mod preferences;
mod profiles;
mod quota;
mod remove;
mod resize;
mod show;
mod ssh;
mod ssh_keys;
mod stats;
mod wait;
mod whoami;

pub use ask_password::answer_if_asked;
pub use completions::VARIABLE as COMPLETE_VARIABLE;
pub use connection::Connection;
pub use events::follow as events;
pub use failure::{describe, exit_code};
pub use names::instances;

use anyhow::{Context, Result};
use clap::Subcommand;
use std::future::Future;

/// A command for users.
#[derive(Subcommand)]
pub enum Remote {
    Login(login::Login),
    Logout(login::Logout),
    Whoami(whoami::Whoami),
    Ls(list::List),
    Create(create::Create),
    Show(show::Show),
    Ssh(ssh::Ssh),
    Console(console::Console),
    Wait(wait::Wait),
    Stop(lifecycle::Stop),
    Restart(lifecycle::Restart),
    Recreate(lifecycle::Recreate),
    Resize(resize::Resize),
    Rename(resize::Rename),
    Rm(remove::Remove),
    Port(port::Port),
    Stats(stats::Stats),
    Cost(cost::Cost),
    Flavors(flavors::Flavors),
    Quota(quota::Quota),
    Preferences(preferences::Preferences),
    Keys(keys::Keys),
    SshKeys(ssh_keys::SshKeys),
    Api(api::Api),
    ConfigSsh(config_ssh::ConfigSsh),
    Completions(completions::Completions),
}

impl Remote {
    /// Runs the command.
    pub fn run(self) -> Result<()> {
        match self {
            Self::Login(login) => block_on(login.run()),
            Self::Logout(logout) => block_on(logout.run()),
            Self::Whoami(whoami) => block_on(whoami.run()),
            Self::Ls(list) => block_on(list.run()),
            Self::Create(create) => block_on(create.run()),
            Self::Show(show) => block_on(show.run()),
            Self::Ssh(ssh) => ssh.run(),
            Self::Console(console) => block_on(console.run()),
            Self::Wait(wait) => block_on(wait.run()),
            Self::Stop(stop) => block_on(stop.run()),
            Self::Restart(restart) => block_on(restart.run()),
            Self::Recreate(recreate) => block_on(recreate.run()),
            Self::Resize(resize) => block_on(resize.run()),
            Self::Rename(rename) => block_on(rename.run()),
            Self::Rm(remove) => block_on(remove.run()),
            Self::Port(port) => block_on(port.run()),
            Self::Stats(stats) => block_on(stats.run()),
            Self::Cost(cost) => block_on(cost.run()),
            Self::Flavors(flavors) => block_on(flavors.run()),
            Self::Quota(quota) => block_on(quota.run()),
            Self::Preferences(preferences) => block_on(preferences.run()),
            Self::Keys(keys) => block_on(keys.run()),
            Self::SshKeys(keys) => block_on(keys.run()),
            Self::Api(api) => block_on(api.run()),
            Self::ConfigSsh(config) => block_on(config.run()),
            Self::Completions(completions) => completions.run(),
        }
    }
}

/// Runs one command to its end.
pub fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(work)
}
