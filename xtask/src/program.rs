//! Tasks with a program of their own: this one builds the program and becomes it.

use crate::build;
use crate::process::step;
use crate::workspace::{Workspace, without_package};
use anyhow::{Error, Result};
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The variable that tells a program which checkout it works on.
const ROOT: &str = "WHARF_WORKSPACE";
/// The variable that names a server to use instead of the one in this workspace.
const SERVER: &str = "WHARF_BIN";

/// A program of the workspace, or one command of it.
#[derive(Clone, Copy)]
pub enum Program {
    Up,
    Images,
    Conformance,
    Bench,
}

impl Program {
    /// The program of a task, if the task has one.
    pub fn of(task: &str) -> Option<Self> {
        match task {
            "up" => Some(Self::Up),
            "images" => Some(Self::Images),
            "conformance" => Some(Self::Conformance),
            "bench" => Some(Self::Bench),
            _ => None,
        }
    }

    /// The binary, and its leading arguments.
    fn command(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Up => ("wharf-up", &["up"]),
            Self::Images => ("wharf-up", &["images"]),
            Self::Conformance => ("wharf-conformance", &[]),
            Self::Bench => ("wharf-bench", &["run"]),
        }
    }

    /// Whether the program starts the server of this workspace.
    fn starts_server(self, arguments: &[OsString]) -> bool {
        let has = |option: &str| {
            let mut arguments = arguments.iter().map(|argument| argument.to_string_lossy());
            arguments.any(|argument| argument.split('=').next() == Some(option))
        };
        let is_needed = match self {
            Self::Up | Self::Bench => true,
            Self::Conformance => !has("--base-url"),
            Self::Images => false,
        };
        is_needed && !has("--help") && !has("-h") && env::var_os(SERVER).is_none()
    }
}

/// Builds the program, with the server where it needs that, and becomes it.
pub fn start(workspace: &Workspace, program: Program, arguments: &[OsString]) -> Result<()> {
    let (name, leading) = program.command();
    let mut names = vec![name];
    if program.starts_server(arguments) {
        names.push("wharf");
    }
    step(
        &format!("Building {} (release)", names.join(" and ")),
        || build::binaries(workspace, &names),
    )?;
    let binary = workspace.binary(name);
    let mut command = Command::new(&binary);
    command.args(leading).args(arguments);
    command.env(ROOT, workspace.root());
    let error = without_package(&mut command).exec();
    Err(Error::new(error).context(format!("cannot run {}", binary.display())))
}

#[cfg(test)]
mod tests {
    use super::Program;

    #[test]
    fn the_server_is_built_only_where_it_is_started() {
        let starts = |program: Program, arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(Into::into).collect();
            program.starts_server(&arguments)
        };
        assert!(starts(Program::Up, &["--check"]));
        assert!(starts(Program::Conformance, &["--filter", "4.2"]));
        assert!(!starts(Program::Conformance, &["--base-url", "http://a"]));
        assert!(!starts(Program::Conformance, &["--base-url=http://a"]));
        assert!(!starts(Program::Bench, &["--help"]));
        assert!(!starts(Program::Images, &["base"]));
    }
}
