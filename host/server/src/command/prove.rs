//! `wharf plugin prove`.

use super::{ConfigFile, runtime};
use crate::drivers::drivers_to_prove;
use crate::log;
use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use wharf_sanity::{Checked, Outcome, Sample, Subject};

/// Check a driver against every promise of its interface, on a node of the configuration
///
/// The instances have an installation of their own and are removed at the end. No server of the node
/// needs to run; one may. The exit status is 0 when the driver keeps its promises, and 1 otherwise.
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
}

impl Prove {
    pub fn run(self) -> Result<()> {
        let _log = log::to_stderr(false);
        runtime()?.block_on(self.prove())
    }

    async fn prove(self) -> Result<()> {
        let config = self.config.load()?;
        let (node, drivers) = drivers_to_prove(&config, &self.driver, &self.node).await?;
        // Servers take subnets and ports from the other end.
        let subnet = node.lan_cidr.subnets(node.lan_subnet_prefix)?.last();
        let ports_end = match self.web_port {
            Some(_) => config.web.to,
            None => config.ssh_ports.to,
        };
        let sample = Sample {
            image: self.image,
            web: self.web_port.map(|port| (port, self.web_path)),
            subnet: subnet.context("the node's lan_cidr has no subnet")?,
            connect: self.connect,
            last_port: ports_end,
            deadline: Duration::from_secs(self.deadline),
        };
        let subject = Subject::open(drivers, sample).await.context("probe")?;
        let mut out = std::io::stdout();
        writeln!(out, "{}: {}", node.name, subject.engine())?;
        let tell = |checked: &Checked| drop(tell(checked));
        let all = wharf_sanity::prove(&subject, &self.filter, tell).await?;
        let count = |is: fn(&Outcome) -> bool| all.iter().filter(|one| is(&one.outcome)).count();
        let broken = count(|outcome| matches!(outcome, Outcome::Broken(_)));
        let skipped = count(|outcome| matches!(outcome, Outcome::NotApplicable(_)));
        let kept = all.len() - broken - skipped;
        writeln!(out, "{kept} passed, {broken} failed, {skipped} skipped")?;
        if broken > 0 {
            bail!("the driver breaks {broken} of its promises");
        }
        Ok(())
    }
}

/// Prints the line of a promise.
fn tell(checked: &Checked) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    let promise = checked.promise;
    match &checked.outcome {
        Outcome::Kept => writeln!(out, "pass  {promise}"),
        Outcome::NotApplicable(why) => writeln!(out, "skip  {promise}\n        {why}"),
        Outcome::Broken(why) => writeln!(out, "FAIL  {promise}\n        {why}"),
    }
}
