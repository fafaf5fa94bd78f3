//! `cargo xtask up` and `cargo xtask images`: a running Wharf, and the images of its instances.
//!
//! - [`up`]: the whole of `up`, in its order. [`images`]: the command `images`.
//! - [`engines`], [`sockets`], [`existing`], [`incus`]: the engines to run instances on.
//! - [`nodes`], [`machine`], [`config`]: the nodes that Wharf gets, and its configuration.
//! - [`account`], [`admin`], [`instance`], [`smoke_test`]: a user, the first instance and its login.
//! - [`footprint`], [`warnings`], [`instructions`]: what remains in engines, and what is printed.

mod account;
mod admin;
mod config;
mod engines;
mod existing;
mod footprint;
mod images;
mod incus;
mod instance;
mod instructions;
mod machine;
mod nodes;
mod smoke_test;
mod sockets;
mod up;
mod warnings;

use anyhow::Result;
use clap::Parser;
use wharf_testkit::engine::end_abandoned;

/// A running Wharf, and the images of its instances.
#[derive(Parser)]
#[command(name = "wharf-up", bin_name = "cargo xtask")]
enum Command {
    /// Start Wharf with a first instance, from nothing; Ctrl-C ends it.
    Up(up::Options),
    /// Stop what a killed `up` left behind: its engine, instances, bridges and rules. Disks stay.
    Down,
    /// Make the images of the standard flavors: all, or those named.
    Images {
        /// Directories below plugins/flavors-standard/images.
        names: Vec<String>,
        /// The engine that gets the images, unix:///path; without it, the engine of `cargo xtask up`.
        #[arg(long)]
        engine: Option<String>,
        /// The socket of an Incus that gets them, unix:///var/lib/incus/unix.socket. Images that are
        /// built on others are built in the engine of `cargo xtask up`.
        #[arg(long, value_name = "ENDPOINT", conflicts_with = "engine")]
        incus: Option<String>,
        /// The project of that Incus.
        #[arg(long, default_value = "wharf", requires = "incus")]
        project: String,
    },
}

fn main() -> Result<()> {
    match Command::parse() {
        Command::Up(options) => up::run(&options),
        Command::Down => {
            end_abandoned(None);
            Ok(())
        }
        Command::Images {
            names,
            incus: Some(endpoint),
            project,
            ..
        } => images::run_incus(names, &endpoint, &project),
        Command::Images { names, engine, .. } => images::run(names, engine.as_deref()),
    }
}
