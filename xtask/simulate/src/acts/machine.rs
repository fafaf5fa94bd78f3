//! Acts of machines: the one that Wharf runs on, and nodes.

use crate::act::Args;
use crate::acts;
use crate::disk::DiskFault;
use crate::sim::{EndOfProcess, Sim};
use std::time::Duration;
use wharf_domain::ids::NodeId;

acts![
    kill 4,
    cut_power 2,
    restart_server 1,
    switch_off 4,
    break_disk 1,
    fill_disk 1,
    copy_file 2,
    bring_file_back 2,
    step_clock 3,
    cut_off 3,
    change_store 3,
];

const WHO: &str = "machine";

async fn kill(sim: Sim, _: Args) {
    sim.outside.end.ask(EndOfProcess::Kill);
}

async fn cut_power(sim: Sim, _: Args) {
    sim.outside.end.ask(EndOfProcess::PowerCut);
}

/// Ends Wharf in order, and starts it with another configuration, which may have other nodes.
async fn restart_server(sim: Sim, args: Args) {
    let configs = sim.outside.setup.configs.len() as u64;
    let number = usize::try_from(args.number(0, configs)).unwrap_or_default();
    sim.outside.end.ask(EndOfProcess::Restart(number));
}

/// Ends Wharf for some hours, in which plans become due.
async fn switch_off(sim: Sim, args: Args) {
    let hours = args.number(0, 3) + 1;
    sim.outside.end.ask(EndOfProcess::SwitchOff(hours));
}

fn strike(sim: &Sim, fault: DiskFault) {
    sim.outside.trace.line(WHO, &format!("the disk: {fault:?}"));
    sim.outside.disk.lock().strike(Some(fault));
}

async fn break_disk(sim: Sim, args: Args) {
    let fault = if args.is_one_in(0, 3) {
        DiskFault::SyncFails
    } else {
        DiskFault::CutAfter(args.number(1, 60))
    };
    strike(&sim, fault);
}

async fn fill_disk(sim: Sim, args: Args) {
    strike(&sim, DiskFault::FullAfter(args.number(1, 60)));
}

/// Copies the file of the database, in place of an earlier copy.
async fn copy_file(sim: Sim, _: Args) {
    let outside = &sim.outside;
    outside.trace.line(WHO, "copies the file of the database");
    let copy = (
        outside.disk.lock().after_kill(),
        outside.model.lock().clone(),
    );
    *outside.copy.lock() = Some(copy);
}

/// Ends Wharf, and puts the copy in the place of the file.
async fn bring_file_back(sim: Sim, _: Args) {
    if sim.outside.copy.lock().is_some() {
        sim.outside.end.ask(EndOfProcess::EarlierFile);
    }
}

/// The largest steps are a day, which Wharf does not follow.
const STEPS: [i64; 6] = [
    -86_400_000,
    -3_600_000,
    -2_000,
    2_000,
    3_600_000,
    86_400_000,
];

async fn step_clock(sim: Sim, args: Args) {
    let step = args.of(0, &STEPS).unwrap_or_default();
    sim.outside
        .trace
        .line(WHO, &format!("the system's clock steps by {step} ms"));
    sim.outside.time.step_wall(step);
}

/// A number of seconds: shorter and longer than those for which Wharf waits.
const SPANS: [u64; 4] = [2, 20, 60, 300];

/// A node, and a time.
fn node_for(sim: &Sim, args: Args) -> Option<(NodeId, Duration)> {
    let nodes = sim.outside.setup.nodes();
    let n = args.number(0, nodes.len() as u64);
    let node = nodes.into_iter().nth(usize::try_from(n).ok()?)?;
    Some((node.name, Duration::from_secs(args.of(1, &SPANS)?)))
}

/// A node is out of reach for a while.
async fn cut_off(sim: Sim, args: Args) {
    if let Some((node, span)) = node_for(&sim, args) {
        let words = format!("is out of reach for {} s", span.as_secs());
        sim.outside.trace.line(&node.0, &words);
        sim.outside.world.cut_off(&node, span);
    }
}

/// The engine of a node shows another store for a while, which may have a mark.
async fn change_store(sim: Sim, args: Args) {
    if let Some((node, span)) = node_for(&sim, args) {
        let mark = args
            .is_one_in(2, 2)
            .then(|| format!("other-{}", args.number(3, 1000)));
        let words = format!("shows another store for {} s: {mark:?}", span.as_secs());
        sim.outside.trace.line(&node.0, &words);
        sim.outside.world.show_other(&node, mark.as_deref(), span);
    }
}
