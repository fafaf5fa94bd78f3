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

/// A task, its program, and the program's first argument.
const PROGRAMS: [(&str, &str, Option<&str>); 8] = [
    ("up", "wharf-up", Some("up")),
    ("down", "wharf-up", Some("down")),
    ("images", "wharf-up", Some("images")),
    ("conformance", "wharf-conformance", None),
    ("dist", "wharf-dist", None),
    ("gpu-proof", "wharf-gpu-proof", None),
    ("bench", "wharf-bench", Some("run")),
    ("simulate", "wharf-simulate", None),
];

/// A task with a program of its own.
#[derive(Debug)]
pub struct Program {
    task: &'static str,
    binary: &'static str,
    leading: Option<&'static str>,
}

impl Program {
    /// The program of a task, if the task has one.
    pub fn of(task: &str) -> Option<Self> {
        let mut programs = PROGRAMS.into_iter();
        let (task, binary, leading) = programs.find(|(name, ..)| *name == task)?;
        Some(Self {
            task,
            binary,
            leading,
        })
    }

    /// Whether the program starts the server of this workspace.
    fn starts_server(&self, arguments: &[OsString]) -> bool {
        let has = |option: &str| {
            let mut arguments = arguments.iter().map(|argument| argument.to_string_lossy());
            arguments.any(|argument| argument.split('=').next() == Some(option))
        };
        let is_needed = match self.task {
            "down" | "images" | "simulate" => false,
            "conformance" => !has("--base-url"),
            _ => true,
        };
        is_needed && !has("--help") && !has("-h") && env::var_os(SERVER).is_none()
    }
}

/// Builds the program, with the server where it needs that, and becomes it.
pub fn start(workspace: &Workspace, program: &Program, arguments: &[OsString]) -> Result<()> {
    let mut names = vec![program.binary];
    if program.starts_server(arguments) {
        names.push("wharf");
    }
    step(
        &format!("Building {} (release)", names.join(" and ")),
        || build::binaries(workspace, &names),
    )?;
    let binary = workspace.binary(program.binary);
    let mut command = Command::new(&binary);
    command.args(program.leading).args(arguments);
    command.env(ROOT, workspace.root());
    let error = without_package(&mut command).exec();
    Err(Error::new(error).context(format!("cannot run {}", binary.display())))
}

#[cfg(test)]
mod tests {
    use super::Program;

    #[test]
    fn the_server_is_built_only_where_it_is_started() {
        let starts = |task: &str, arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(Into::into).collect();
            Program::of(task).unwrap().starts_server(&arguments)
        };
        assert!(starts("up", &["--check"]));
        assert!(starts("conformance", &["--filter", "4.2"]));
        assert!(!starts("conformance", &["--base-url", "http://a"]));
        assert!(!starts("conformance", &["--base-url=http://a"]));
        assert!(!starts("bench", &["--help"]));
        assert!(!starts("images", &["base"]));
    }
}
