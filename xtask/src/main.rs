//! `cargo xtask`: the tasks of this workspace.
//!
//! - [`workspace`]: the checkout that a task works on.
//! - [`build`], [`test`], [`schemas`], [`tidy`]: tasks that this program does itself.
//! - [`program`]: tasks with a program of their own, in `up/`, `conformance/` and `bench/`.

mod build;
mod process;
mod program;
mod schemas;
mod test;
mod tidy;
mod workspace;

use anyhow::Result;
use clap::Parser;
use program::Program;
use std::ffi::OsString;
use std::process::Command;
use workspace::Workspace;

const PROGRAMS: &str = "`up`, `images`, `conformance` and `bench` have options of their own, such as \
                        `cargo xtask up --help`.";

/// The tasks of this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", after_help = PROGRAMS)]
enum Task {
    /// Start Wharf with a first instance, from nothing; Ctrl-C ends it.
    Up(Arguments),
    /// Build the server in release, with its plugins.
    Build,
    /// Build everything and run every test, or the tests whose names contain FILTER.
    Test {
        /// Part of a test's name.
        filter: Option<String>,
        /// Make and test the images of all flavors; without it, only those that are quick to make.
        #[arg(long)]
        all_flavors: bool,
    },
    /// Check a service against every rule of the interface; without a URL, Wharf on the simulated
    /// engine.
    Conformance(Arguments),
    /// Measure Wharf beside baselines and other engines.
    Bench(Arguments),
    /// Make the images of the standard flavors.
    Images(Arguments),
    /// Generate schemas/generated from schemas/openapi.yaml.
    Schemas {
        /// Change nothing; fail if the generated files are out of date.
        #[arg(long)]
        check: bool,
    },
    /// Check file lengths and words.
    Tidy,
    /// Do everything that the continuous integration does.
    Ci,
}

/// Arguments for another program.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
struct Arguments {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTION"
    )]
    arguments: Vec<OsString>,
}

fn main() -> Result<()> {
    let task = Task::parse();
    let workspace = Workspace::find()?;
    match task {
        Task::Up(Arguments { arguments }) => program::start(&workspace, Program::Up, &arguments),
        Task::Build => build::wharf(&workspace),
        Task::Test {
            filter,
            all_flavors,
        } => test::run(&workspace, filter.as_deref(), all_flavors),
        Task::Conformance(Arguments { arguments }) => {
            program::start(&workspace, Program::Conformance, &arguments)
        }
        Task::Bench(Arguments { arguments }) => {
            program::start(&workspace, Program::Bench, &arguments)
        }
        Task::Images(Arguments { arguments }) => {
            program::start(&workspace, Program::Images, &arguments)
        }
        Task::Schemas { check } => schemas::run(workspace.root(), check),
        Task::Tidy => tidy::run(workspace.root()),
        Task::Ci => process::run(
            Command::new("bash")
                .current_dir(workspace.root())
                .arg(".ci/run"),
        ),
    }
}
