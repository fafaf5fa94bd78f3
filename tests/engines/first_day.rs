//! The commands of `docs/first-day.md`, as they stand there.

use crate::context::Context;
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::time::Instant;
use wharf_tests::{Shell, end};

const PAGE: &str = include_str!("../../docs/first-day.md");

/// The lines of all blocks of commands.
fn commands() -> Vec<&'static str> {
    let blocks = PAGE.split("```sh\n").skip(1);
    blocks
        .flat_map(|block| block.split("```").next().unwrap_or_default().lines())
        .collect()
}

/// The outputs of the commands that end with a part.
fn outputs<'a>(said: &'a [(&str, String)], part: &str) -> Vec<&'a str> {
    let found = said.iter().filter(|(command, _)| command.ends_with(part));
    found.map(|(_, output)| output.trim()).collect()
}

pub fn as_written(context: &Context) -> Result<()> {
    if !context.grows_disks() {
        println!("SKIPPED: this engine cannot grow a disk");
        return Ok(());
    }
    let server = context.server()?;
    let shell = Shell::new()?;
    let key = server.cli(&["key", "new", "ann@example.com"])?;
    std::fs::write(shell.home().join("api-key"), key)?;
    let directory = wharf_testkit::workspace::wharf_binary();
    let directory = directory.parent().context("the directory of wharf")?;
    let path = format!(
        "{}:{}",
        directory.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let day = Instant::now();
    let mut said = Vec::new();
    for command in commands() {
        let begin = Instant::now();
        let mut sh = shell.own(Path::new("sh"), &["-ec", command]);
        sh.env("PATH", &path)
            .env("WHARF_ADDRESS", server.base_url());
        let ended = end(&mut sh, "")?;
        println!("{:6.1} s  {command}", begin.elapsed().as_secs_f64());
        ensure!(ended.code == Some(0), "{command}: {ended:?}");
        said.push((command, ended.stdout));
    }
    println!("{:6.1} s  in all", day.elapsed().as_secs_f64());
    let of = |part| outputs(&said, part);
    ensure!(of("uname -n") == ["first-box"]);
    ensure!(of("nproc") == ["1", "2"], "{:?}", of("nproc"));
    ensure!(of("cat note") == ["kept"]);
    let memory = of("free -m");
    let total = |table: &str| {
        let line = table.lines().find(|line| line.starts_with("Mem:"));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u32>().ok())
    };
    let totals: Vec<_> = memory.iter().map(|table| total(table)).collect();
    ensure!(totals == [Some(1024), Some(2048)], "{memory:?}");
    ensure!(of("df -h /dev/shm")[0].contains("512M"));
    server.finish()
}
