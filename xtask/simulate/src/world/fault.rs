//! The faults of engines, and the choice of one for a call.

use super::{Request, Unique, World};
use crate::dice::Dice;
use std::time::Duration;
use wharf_domain::ids::NodeId;

/// A fault at one call of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// Contact is lost, and the call has no effect.
    Unreachable,
    /// The engine answers with an error, and the call has no effect.
    Refused,
    /// The engine asks for a later call.
    RetryLater,
    /// The call takes effect, and contact is lost before the answer.
    AnswerLost,
    /// The call takes effect, and the answer is an error.
    ErrorAfter,
    /// Contact is lost, and the engine carries the call out a little later.
    Late,
    /// Contact is lost, and the engine carries the call out after the second look at it.
    VeryLate,
    /// The answer is made at once, and comes much later.
    Stale,
    /// The engine carries the call out, and once more later.
    Duplicate,
    /// No answer comes, and the call has no effect.
    HungBefore,
    /// The call takes effect, and no answer comes.
    HungAfter,
    /// The node is out of reach for a while.
    Away,
    /// Half of the nodes of the cluster are out of reach for a while.
    HalfAway,
    /// The engine shows an empty store for a while.
    EmptyStore,
    /// The engine shows another store with a mark of its own for a while.
    OtherStore,
    /// The machine of the node boots: what ran has stopped.
    Reboot,
    /// Something else takes a port of the instance, or a free one, for a while.
    PortTaken,
    /// Something else takes the address of the instance, or a free one, for a while.
    AddressTaken,
    /// A machine ends by itself.
    Death,
}

impl Fault {
    pub const ALL: [Self; 19] = [
        Self::Unreachable,
        Self::Refused,
        Self::RetryLater,
        Self::AnswerLost,
        Self::ErrorAfter,
        Self::Late,
        Self::VeryLate,
        Self::Stale,
        Self::Duplicate,
        Self::HungBefore,
        Self::HungAfter,
        Self::Away,
        Self::HalfAway,
        Self::EmptyStore,
        Self::OtherStore,
        Self::Reboot,
        Self::PortTaken,
        Self::AddressTaken,
        Self::Death,
    ];
}

/// When the process that makes the calls ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CrashAt {
    /// Before the call reaches the engine.
    Before,
    /// Before the engine carries the call out, which it does nevertheless.
    Late,
    /// After the call has taken effect, and before its answer.
    After,
}

impl CrashAt {
    pub const ALL: [Self; 3] = [Self::Before, Self::Late, Self::After];
}

/// The choice of faults.
#[derive(Debug, Clone)]
pub enum FaultPlan {
    /// No faults.
    Calm,
    /// A fault at so many of a thousand calls that only read and at three times as many of the others, and a crash
    /// at so many, until there were enough of them.
    Random {
        dice: Dice,
        faults: u64,
        crashes: u64,
        /// The most crashes that are to come.
        left: u64,
    },
    /// One fault, or one crash, or both, at the call with this number.
    At {
        call: u64,
        fault: Option<Fault>,
        crash: Option<CrashAt>,
    },
}

impl FaultPlan {
    /// The fault and the crash at a call, which changes the node or only reads.
    pub fn at(&mut self, number: u64, changes: bool) -> (Option<Fault>, Option<CrashAt>) {
        match self {
            Self::Calm => (None, None),
            Self::At { call, fault, crash } if *call == number => (*fault, *crash),
            Self::At { .. } => (None, None),
            Self::Random {
                dice,
                faults,
                crashes,
                left,
            } => {
                let faults = if changes { *faults * 3 } else { *faults };
                let fault = dice.chance(faults).then(|| dice.pick(&Fault::ALL).copied());
                let crash =
                    (*left > 0 && dice.chance(*crashes)).then(|| dice.pick(&CrashAt::ALL).copied());
                *left -= u64::from(crash.is_some());
                (fault.flatten(), crash.flatten())
            }
        }
    }
}

/// The time after which the host ends a call without an answer.
pub const CALL_BOUND: Duration = Duration::from_secs(30);
/// The longest time after which an engine may carry a call out whose answer was lost, so that Wharf's second look
/// must find it.
pub const LATE: Duration = Duration::from_secs(4);
/// A time after that.
pub const VERY_LATE: Duration = Duration::from_secs(9);
/// The time for which a condition of a node lasts.
const CONDITION: Duration = Duration::from_secs(20);

impl World {
    /// Brings about a condition of a node or of a machine. False if the fault is one of the call itself.
    pub(super) fn strike(&self, name: &NodeId, request: &Request, fault: Fault) -> bool {
        let mut state = self.state.lock();
        let now = self.now();
        let until = now + CONDITION;
        let state = &mut *state;
        if fault == Fault::HalfAway {
            let cluster = state
                .nodes
                .get(name)
                .and_then(|node| node.setup.cluster.clone());
            let members = state.nodes.values_mut();
            let members = members.filter(|node| cluster.is_some() && node.setup.cluster == cluster);
            members.step_by(2).for_each(|node| node.away_until = until);
            return true;
        }
        let Some(node) = state.nodes.get_mut(name) else {
            return false;
        };
        match fault {
            Fault::Away => node.away_until = until,
            Fault::EmptyStore => node.show_other(None, until),
            Fault::OtherStore => node.show_other(Some(&format!("other-{}", state.calls)), until),
            Fault::Reboot => node.boot(),
            Fault::PortTaken | Fault::AddressTaken => {
                if let Request::Ensure(spec) | Request::MoveHere(spec) | Request::Fetch(spec, _) =
                    request
                {
                    let port = spec
                        .published
                        .first()
                        .map(|port| Unique::Port(port.node_port));
                    let address = Unique::Address(spec.target.network.address);
                    let what = port
                        .filter(|_| fault == Fault::PortTaken)
                        .unwrap_or(address);
                    node.taken.push((what, until));
                }
            }
            Fault::Death => {
                let store = node.shown_mut();
                let running = store.machines.iter().filter(|(_, machine)| machine.runs());
                let running: Vec<_> = running.map(|(key, _)| *key).collect();
                if let Some(key) = state.dice.pick(&running) {
                    store.stop(*key, Some("it ended by itself"));
                }
            }
            _ => return false,
        }
        state.note_down(now);
        true
    }
}
