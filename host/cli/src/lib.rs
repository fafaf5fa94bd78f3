//! The command line of Wharf's users. Its commands reach a server over the REST interface, by
//! [`wharf_client`] alone.

mod account;
mod api;
mod ask_password;
mod bucket;
mod carry;
mod completions;
mod config_ssh;
mod connection;
mod console;
mod cost;
mod create;
mod device;
mod editor_key;
mod events;
mod failure;
mod forward;
mod keys;
mod known_hosts;
mod lifecycle;
mod login;
mod names;
mod open;
pub mod output;
mod profiles;
mod recreate;
mod remove;
mod resize;
mod share;
mod shortage;
mod show;
mod snapshot;
mod ssh;
mod ssh_keys;
mod stats;
mod tunnel;
mod volume;
mod wait;

pub use ask_password::answer_if_asked;
pub use completions::COMPLETE_VARIABLE;
pub use events::UserEvents;
pub use failure::{failure_exit_code, failure_message};

use anyhow::{Context, Result};
use clap::Subcommand;
use connection::{Connection, InstanceArgs};
use std::future::Future;

/// A command for users.
#[derive(Subcommand)]
pub enum UserCommand {
    Login(login::Login),
    Logout(login::Logout),
    /// Show the server, and the user or the key that you are signed in with
    Whoami(Connection),
    /// List your instances
    Ls(Connection),
    Create(create::Create),
    /// Show an instance with its cost, and the fingerprints of its SSH host keys
    Show(InstanceArgs),
    Ssh(ssh::Ssh),
    Forward(forward::Forward),
    Open(open::Open),
    /// Show the page or ports of an instance to others
    #[command(subcommand)]
    Share(share::ShareCommand),
    Tunnel(tunnel::TunnelCommand),
    /// Open a terminal of a running instance through the server; Ctrl-] ends it
    Console(InstanceArgs),
    Wait(wait::Wait),
    /// Stop a running instance; its disk stays
    Stop(InstanceArgs),
    /// Start a stopped instance again
    Restart(InstanceArgs),
    Recreate(recreate::Recreate),
    Resize(resize::Resize),
    Rename(resize::Rename),
    Rm(remove::Remove),
    /// Create, share and delete volumes, disks that outlive their instances
    #[command(subcommand)]
    Volume(volume::VolumeCommand),
    /// Take snapshots of instances, restore and clone from them
    #[command(subcommand)]
    Snapshot(snapshot::SnapshotCommand),
    /// Back up instances to buckets of yours, and recover them anywhere
    #[command(subcommand)]
    Bucket(bucket::BucketCommand),
    Attach(volume::Attach),
    Detach(volume::Detach),
    /// Open and close ports of a virtual machine
    #[command(subcommand)]
    Port(lifecycle::Port),
    Stats(stats::Stats),
    Cost(cost::Cost),
    /// List the flavors, the software that instances can have
    Flavors(Connection),
    /// Show your quota and its use
    Quota(Connection),
    Preferences(account::Preferences),
    /// List, create and revoke your API keys
    #[command(subcommand)]
    Keys(keys::Keys),
    /// List, add and remove the SSH public keys that are saved on the server
    #[command(subcommand)]
    SshKeys(ssh_keys::SshKeys),
    Api(api::Api),
    ConfigSsh(config_ssh::ConfigSsh),
    Completions(completions::Completions),
}

impl UserCommand {
    /// Runs the command.
    pub fn run(self) -> Result<()> {
        block_on(async {
            match self {
                Self::Login(login) => login.run().await,
                Self::Logout(logout) => logout.run().await,
                Self::Whoami(connection) => account::whoami(&connection).await,
                Self::Ls(connection) => show::list(&connection).await,
                Self::Create(create) => create.run().await,
                Self::Show(named) => show::show(&named).await,
                Self::Ssh(ssh) => ssh.run().await,
                Self::Forward(forward) => forward.run().await,
                Self::Open(open) => open.run().await,
                Self::Share(share) => share.run().await,
                Self::Tunnel(tunnel) => tunnel.run().await,
                Self::Console(named) => console::open(&named).await,
                Self::Wait(wait) => wait.run().await,
                Self::Stop(named) => lifecycle::stop(&named).await,
                Self::Restart(named) => lifecycle::restart(&named).await,
                Self::Recreate(recreate) => recreate.run().await,
                Self::Resize(resize) => resize.run().await,
                Self::Rename(rename) => rename.run().await,
                Self::Rm(remove) => remove.run().await,
                Self::Volume(volume) => volume.run().await,
                Self::Snapshot(snapshot) => snapshot.run().await,
                Self::Bucket(bucket) => bucket.run().await,
                Self::Attach(attach) => attach.run().await,
                Self::Detach(detach) => detach.run().await,
                Self::Port(port) => port.run().await,
                Self::Stats(stats) => stats.run().await,
                Self::Cost(cost) => cost.run().await,
                Self::Flavors(connection) => account::flavors(&connection).await,
                Self::Quota(connection) => account::quota(&connection).await,
                Self::Preferences(preferences) => preferences.run().await,
                Self::Keys(keys) => keys.run().await,
                Self::SshKeys(keys) => keys.run().await,
                Self::Api(api) => api.run().await,
                Self::ConfigSsh(config) => config.run().await,
                Self::Completions(completions) => completions.run(),
            }
        })
    }
}

/// Runs one command to its end.
fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(work)
}
