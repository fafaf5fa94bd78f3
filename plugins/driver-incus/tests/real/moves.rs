//! The move of an instance from one member to another.

use crate::given::{Rig, spec, target};
use driver_incus::{delete, inspect, lifecycle, relocate};
use std::time::Instant;
use wharf_guest::{Phase, PublishedPort, Spec};

/// The instance with its addresses and ports on the second member.
fn there(n: u8) -> Spec {
    let mut spec = spec(n);
    spec.generation += 1;
    spec.network.address = format!("10.79.6.{}", n + 1);
    spec.network.subnet = "10.79.6.0/24".into();
    spec.published = vec![PublishedPort {
        node_port: 21_000 + u16::from(n),
        instance_port: 22,
    }];
    spec
}

pub fn stopped(rig: &mut Rig) {
    rig.make(0, &spec(30));
    rig.run(&spec(30), "echo precious >/root/kept");
    // One that runs is only reported.
    let report = rig.call(1, |ctx| relocate::move_here(ctx, &there(30)));
    let phase = report.unwrap().phase;
    assert!(matches!(phase, Phase::Ready), "{phase:?}");
    let stopped = |phase: &Phase| matches!(phase, Phase::Stopped(_));
    // Any member stops it.
    rig.wait_for(1, &spec(30).tag, stopped, |ctx| {
        lifecycle::stop(ctx, &target(&spec(30)), 10_000)
    });
    let begun = Instant::now();
    rig.wait_for(1, &spec(30).tag, stopped, |ctx| {
        relocate::move_here(ctx, &there(30))
    });
    eprintln!("  a move: {:.1?}", begun.elapsed());
    let phase = rig.phase(0, &spec(30));
    assert!(matches!(phase, Phase::Elsewhere(_)), "{phase:?}");
    let report = rig.call(0, |ctx| lifecycle::start(ctx, &target(&spec(30))));
    let phase = report.unwrap().phase;
    assert!(matches!(phase, Phase::Elsewhere(_)), "{phase:?}");
    let listed = |rig: &Rig, member| rig.call(member, inspect::list).unwrap().len();
    assert_eq!((listed(rig, 0), listed(rig, 1)), (0, 1));
    // It is repeated after an answer that was lost.
    let report = rig.call(1, |ctx| relocate::move_here(ctx, &there(30)));
    assert!(stopped(&report.unwrap().phase));
    let up = |phase: &Phase| matches!(phase, Phase::Ready);
    rig.wait_for(1, &there(30).tag, up, |ctx| {
        lifecycle::start(ctx, &target(&there(30)))
    });
    rig.await_banner(1, &there(30));
    assert_eq!(rig.run(&there(30), "cat /root/kept").trim(), "precious");
    let addresses = rig.run(&there(30), "ip -brief address show eth0");
    assert!(addresses.contains("10.79.6.31"), "{addresses}");
    // The old member removes it too.
    let gone = |phase: &Phase| matches!(phase, Phase::Absent);
    rig.wait_for(0, &there(30).tag, gone, |ctx| {
        delete::delete(ctx, &target(&there(30)))
    });
    assert_eq!((listed(rig, 0), listed(rig, 1)), (0, 0));
    let report = rig.call(1, |ctx| relocate::move_here(ctx, &there(30)));
    assert!(gone(&report.unwrap().phase));
}
