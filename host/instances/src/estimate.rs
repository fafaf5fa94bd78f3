//! Estimates: the decision on a create request, and its price, without the instance.

use super::App;
use super::create::password;
use wharf_db::Changes;
use wharf_domain::error::Error;
use wharf_domain::ledger;
use wharf_domain::money::Rates;
use wharf_domain::request::CreateRequest;
use wharf_domain::state::InstanceState;
use wharf_ground::caller::Caller;

/// The price of an instance, and whether it can be created now.
#[derive(Debug)]
pub struct Estimate {
    pub rates: Rates,
    /// Nano-USD per hour while it runs.
    pub hourly: u128,
    /// Nano-USD per hour while it is stopped.
    pub stopped_hourly: u128,
    /// The lack of capacity or quota that a create request would be refused for.
    pub shortage: Option<Error>,
}

impl App {
    /// Decides as [`Self::create`] does, and writes nothing.
    pub async fn estimate(
        &self,
        caller: &Caller,
        request: CreateRequest,
    ) -> Result<Estimate, Error> {
        if self.db.disk().is_low() {
            return Err(Error::DiskFull);
        }
        let draft = self.draft(caller, request, password(&self.random)?).await?;
        let (rates, size) = (draft.rates, draft.placement.size);
        let n_gpus = u32::from(draft.placement.gpu_model.is_some());
        let hourly = |state: InstanceState| ledger::hourly(rates, size, n_gpus, state.billed());
        let (inventory, defaults) = (self.inventory.clone(), self.config().quota.limits());
        // The writer alone knows the inventory between two decisions.
        let decided = self.db.write(move |view| {
            drop(draft.decide(view, &inventory, defaults)?);
            Ok(((), Changes::none()))
        });
        let shortage = match decided.await {
            Ok(()) => None,
            Err(short @ (Error::Insufficient(_) | Error::OverQuota(_))) => {
                Some(self.with_freeing(short))
            }
            Err(other) => return Err(other),
        };
        Ok(Estimate {
            rates,
            hourly: hourly(InstanceState::Running),
            stopped_hourly: hourly(InstanceState::Exited),
            shortage,
        })
    }
}
