//! The commands of `docs/first-day.md`, as they stand there, on a run of `up`.

use crate::image;
use crate::run::{Run, engine_id, names};
use crate::traces;
use crate::up::Up;
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;
use wharf_testkit::child::KilledOnDrop;
use wharf_testkit::process::{command, output};
use wharf_testkit::workspace;

const PAGE: &str = include_str!("../../../../docs/first-day.md");
/// The end of a command's output, followed by its exit code.
const END: &str = "--- ended with ";
/// `cargo xtask` without the build, which cargo's own processes would wait for.
const CARGO: &str = "cargo() { shift; exec wharf-up \"$@\"; }";

/// A command of the page, and its output.
type Said = Vec<(&'static str, String)>;

pub fn as_written(dir: &Path) -> Result<()> {
    let (first, second) = (dir.join(".wharf"), dir.join("second"));
    let day = Instant::now();
    let mut up = Up::running(&first)?;
    time(&day, "cargo xtask up");
    let run = Run::of(&first)?;
    let mut shell = Shell::start(dir, run.url())?;
    let mut said = Said::new();
    for part in PAGE.split("\n## ").skip(1) {
        let begin = Instant::now();
        for command in commands(part) {
            let begin = Instant::now();
            let output = shell.run(command)?;
            time(&begin, command);
            said.push((command, output));
        }
        let title = part.lines().next().unwrap_or_default();
        time(&begin, &format!("== {title}"));
    }
    time(&day, "== in all");
    drop(shell);
    is_as_told(&said)?;
    let two = Run::of(&second)?;
    for setting in ["lan_cidr", "from"] {
        ensure!(run.setting(setting)? != two.setting(setting)?, "{setting}");
    }
    // The second has removed its own traces, and the rules of the first are in force.
    traces::none(&names(&second))?;
    let rules = format!("wharf_{}", engine_id(&first));
    output(command("nft").args(["list", "table", "inet", &rules]))?;
    ensure!(up.output().contains("It runs again"), "{}", up.output());
    let begin = Instant::now();
    image::keeps_its_promises(&run)?;
    time(&begin, "the promises of the image");
    up.ctrl_c();
    up.ctrl_c();
    up.ends_well()?;
    traces::none(&names(&first))
}

/// The lines of the blocks of commands.
fn commands(part: &str) -> impl Iterator<Item = &str> {
    let blocks = part.split("```sh\n").skip(1);
    blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines())
}

fn time(begin: &Instant, what: &str) {
    println!("{:6.1} s  {what}", begin.elapsed().as_secs_f64());
}

fn is_as_told(said: &Said) -> Result<()> {
    let of = |part: &str| -> Vec<&str> {
        let found = said.iter().filter(|(command, _)| command.ends_with(part));
        found.map(|(_, output)| output.trim()).collect()
    };
    let names = ["first-box", "hello", "first-box", "first-box"];
    ensure!(of("uname -n") == names, "{:?}", of("uname -n"));
    ensure!(of("nproc") == ["1", "2", "1"], "{:?}", of("nproc"));
    ensure!(of("cat note") == ["kept"], "{:?}", of("cat note"));
    let memory = of("free -m");
    let total = |table: &str| {
        let line = table.lines().find(|line| line.starts_with("Mem:"));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u32>().ok())
    };
    let totals: Vec<_> = memory.iter().map(|table| total(table)).collect();
    ensure!(totals == [Some(1024), Some(2048)], "{memory:?}");
    let shared = of("df -h /dev/shm");
    ensure!(
        shared.iter().all(|table| table.contains("512M")),
        "{shared:?}"
    );
    Ok(())
}

/// The shell of a user with a home directory of its own.
struct Shell {
    _shell: KilledOnDrop,
    keyboard: ChildStdin,
    screen: BufReader<ChildStdout>,
}

impl Shell {
    fn start(home: &Path, address: &str) -> Result<Self> {
        let programs = workspace::wharf_binary();
        let programs = programs.parent().context("the directory of wharf")?;
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh")
            .env_clear()
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("HOME", home)
            .env("WHARF_ADDRESS", address)
            .env("WHARF_WORKSPACE", workspace::root())
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut keyboard = shell.stdin.take().context("stdin")?;
        writeln!(keyboard, "{CARGO}")?;
        let screen = BufReader::new(shell.stdout.take().context("stdout")?);
        Ok(Self {
            _shell: KilledOnDrop(shell),
            keyboard,
            screen,
        })
    }

    /// Runs a line, which must succeed, and returns its stdout.
    fn run(&mut self, line: &str) -> Result<String> {
        // Commands of the line must not read the next lines.
        writeln!(self.keyboard, "{{ {line}\n}} < /dev/null; echo \"{END}$?\"")?;
        let mut output = String::new();
        loop {
            let mut next = String::new();
            if self.screen.read_line(&mut next)? == 0 {
                bail!("the shell ended in {line}: {output}");
            }
            if let Some((last, code)) = next.split_once(END) {
                output += last;
                ensure!(code.trim() == "0", "{line}: {code}{output}");
                return Ok(output);
            }
            output += &next;
        }
    }
}
