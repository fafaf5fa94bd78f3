//! The results: a table for people, JSON for programs.

use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt;
use std::fs;
use std::path::Path;

/// A figure and its baseline.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The measurement.
    pub what: String,
    /// Our figure, with its unit.
    pub ours: String,
    /// The baseline's figure, with its unit; empty where there is none.
    pub baseline: String,
    /// The value to compare: the ratio of ours to the baseline's, or ours where there is none.
    pub value: f64,
    /// The target of the value.
    pub target: Target,
    /// Whether the target is met.
    pub met: bool,
}

/// The target of a figure.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A lower bound.
    AtLeast(f64),
    /// An upper bound.
    AtMost(f64),
}

impl Target {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

/// All results.
#[derive(Debug, Default, Serialize)]
pub struct Table {
    machine: Machine,
    rows: Vec<Row>,
    /// Measurements that were left out, with the reason.
    left_out: Vec<String>,
}

/// The machine.
#[derive(Debug, Serialize)]
struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
    memory_gib: u64,
    load_average: String,
}

impl Default for Machine {
    fn default() -> Self {
        let line = |file: &str, key: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let mut lines = text.lines().filter(|line| line.starts_with(key));
            let value = lines.next().and_then(|line| line.split(':').nth(1));
            value.unwrap_or("unknown").trim().to_owned()
        };
        let kib = line("/proc/meminfo", "MemTotal");
        let kib = kib.split(' ').next().and_then(|n| n.parse::<u64>().ok());
        let read = |file| {
            fs::read_to_string(file)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        Self {
            cpu: line("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease"),
            memory_gib: kib.unwrap_or(0) >> 20,
            load_average: read("/proc/loadavg"),
        }
    }
}

impl Table {
    /// Adds a figure beside a baseline.
    pub fn row(
        &mut self,
        what: impl Into<String>,
        (ours, baseline): (String, String),
        value: f64,
        target: Target,
    ) {
        let row = Row {
            what: what.into(),
            ours,
            baseline,
            value,
            target,
            met: target.is_met_by(value),
        };
        eprintln!("   {row}");
        self.rows.push(row);
    }

    /// Records a measurement that was left out.
    pub fn leave_out(&mut self, what: &str, why: &str) {
        eprintln!("   left out: {what}: {why}");
        self.left_out.push(format!("{what}: {why}"));
    }

    /// Writes `bench.json`.
    pub fn write(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory)
            .with_context(|| format!("--report {}", directory.display()))?;
        let json = serde_json::to_string_pretty(self)? + "\n";
        fs::write(directory.join("bench.json"), json)?;
        Ok(())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let met = if self.met { "met" } else { "NOT MET" };
        let (what, ours, baseline) = (&self.what, &self.ours, &self.baseline);
        write!(
            f,
            "| {what} | {ours} | {baseline} | {:.2} | {} | {met} |",
            self.value, self.target
        )
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine {
            cpu,
            cores,
            kernel,
            memory_gib,
            load_average,
        } = &self.machine;
        writeln!(
            f,
            "{cpu}, {cores} cores, {memory_gib} GiB, Linux {kernel}, load at the start {load_average}\n"
        )?;
        writeln!(f, "| what | ours | baseline | figure | target | |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        for line in &self.left_out {
            writeln!(f, "\nLeft out: {line}")?;
        }
        Ok(())
    }
}
