//! The audit records of terminals and tunnels.

use super::App;
use super::find::Selector;
use super::terminal::reachable;
use wharf_db::Changes;
use wharf_domain::audit::AuditRecord;
use wharf_domain::error::Error;
use wharf_domain::instance::Instance;
use wharf_ground::caller::Caller;

/// The opening of a connection to an instance.
pub(super) struct Opening {
    /// The operation in the audit log.
    pub operation: &'static str,
    /// The action, for a refusal.
    pub verb: &'static str,
}

impl App {
    /// Writes the audit record of an opening, if the instance still is reachable.
    pub(super) async fn record_opening(
        &self,
        caller: &Caller,
        selector: &Selector,
        opening: Opening,
        subject: Option<String>,
        result: &'static str,
    ) -> Result<Instance, Error> {
        let (caller, selector) = (caller.clone(), selector.clone());
        let written = self.db.write(move |view| {
            let instance = reachable(view.rows, &caller, &selector, &opening)?;
            let record = AuditRecord {
                at: view.system,
                origin: caller.origin(),
                operation: opening.operation.to_owned(),
                owner: Some(instance.owner),
                instance: Some(instance.id),
                subject: subject.clone(),
                result: result.to_owned(),
            };
            Ok((instance, Changes::none().audit(record)))
        });
        written.await
    }
}
