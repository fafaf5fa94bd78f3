//! `wharf serve`.

use super::operator::OperatorCommand;
use super::{ConfigFile, runtime};
use crate::{log, server};
use anyhow::Result;
use clap::Args;
use std::io::Write;
use tokio::signal::unix::{SignalKind, signal};
use wharf_config::Config;

/// Run the server
#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    config: ConfigFile,
    /// Log one JSON object per line instead of text
    #[arg(long)]
    log_json: bool,
}

impl OperatorCommand for Serve {
    fn run(self) -> Result<()> {
        let runtime = runtime()?;
        let log = log::to_stderr(self.log_json);
        let config = self.config.load()?;
        runtime.block_on(async {
            tokio::select! {
                served = serve(config) => served,
                () = log.report() => Ok(()),
            }
        })
    }
}

async fn serve(config: Config) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let hangup = signal(SignalKind::hangup())?;
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let listening = |address| {
        println!("listening on {scheme}://{address}");
        drop(std::io::stdout().flush());
    };
    Ok(server::serve(config, listening, hangup, stop).await?)
}
