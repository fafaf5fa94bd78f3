//! Rows, the table that people read and the JSON that programs read.

use crate::curve::{self, Bend, Point, bend};
use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt;
use std::fs;
use std::path::Path;

/// One figure beside its baseline.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// Ours, with its unit.
    pub ours: String,
    /// The baseline's, with its unit; empty where there is none.
    pub baseline: String,
    /// What is compared: ours to the baseline, or ours alone.
    pub value: f64,
    /// What it should reach.
    pub reach: Reach,
    /// Whether it does.
    pub met: bool,
}

/// What a figure should reach.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// So much or more.
    AtLeast(f64),
    /// So much or less.
    AtMost(f64),
}

impl Reach {
    fn met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

/// How a figure grows with a size.
#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    /// File name and title.
    pub name: String,
    /// What the size counts.
    pub size: String,
    /// Unit of the figures.
    pub unit: String,
    /// Each line with its points.
    pub lines: Vec<(String, Vec<Point>)>,
    /// Why it is as it is, and so where it bends.
    pub why: &'static str,
}

/// Everything that was measured.
#[derive(Debug, Default, Serialize)]
pub struct Table {
    machine: Machine,
    rows: Vec<Row>,
    curves: Vec<Curve>,
    /// Measurements that were left out, and why.
    left_out: Vec<String>,
}

/// What it was measured on.
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
        reach: Reach,
    ) {
        let row = Row {
            what: what.into(),
            ours,
            baseline,
            value,
            reach,
            met: reach.met_by(value),
        };
        eprintln!("   {row}");
        self.rows.push(row);
    }

    /// Adds a curve.
    pub fn curve(&mut self, curve: Curve) {
        self.curves.push(curve);
    }

    /// Notes what could not be measured.
    pub fn leave_out(&mut self, what: &str, why: &str) {
        eprintln!("   left out: {what}: {why}");
        self.left_out.push(format!("{what}: {why}"));
    }

    /// Writes `bench.json` and a picture of each curve.
    pub fn write(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory)
            .with_context(|| format!("--report {}", directory.display()))?;
        let json = serde_json::to_string_pretty(self)? + "\n";
        fs::write(directory.join("bench.json"), json)?;
        for curve in &self.curves {
            curve::draw(curve, &directory.join(format!("{}.svg", curve.name)))?;
        }
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
            self.value, self.reach
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
        writeln!(f, "| what | ours | baseline | figure | reach | |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        for curve in &self.curves {
            let Curve {
                name, size, why, ..
            } = curve;
            write!(f, "\n{name}.svg")?;
            if let Some(bend) = curve.lines.first().and_then(|(_, line)| bend(line)) {
                let Bend { at, before, after } = bend;
                write!(
                    f,
                    " bends most at {at} {size}: ten times as many make it {before:.1} times as much \
                     before, {after:.1} after"
                )?;
            }
            writeln!(f, ". {why}")?;
        }
        for line in &self.left_out {
            writeln!(f, "\nLeft out: {line}")?;
        }
        Ok(())
    }
}
