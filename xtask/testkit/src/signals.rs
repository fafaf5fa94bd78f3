//! Signals that end a program in order: Ctrl-C, TERM and HUP.

use anyhow::{Result, bail};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// A queue of the signals received.
pub struct Signals {
    receiver: Receiver<()>,
}

impl Signals {
    /// Catches the signals from now on, so that they do not kill the process.
    pub fn catch() -> Result<Self> {
        let (sender, receiver) = channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut streams = runtime.block_on(async {
            let kinds = [
                SignalKind::interrupt(),
                SignalKind::terminate(),
                SignalKind::hangup(),
            ];
            kinds
                .into_iter()
                .map(signal)
                .collect::<std::io::Result<Vec<_>>>()
        })?;
        std::thread::spawn(move || {
            runtime.block_on(async {
                let [interrupt, terminate, hangup] = streams.as_mut_slice() else {
                    return;
                };
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                        _ = hangup.recv() => {}
                    }
                    if sender.send(()).is_err() {
                        return;
                    }
                }
            });
        });
        Ok(Self { receiver })
    }

    /// Whether a signal arrives within `limit`.
    pub fn wait(&self, limit: Duration) -> bool {
        self.receiver.recv_timeout(limit).is_ok()
    }

    /// Fails if a signal has arrived.
    pub fn check(&self) -> Result<()> {
        if self.wait(Duration::ZERO) {
            bail!("interrupted");
        }
        Ok(())
    }
}
