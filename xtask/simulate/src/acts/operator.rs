//! Acts of the operator.

use super::instance::{runs, target};
use crate::act::Args;
use crate::acts;
use crate::model::Ask;
use crate::setup::USERS;
use crate::sim::Sim;
use std::time::Duration;
use tokio::time::sleep;
use wharf_db::Rows as _;
use wharf_domain::ids::NodeId;
use wharf_domain::instance::{Instance, Progress};
use wharf_domain::quota::{Amounts, UserLimit};
use wharf_instances::NodeState;
use wharf_instances::suspension::SUSPENDED;
use wharf_operations::Operator;
use wharf_operations::suspend::Suspended;

acts![
    drain 4,
    end_drain 3,
    relocate 8,
    lose 4,
    accept 4,
    limit 4,
    disable 2,
    enable 4,
    suspend 3,
    resume 3,
    suspend_user 1,
    resume_user 2,
    reload 2,
    adopt_clock 1,
];

const WHO: &str = "operator";

/// A node. Three of four are among those in a state that `fits` accepts, if there are any.
fn node(sim: &Sim, args: Args, fits: impl Fn(&NodeState) -> bool) -> Option<String> {
    let config = sim.app.config();
    let mut names: Vec<_> = config.node.iter().map(|node| node.name.clone()).collect();
    let fits = |name: &String| fits(&sim.app.nodes().state(&NodeId(name.clone())));
    if names.iter().any(fits) && !args.is_one_in(0, 4) {
        names.retain(fits);
    }
    let n = args.number(0, names.len() as u64);
    names.into_iter().nth(usize::try_from(n).ok()?)
}

fn any_node(sim: &Sim, fits: impl Fn(&NodeState) -> bool) -> bool {
    let config = sim.app.config();
    let mut nodes = config.node.iter();
    nodes.any(|node| fits(&sim.app.nodes().state(&NodeId(node.name.clone()))))
}

async fn drain_to(sim: Sim, args: Args, drained: bool) {
    let Some(node) = node(&sim, args, |_| true) else {
        return;
    };
    let words = format!(
        "{} {node}",
        if drained {
            "drains"
        } else {
            "ends the drain of"
        }
    );
    let operator = Operator::of(&sim.app, &sim.accounts);
    let ask = drained.then(|| Ask::Drain(NodeId(node.clone())));
    sim.ask(WHO, words, ask, operator.drain_node(&node, drained), |_| {
        None
    })
    .await;
}

async fn drain(sim: Sim, args: Args) {
    drain_to(sim, args, true).await;
}

async fn end_drain(sim: Sim, args: Args) {
    drain_to(sim, args, false).await;
}

/// Moves an instance to any other node. In most cases, the owner of one that runs permits it before.
async fn relocate(sim: Sim, args: Args) {
    let is_settled = |one: &Instance| one.progress == Progress::Settled && !one.failed;
    let Some(of) = target(&sim, args, is_settled) else {
        return;
    };
    if runs(&of.instance) && !args.is_one_in(3, 4) {
        let words = "lets its instances be moved".to_owned();
        let allowed = async { sim.app.allow_moves(&of.caller, true).await };
        sim.ask(of.who, words, None, allowed, |()| None).await;
    }
    let config = sim.app.config();
    let names = config.node.iter().map(|node| node.name.clone());
    let others: Vec<_> = names.filter(|name| *name != of.instance.node.0).collect();
    let n = usize::try_from(args.number(1, others.len() as u64)).unwrap_or_default();
    let Some(node) = others.into_iter().nth(n) else {
        return;
    };
    let id = of.instance.id.to_string();
    let words = format!("moves {id} to {node}");
    let operator = Operator::of(&sim.app, &sim.accounts);
    sim.ask(WHO, words, None, operator.move_instance(&id, &node), |_| {
        None
    })
    .await;
}

/// Longer than the time in which Wharf sees that a node has changed.
const SEEN: Duration = Duration::from_secs(7);

/// Gives a node up that is out of reach. If none is, one breaks. The owner of a lost instance may create it again, or the
/// operator all of them.
async fn lose(sim: Sim, args: Args) {
    let fits = |state: &NodeState| matches!(state, NodeState::Unreachable(_));
    if !any_node(&sim, fits)
        && let Some(node) = node(&sim, args, |_| true)
    {
        let span = Duration::from_secs(100);
        sim.outside.world.cut_off(&NodeId(node), span);
        sleep(SEEN).await;
    }
    let Some(node) = node(&sim, args, fits) else {
        return;
    };
    let operator = Operator::of(&sim.app, &sim.accounts);
    let ask = Ask::Lose(NodeId(node.clone()));
    let words = format!("gives {node} up as lost");
    let lost = sim
        .ask(WHO, words, Some(ask), operator.lose_node(&node), |_| None)
        .await;
    if lost.is_some_and(|lost| !lost.is_empty()) && args.is_one_in(2, 2) {
        sleep(Duration::from_secs(2)).await;
        if !args.is_one_in(1, 2) {
            return super::instance::recreate(sim, args).await;
        }
        let ask = Ask::Rescue(NodeId(node.clone()));
        let words = format!("makes the instances of {node} again");
        let operator = Operator::of(&sim.app, &sim.accounts);
        let restored = operator.restore_node(&node);
        sim.ask(WHO, words, Some(ask), restored, |_| None).await;
    }
}

/// Accepts the engine of a node with an outage. If there is none, a node gets another store.
async fn accept(sim: Sim, args: Args) {
    let fits = |state: &NodeState| matches!(state, NodeState::Outage(_));
    if !any_node(&sim, fits)
        && let Some(node) = node(&sim, args, |_| true)
    {
        let (node, span) = (NodeId(node), Duration::from_secs(100));
        sim.outside.world.show_other(&node, None, span);
        sleep(SEEN).await;
    }
    let Some(node) = node(&sim, args, fits) else {
        return;
    };
    let operator = Operator::of(&sim.app, &sim.accounts);
    let ask = Ask::Accept(NodeId(node.clone()));
    let words = format!("accepts the engine of {node}");
    let accepted = operator.accept_node(&node);
    // The operator tells the truth: the machine has the store that it shows when Wharf acts on this.
    let of = NodeId(node.clone());
    sim.outside.accepting.lock().insert(of, false);
    sim.ask(WHO, words, Some(ask), accepted, |()| None).await;
}

fn user(args: Args) -> &'static str {
    args.of(0, &USERS).unwrap_or_default()
}

async fn limit(sim: Sim, args: Args) {
    let email = user(args);
    let limit = match args.number(1, 4) {
        0 => UserLimit::Unlimited,
        1 => UserLimit::Default,
        _ => UserLimit::At(args.number(2, 6)),
    };
    let mut limits = Amounts::<Option<UserLimit>>::default();
    match args.number(3, 5) {
        0 => limits.n_instances = Some(limit),
        1 | 3 => limits.n_vcpus = Some(limit),
        2 => limits.n_ports = Some(limit),
        _ => {
            let limit = match limit {
                UserLimit::At(n) => UserLimit::At(n * 25),
                other => other,
            };
            limits.disk_size_gib = Some(limit);
        }
    }
    let words = format!("limits {email}: {limits:?}");
    let operator = Operator::of(&sim.app, &sim.accounts);
    sim.ask(WHO, words, None, operator.limit_user(email, limits), |_| {
        None
    })
    .await;
}

async fn set_disabled(sim: Sim, args: Args, disabled: bool) {
    let email = user(args);
    let words = format!("{} {email}", if disabled { "disables" } else { "enables" });
    sim.ask(
        WHO,
        words,
        None,
        sim.accounts.set_disabled(email, disabled),
        |()| None,
    )
    .await;
}

async fn disable(sim: Sim, args: Args) {
    set_disabled(sim, args, true).await;
}

async fn enable(sim: Sim, args: Args) {
    set_disabled(sim, args, false).await;
}

/// An instance of any user. One that is suspended comes first, or one that is not.
fn instance(sim: &Sim, args: Args, suspended: bool) -> Option<Instance> {
    let is_suspended = |one: &Instance| {
        let row = sim.db.read(|rows| rows.get(&SUSPENDED, one.id));
        row.ok().flatten().is_some()
    };
    let of = target(sim, args, |one| is_suspended(one) == suspended)?;
    Some(of.instance)
}

async fn suspend(sim: Sim, args: Args) {
    let Some(instance) = instance(&sim, args, false) else {
        return;
    };
    let id = instance.id;
    let operator = Operator::of(&sim.app, &sim.accounts);
    let of = Suspended::Instance(id.to_string());
    let words = format!("suspends {id}");
    sim.ask(
        WHO,
        words,
        Some(Ask::Suspend(id)),
        operator.suspend(of, "unpaid"),
        |_| None,
    )
    .await;
}

async fn resume(sim: Sim, args: Args) {
    let Some(instance) = instance(&sim, args, true) else {
        return;
    };
    let id = instance.id;
    let operator = Operator::of(&sim.app, &sim.accounts);
    let of = Suspended::Instance(id.to_string());
    let words = format!("ends the suspension of {id}");
    sim.ask(
        WHO,
        words,
        Some(Ask::Resume(id)),
        operator.resume(of),
        |_| None,
    )
    .await;
}

async fn suspend_user(sim: Sim, args: Args) {
    let email = user(args);
    let operator = Operator::of(&sim.app, &sim.accounts);
    let of = Suspended::User(email.to_owned());
    let words = format!("suspends {email}");
    let ask = user_id(args).map(Ask::SuspendUser);
    sim.ask(WHO, words, ask, operator.suspend(of, "unpaid"), |_| None)
        .await;
}

async fn resume_user(sim: Sim, args: Args) {
    let email = user(args);
    let operator = Operator::of(&sim.app, &sim.accounts);
    let of = Suspended::User(email.to_owned());
    let words = format!("ends the suspension of {email}");
    sim.ask(WHO, words, None, operator.resume(of), |_| None)
        .await;
}

fn user_id(args: Args) -> Option<wharf_domain::ids::UserId> {
    args.of(0, &[1, 2, 3]).map(wharf_domain::ids::UserId)
}

/// Reads the configuration again. A reload keeps the nodes.
async fn reload(sim: Sim, args: Args) {
    let setup = sim.outside.setup;
    let number = usize::try_from(args.number(0, setup.configs.len() as u64)).unwrap_or_default();
    let Some(config) = setup.configs.get(number) else {
        return;
    };
    if config.node.len() != sim.app.config().node.len() {
        return;
    }
    sim.outside
        .trace
        .line(WHO, &format!("reloads, with configuration {number}"));
    *sim.outside.config.lock() = number;
    sim.config.replace(wharf_config::Config::clone(config));
}

async fn adopt_clock(sim: Sim, _: Args) {
    let clock = sim.app.clock().clone();
    let db = sim.db.clone();
    let adopted = async move { clock.adopt(&db).await };
    sim.ask(
        WHO,
        "adopts the system's clock".to_owned(),
        None,
        adopted,
        |_| None,
    )
    .await;
}
