//! A call of a plugin: a fresh guest that makes a blueprint, beside the same function without a
//! sandbox.

use crate::Options;
use crate::pairs::Pairs;
use crate::table::{Reach, Table};
use anyhow::{Context, Result, bail};
use flavors_standard::{catalog, compose};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wharf::domain::capacity::Size;
use wharf::domain::flavor::{BlueprintRequest, Flavor};
use wharf::domain::instance::ResourceType;
use wharf::plugin::{Limits, Plugins, PluginsConfig};

/// Pairs of runs: a call beside the native function, and one thread beside two. Many short ones: how
/// fast a core is, and whether there are two, changes from one tenth of a second to the next.
const TURNS: usize = 101;

/// For about as long as a call through the sandbox takes.
const NATIVE_CALLS: u32 = 25;

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let calls: u32 = if options.quick { 75 } else { 1500 };
    let dir = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let plugins = runtime.block_on(Plugins::load(PluginsConfig {
        cache_dir: dir.path().join("cache"),
        plugins_dir: None,
        limits: Limits::default(),
    }))?;
    let base = plugins
        .flavors()
        .iter()
        .find(|flavor| flavor.name == "base");
    let base = base.context("no base flavor")?;
    let timed = |threads: u32| {
        side_by_side(threads, calls, || {
            let request = request(base);
            // On this thread: not a matter of which worker takes which task when.
            runtime.block_on(async {
                for _ in 0..calls {
                    black_box(plugins.blueprint(&request).await?);
                }
                Ok(())
            })
        })
    };
    let natives = |threads| {
        let calls = calls * NATIVE_CALLS;
        side_by_side(threads, calls, || native(base, calls).map(drop))
    };
    timed(1)?;
    let calls_alone = Pairs::measure(TURNS, || timed(1), || native(base, calls))?;
    // What the machine's cores have to give at that time: the native function's own two threads.
    let both = |threads| Ok((timed(threads)?, natives(threads)?));
    let threads = Pairs::measure(TURNS, || both(1), || both(2))?;
    let (call, native, _) = calls_alone.middle(Duration::as_secs_f64)?;
    let (one, two, times) = threads.middle(|(call, _)| call.as_secs_f64())?;
    let (_, _, cores) = threads.middle(|(_, native)| native.as_secs_f64())?;
    let micros = |time: &Duration| time.as_secs_f64() * 1e6;
    table.row(
        "plugin call, fresh guest, µs",
        (
            format!("{:.1} µs", micros(call)),
            format!("{:.2} µs, the native function", micros(native)),
        ),
        micros(call),
        Reach::AtMost(20.0),
    );
    table.row(
        "plugin calls in two threads",
        (
            format!("{:.0}/s", 1e6 / micros(&two.0)),
            format!(
                "{:.0}/s, in one; {cores:.2}, the native function",
                1e6 / micros(&one.0)
            ),
        ),
        times,
        Reach::AtLeast(1.8),
    );
    Ok(())
}

fn request(flavor: &Arc<Flavor>) -> BlueprintRequest {
    BlueprintRequest {
        flavor: Arc::clone(flavor),
        resource_type: ResourceType::Container,
        size: Size {
            n_vcpus: 2,
            mem_gib: 4,
            disk_size_gib: 20,
        },
        n_gpus: 0,
        login_user: "user".to_owned(),
        public_key: Some(format!("ssh-ed25519 {}", "A".repeat(68))),
        s3_prefill: false,
        ai: false,
    }
}

/// The time for each of the calls, so many of which each thread makes.
fn side_by_side(
    threads: u32,
    calls: u32,
    work: impl Fn() -> Result<()> + Sync,
) -> Result<Duration> {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        threads.into_iter().try_for_each(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| bail!("a thread broke"))
        })
    })?;
    Ok(begin.elapsed() / (threads * calls))
}

fn native(flavor: &Arc<Flavor>, calls: u32) -> Result<Duration> {
    let asked = request(flavor);
    let entry = catalog::ALL
        .iter()
        .find(|entry| entry.name == asked.flavor.name);
    let entry = entry.context("no such flavor")?;
    let begin = Instant::now();
    for _ in 0..calls {
        let request = wharf_guest::BlueprintRequest {
            flavor: asked.flavor.name.clone(),
            resource_type: wharf_guest::ResourceType::Container,
            size: wharf_guest::Size {
                n_vcpus: asked.size.n_vcpus,
                mem_gib: asked.size.mem_gib,
                disk_size_gib: asked.size.disk_size_gib,
            },
            n_gpus: 0,
            login_user: asked.login_user.clone(),
            public_key: asked.public_key.clone(),
            s3_prefill: false,
            ai: false,
        };
        let blueprint = compose::blueprint(entry, black_box(&request));
        black_box(blueprint.map_err(|error| anyhow::anyhow!("{error:?}"))?);
    }
    Ok(begin.elapsed() / calls)
}
