//! Acts of the machine that Wharf runs on.

use crate::act::Args;
use crate::acts;
use crate::disk::DiskFault;
use crate::sim::{EndOfProcess, Sim};

acts![
    kill 2,
    cut_power 2,
    restart_server 1,
    break_disk 1,
    fill_disk 1,
    step_clock 3,
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
