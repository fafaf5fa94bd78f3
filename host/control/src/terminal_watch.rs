//! Ends terminals whose key, instance or client is gone.

use super::{App, Credential};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::interval;
use wharf_db::Read;
use wharf_domain::audit::Actor;
use wharf_domain::state::InstanceState;
use wharf_terminal::{Opener, TerminalEnd};

/// Interval between two looks. A revoked key has its terminals for this time at most.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Runs until `stop` changes, then ends all terminals.
pub async fn run(app: Arc<App>, mut stop: watch::Receiver<bool>) {
    let mut look = interval(LOOK_EVERY);
    loop {
        tokio::select! {
            _ = stop.changed() => break,
            _ = look.tick() => {}
        }
        if !app.terminals.is_empty() {
            let unattended = Duration::from_secs(app.config().limits.terminal_unattended_s);
            app.terminals.sweep(unattended, |opener| app.end_of(opener));
        }
    }
    app.terminals.stop();
}

impl App {
    /// The reason for which a terminal must end.
    fn end_of(&self, opener: &Opener) -> Option<TerminalEnd> {
        let is_valid = match &opener.actor {
            Actor::Key(id) => self.holds(Credential::Key, id),
            Actor::Session(id) => self.holds(Credential::Session, id),
            Actor::Operator => false,
        };
        if !is_valid {
            return Some(TerminalEnd::Access);
        }
        match self.db.read(|rows| rows.instance(opener.instance)) {
            Ok(row) => {
                let runs = row.is_some_and(|row| row.state() == InstanceState::Running);
                (!runs).then_some(TerminalEnd::NotRunning)
            }
            Err(error) => {
                tracing::error!(error = %error.chain(), "cannot read the instance of a terminal");
                None
            }
        }
    }
}
