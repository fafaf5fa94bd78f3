//! Wharf killed with SIGKILL during its work, and restarted.

use crate::lab::{Lab, user};
use anyhow::{Result, ensure};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use wharf_tests::kills::{FIVE, KilledEngine, Plan, converge};
use wharf_tests::lanes::is_whole_run;

/// A lab, and the networks of all instances.
struct Witness<'a, L> {
    lab: &'a L,
    networks: RefCell<BTreeSet<String>>,
}

impl<L: Lab> KilledEngine for Witness<'_, L> {
    fn has(&self, instance: &Value, runs: bool) -> Result<()> {
        self.lab.runs(instance, runs)?;
        let networks = self.lab.object(instance)?.networks;
        self.networks.borrow_mut().extend(networks);
        if runs {
            self.lab.is_whole(instance)?;
            user(instance).wait_for_login(instance)?;
            ensure!(self.lab.login(instance, "id -un")? == "user");
        }
        Ok(())
    }

    fn gone(&self, instance: &Value) -> Result<()> {
        self.lab.gone(instance)
    }
}

/// Kills in the middle of provisioning, restart and deletion: the request is durable, and the engine has begun. A
/// whole run has twenty kills.
pub fn kills(lab: &impl Lab) -> Result<()> {
    let (mut server, api) = lab.served("")?;
    let whole = is_whole_run();
    let plan = Plan {
        points: if whole { &FIVE } else { &[0.5] },
        in_stop: whole,
        grows: false,
        early_deletions: if whole { &[0, 60, 150] } else { &[60] },
    };
    let witness = Witness {
        lab,
        networks: RefCell::default(),
    };
    converge(&mut server, api, &witness, plan)?;
    let networks = witness.networks.into_inner();
    ensure!(networks.is_empty() != lab.facts().has_owners_networks);
    lab.networks_gone(&networks)?;
    server.finish()
}
