//! `cargo xtask`: the tasks of this workspace.
//!
//! - [`workspace`]: the checkout that a task works on.
//! - [`build`], [`test`], [`tidy`]: tasks that this program does itself.
//! - [`program`]: tasks with a program of their own, in `up/`, `conformance/`, `simulate/`, `bench/`, `gpu-proof/` and `dist/`.

mod build;
mod process;
mod program;
mod test;
mod tidy;
mod workspace;

use anyhow::{Result, bail};
use lexopt::{Arg, Parser, ValueExt};
use program::Program;
use std::process::Command;
use workspace::Workspace;

const HELP: &str = "\
The tasks of this workspace

Usage: cargo xtask <TASK>

Tasks:
  up                      Start Wharf with a first instance, from nothing; Ctrl-C ends it
  down                    Stop what a killed `up` left behind; disks stay
  build                   Build the server in release, with its plugins
  test [FILTER]           Build everything and run every test, or the tests whose names contain FILTER
    --all                 Include the tests that a plain run leaves out: all flavors, all engines, all kills
    --no-run              Build everything only
  conformance             Check Wharf, or a service at a URL, against every rule of the interface
  simulate                Run seeds of the simulator: use cases, reconciler and database in virtual time, with faults
  bench                   Measure Wharf beside baselines and other engines
  images [NAME]...        Make the images of the standard flavors
  gpu-proof               Prove Wharf on this machine's GPU, or make a bundle that does so without a network
  dist                    Make an archive and a Debian package of the server in target/dist
  tidy                    Check file lengths and words
  ci                      Do everything that the continuous integration does

`up`, `conformance`, `simulate`, `bench`, `gpu-proof` and `images` have options of their own: `cargo xtask up --help`.
";

fn main() -> Result<()> {
    let mut arguments = Parser::from_env();
    let Some(Arg::Value(task)) = arguments.next()? else {
        print!("{HELP}");
        return Ok(());
    };
    let workspace = Workspace::find()?;
    let task = task.string()?;
    if let Some(program) = Program::of(&task) {
        let arguments: Vec<_> = arguments.raw_args()?.collect();
        return program::start(&workspace, &program, &arguments);
    }
    let (mut filter, mut flags) = (None, Vec::new());
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Value(value) if task == "test" && filter.is_none() => {
                filter = Some(value.string()?);
            }
            Arg::Long("all") if task == "test" => flags.push("all"),
            Arg::Long("no-run") if task == "test" => flags.push("no-run"),
            Arg::Long("help") | Arg::Short('h') => {
                print!("{HELP}");
                return Ok(());
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let has = |flag| flags.contains(&flag);
    match task.as_str() {
        "build" => build::wharf(&workspace),
        "test" if has("no-run") => test::build(&workspace).map(drop),
        "test" => {
            let all = has("all");
            test::run(&workspace, &test::Selection { filter, all })
        }
        "tidy" => tidy::run(workspace.root()),
        "ci" => process::run(
            Command::new("bash")
                .current_dir(workspace.root())
                .arg(".ci/run"),
        ),
        _ => bail!("no task {task:?}; `cargo xtask --help` lists the tasks"),
    }
}
