//! Faults that are planted one at a time, to see that the simulator finds each. They are in `planted.toml`.

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The list, which a person may extend.
const LIST: &str = include_str!("../planted.toml");

/// The most seeds that may pass before a fault is found.
const SEEDS: u64 = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Planted {
    fault: Vec<PlantedFault>,
}

/// A fault: a text of a file that becomes another one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlantedFault {
    name: String,
    /// Where it was mended, or that the product never had it.
    of: String,
    file: PathBuf,
    was: String,
    becomes: String,
}

impl PlantedFault {
    /// Plants the fault in a copy of the sources. Returns the text before.
    fn plant(&self, tree: &Path) -> Result<String> {
        let path = tree.join(&self.file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let was = self.was.trim_end_matches('\n');
        let found = text.matches(was).count();
        ensure!(
            found == 1,
            "{}: {} has its text {found} times",
            self.name,
            self.file.display()
        );
        fs::write(
            &path,
            text.replacen(was, self.becomes.trim_end_matches('\n'), 1),
        )?;
        Ok(text)
    }
}

/// Plants each fault whose name contains a text in a copy of the sources at `tree`, builds the simulator, and prints a
/// row of a table for each.
pub fn run(tree: &Path, filter: &str) -> Result<()> {
    let list: Planted = toml::from_str(LIST)?;
    let mut missed = Vec::new();
    println!("| Fault | Of | Found at seed | Seconds | Words |\n|---|---|---|---|---|");
    for fault in list
        .fault
        .iter()
        .filter(|fault| fault.name.contains(filter))
    {
        let before = fault.plant(tree)?;
        let found = find(tree);
        fs::write(tree.join(&fault.file), before)?;
        let row = match found? {
            Some((seed, seconds, words)) => format!("{seed} | {seconds:.1} | {words}"),
            None => {
                missed.push(fault.name.as_str());
                format!("not within {SEEDS} | |")
            }
        };
        println!("| {} | {} | {row} |", fault.name, fault.of);
    }
    if !missed.is_empty() {
        bail!("not found: {}", missed.join(", "));
    }
    Ok(())
}

/// Builds the simulator of a tree, and runs seeds until one fails. Returns the seed, the seconds and the first words of
/// the failure.
fn find(tree: &Path) -> Result<Option<(u64, f64, String)>> {
    let cargo = [
        "build",
        "--release",
        "--locked",
        "--offline",
        "--workspace",
        "--bin",
        "wharf-simulate",
    ];
    let built = Command::new("cargo")
        .args(cargo)
        .current_dir(tree)
        .stderr(Stdio::null())
        .status()?;
    ensure!(
        built.success(),
        "the simulator with the fault does not compile"
    );
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| tree.join("target"), PathBuf::from);
    // A build in another tree may replace the program meanwhile.
    let program = tree.join("wharf-simulate.planted");
    fs::copy(target.join("release/wharf-simulate"), &program)?;
    let begin = Instant::now();
    let count = SEEDS.to_string();
    let run = Command::new(&program)
        .args(["--once", "--brief", "--seeds", &count])
        .output()?;
    let seconds = begin.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&run.stdout);
    let failures = text
        .lines()
        .filter_map(|line| line.strip_prefix("seed ")?.split_once(": "))
        .filter_map(|(seed, words)| Some((seed.parse().ok()?, words)));
    // Seeds run beside each other.
    let first = failures.min_by_key(|(seed, _): &(u64, _)| *seed);
    if let Some((seed, words)) = first {
        return Ok(Some((seed, seconds, words.to_owned())));
    }
    ensure!(
        run.status.success(),
        "the simulator ended: {}",
        String::from_utf8_lossy(&run.stderr)
    );
    Ok(None)
}
