//! `wharf plugin prove`.

use super::{ConfigFile, counted, runtime};
use crate::drivers::drivers_to_prove;
use crate::log;
use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args};
use std::io::{self, Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wharf_sanity::{CheckedPromise, JUnit, ProofOutcome, ProofReport, SampleInstances};

/// Check a driver against every promise of its interface, on a node of the configuration
///
/// The instances have an installation of their own and are removed at the end. No server of the node
/// needs to run; one may. The exit status is 0 if the driver breaks no promise, 1 if it breaks one or cannot be
/// checked, and 2 for wrong usage.
#[derive(Args)]
#[command(group(ArgGroup::new("reached").required(true)))]
pub struct Prove {
    /// A file driver-NAME.wasm with its request file beside it, or the name of a driver that is part of Wharf
    driver: PathBuf,
    #[command(flatten)]
    config: ConfigFile,
    /// A node of the configuration with this driver
    #[arg(long, value_name = "NAME")]
    node: String,
    /// Image of the instances, in the engine's syntax
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// Instances of the image have SSH on port 22
    #[arg(long, group = "reached")]
    ssh: bool,
    /// Instances of the image have a web page on this port
    #[arg(long, value_name = "PORT", group = "reached")]
    web_port: Option<u16>,
    /// Path of the page that answers without a password
    #[arg(long, value_name = "PATH", default_value = "/")]
    web_path: String,
    /// Address at which published ports of the node are reached
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    connect: String,
    /// Longest time in seconds until an instance is up
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    deadline: u64,
    /// Only promises whose names contain the text
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    filter: String,
    /// Write a report as JSON to this file, as `require_proof` in `[plugins]` asks for
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write a report as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl Prove {
    pub fn run(self) -> Result<()> {
        let _log = log::to_stderr(false);
        runtime()?.block_on(self.prove())
    }

    async fn prove(self) -> Result<()> {
        let config = self.config.load()?;
        let (node, driver, drivers) = drivers_to_prove(&config, &self.driver, &self.node).await?;
        // A server that starts during the proof must not take its network, which is there only at times.
        let _reserved = wharf_operations::check::reserved(&config, &drivers.own).await?;
        // Servers take subnets and ports from the other end.
        let subnet = node.lan_cidr.subnets(node.lan_subnet_prefix)?.last();
        let ports_end = match self.web_port {
            Some(_) => config.web.to,
            None => config.ssh_ports.to,
        };
        let sample = SampleInstances {
            image: self.image,
            web: self.web_port.map(|port| (port, self.web_path)),
            subnet: subnet.context("the node's lan_cidr has no subnet")?,
            connect: self.connect,
            last_port: ports_end,
            deadline: Duration::from_secs(self.deadline),
        };
        let tell = |checked: &CheckedPromise| drop(tell(checked));
        let stop = tokio::signal::ctrl_c();
        let proven = wharf_sanity::prove(drivers, sample, &self.filter, stop, tell);
        let (engine_version, promises) = proven.await?;
        let report = ProofReport::new(driver, engine_version, promises);
        if let Some(path) = &self.report {
            write(path, &serde_json::to_string_pretty(&report)?)?;
        }
        if let Some(path) = &self.junit {
            write(path, &JUnit(&report).to_string())?;
        }
        let count = |is: fn(&ProofOutcome) -> bool| {
            let promises = report.promises.iter();
            promises.filter(|one| is(&one.outcome)).count()
        };
        let broken = count(ProofOutcome::is_broken);
        let skipped = count(ProofOutcome::is_not_applicable);
        let kept = report.promises.len() - broken - skipped;
        let on = match report.engine_version.as_str() {
            "" => String::new(),
            version => format!(" on {version}"),
        };
        writeln!(
            stdout(),
            "{kept} passed, {broken} failed, {skipped} skipped{on}"
        )?;
        if broken > 0 {
            bail!("the driver breaks {}", counted(broken, "promise"));
        }
        if report.promises.is_empty() {
            bail!("no promise contains {:?}", self.filter);
        }
        Ok(())
    }
}

/// Prints the line of a promise.
fn tell(checked: &CheckedPromise) -> io::Result<()> {
    let (result, why) = match &checked.outcome {
        ProofOutcome::Kept => ("pass", None),
        ProofOutcome::NotApplicable(why) => ("skip", Some(why)),
        ProofOutcome::Broken(why) => ("FAIL", Some(why)),
    };
    let seconds = Duration::from_millis(checked.duration_ms).as_secs_f64();
    let mut out = stdout().lock();
    writeln!(out, "{result}  {} ({seconds:.1} s)", checked.promise)?;
    why.map_or(Ok(()), |why| writeln!(out, "        {why}"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
