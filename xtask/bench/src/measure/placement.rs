//! The scheduler, beside a scan of the free sizes alone.

use crate::Options;
use crate::table::{Curve, Reach, Table};
use anyhow::{Result, bail};
use ipnet::Ipv4Net;
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Instant;
use wharf::domain::capacity::{CpuTier, Size};
use wharf::domain::ids::{NodeId, UserId};
use wharf::domain::instance::ResourceType;
use wharf::placement::{Inventory, NodeSetup, PlacementRequest, Pools};

const CAPACITY: Size = Size {
    n_vcpus: 64,
    mem_gib: 256,
    disk_size_gib: 2_000,
};
/// Placements that are timed, at nodes in use.
const TIMED: u32 = 2_000;

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let most = if options.quick { 100 } else { 10_000 };
    let sizes: Vec<usize> = [1, 10, 100, 1_000, 10_000]
        .into_iter()
        .filter(|size| *size <= most)
        .collect();
    let (mut ours, mut scans) = (Vec::new(), Vec::new());
    for size in sizes {
        let (place, scan) = measure(size)?;
        ours.push((size as f64, place));
        scans.push((size as f64, scan));
    }
    // A placement is a small part of the commit that follows it.
    if let Some((nodes, place)) = ours.iter().rfind(|(nodes, _)| *nodes <= 1_000.0)
        && let Some((_, scan)) = scans.iter().find(|(size, _)| size == nodes)
    {
        table.row(
            format!("placement over {nodes} nodes, µs"),
            (
                format!("{place:.1} µs"),
                format!("{scan:.1} µs, of the sizes alone"),
            ),
            *place,
            Reach::AtMost(100.0),
        );
    }
    table.curve(Curve {
        name: "placement".to_owned(),
        size: "nodes".to_owned(),
        unit: "µs for one placement".to_owned(),
        lines: vec![
            ("Wharf".to_owned(), ours),
            ("linear scan".to_owned(), scans),
        ],
        why: "The scheduler looks at every node.",
    });
    Ok(())
}

/// Microseconds for one placement in a cluster that is half full, ours and by a scan.
fn measure(nodes: usize) -> Result<(f64, f64)> {
    let setups = (0..nodes).map(|n| NodeSetup {
        id: NodeId(format!("n{n:05}")),
        capacity: CAPACITY,
        gpus: Vec::new(),
        cpu_tiers: vec![CpuTier::GeneralPurpose],
        ssh_host: format!("n{n}.example.org"),
        lan_cidr: Ipv4Net::new_assert(Ipv4Addr::new(10, 80, 0, 0), 16),
        lan_subnet_prefix: 24,
        public_ipv4: Vec::new(),
    });
    let pools = Pools {
        ssh: (20_000, 29_999),
        web: (30_000, 32_000),
    };
    let mut inventory = Inventory::new(setups.collect(), pools);
    let mut free = vec![CAPACITY; nodes];
    let mut random = Random(42);
    for n in 0..nodes as u64 * 6 {
        let ask = random.ask(n % 50);
        let Ok(placement) = inventory.place(&ask) else {
            continue;
        };
        let number: usize = placement.claim.node.0.trim_start_matches('n').parse()?;
        if let Some(free) = free.get_mut(number) {
            free.n_vcpus -= ask.size.n_vcpus;
            free.mem_gib -= ask.size.mem_gib;
            free.disk_size_gib -= ask.size.disk_size_gib;
        }
        inventory.add(&placement.claim);
    }
    let asks: Vec<_> = (0..TIMED).map(|n| random.ask(u64::from(n % 50))).collect();
    let begin = Instant::now();
    for ask in &asks {
        if black_box(inventory.place(ask)).is_err() {
            bail!("a half full cluster has no room");
        }
    }
    let place = begin.elapsed();
    let begin = Instant::now();
    for ask in &asks {
        black_box(scan(&free, ask.size));
    }
    let scan = begin.elapsed();
    let each = |time: std::time::Duration| time.as_secs_f64() * 1e6 / f64::from(TIMED);
    Ok((each(place), each(scan)))
}

/// The node with the most left, by looking at what is free of every one, and at nothing else.
fn scan(free: &[Size], asked: Size) -> Option<usize> {
    let share = |free: u32, asked: u32, total: u32| {
        let left = free.checked_sub(asked)?;
        Some(f64::from(left) / f64::from(total))
    };
    let left = |free: &Size| {
        let cpus = share(free.n_vcpus, asked.n_vcpus, CAPACITY.n_vcpus)?;
        let mem = share(free.mem_gib, asked.mem_gib, CAPACITY.mem_gib)?;
        let disk = share(
            free.disk_size_gib,
            asked.disk_size_gib,
            CAPACITY.disk_size_gib,
        )?;
        Some(cpus.min(mem).min(disk))
    };
    let nodes = free.iter().enumerate();
    nodes
        .filter_map(|(number, free)| Some((number, left(free)?)))
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(number, _)| number)
}

/// The same sequence in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 % bound + 1
    }

    fn ask(&mut self, owner: u64) -> PlacementRequest {
        PlacementRequest {
            owner: UserId(owner),
            resource_type: ResourceType::Container,
            size: Size {
                n_vcpus: self.below(10),
                mem_gib: self.below(40),
                disk_size_gib: self.below(300),
            },
            cpu_tier: CpuTier::GeneralPurpose,
            gpu_model: None,
            web: false,
        }
    }
}
