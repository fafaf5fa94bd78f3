//! Ends terminals and tunnels whose key, instance or client is gone.

use super::App;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::interval;
use wharf_db::Read;
use wharf_domain::audit::Actor;
use wharf_domain::ids::InstanceId;
use wharf_domain::state::InstanceState;
use wharf_terminal::{Opener, TerminalEnd};

/// Interval between two looks. A revoked key has its terminals and tunnels for this time at most.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Runs until `stop` changes, then ends all terminals and tunnels. `is_valid` says whether the credential of an actor
/// is still valid.
pub async fn run(
    app: Arc<App>,
    is_valid: impl Fn(&Actor) -> bool,
    mut stop: watch::Receiver<bool>,
) {
    let mut look = interval(LOOK_EVERY);
    loop {
        tokio::select! {
            biased;
            _ = stop.changed() => break,
            _ = look.tick() => {}
        }
        if !app.terminals.is_empty() {
            let unattended = Duration::from_secs(app.config().limits.terminal_unattended_s);
            let end_of = |opener: &_| app.end_of(opener, &is_valid);
            app.terminals.sweep(unattended, end_of);
        }
        if !app.tunnels.is_empty() {
            app.tunnels.sweep(|opener| app.end_of(opener, &is_valid));
        }
        for ports in [&app.tunnel_ports, &app.page_ports] {
            ports.sweep(|id, incarnation| app.runs(id, incarnation));
        }
    }
    app.terminals.stop();
    app.tunnels.stop();
}

impl App {
    /// Whether an instance runs in this incarnation.
    fn runs(&self, id: InstanceId, incarnation: u64) -> bool {
        let row = self.db.read(|rows| rows.instance(id));
        row.is_ok_and(|row| {
            row.is_some_and(|row| {
                row.state() == InstanceState::Running && row.incarnation == incarnation
            })
        })
    }

    /// The reason for which a terminal or tunnel must end.
    fn end_of(&self, opener: &Opener, is_valid: impl Fn(&Actor) -> bool) -> Option<TerminalEnd> {
        if !is_valid(&opener.actor) {
            return Some(TerminalEnd::Access);
        }
        match self.db.read(|rows| rows.instance(opener.instance)) {
            Ok(row) => {
                let runs = row.is_some_and(|row| row.state() == InstanceState::Running);
                (!runs).then_some(TerminalEnd::NotRunning)
            }
            Err(error) => {
                tracing::error!(error = %error.chain(), "cannot read the instance of a terminal or tunnel");
                None
            }
        }
    }
}
