//! A call of a plugin: a fresh guest that makes a blueprint, beside the same function without a
//! sandbox.

use crate::Options;
use crate::pairs::Pairs;
use crate::table::{Reach, Table};
use anyhow::{Context, Result, bail};
use flavors_standard::{catalog, compose};
use std::hint::black_box;
use std::time::{Duration, Instant};
use wharf::domain::capacity::Size;
use wharf::domain::flavor::BlueprintRequest;
use wharf::domain::instance::ResourceType;
use wharf::plugin::{Limits, Plugins, PluginsConfig};

/// Pairs of runs: a call beside the native function, and one thread beside two.
const TURNS: usize = 15;

/// For about as long as a call through the sandbox takes.
const NATIVE_CALLS: u32 = 25;

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let calls: u32 = if options.quick { 500 } else { 20_000 };
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
    let timed = |threads: u32| -> Result<Duration> {
        runtime.block_on(async {
            let begin = Instant::now();
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..threads {
                let plugins = plugins.clone();
                tasks.spawn(async move {
                    let request = request();
                    for _ in 0..calls {
                        black_box(plugins.blueprint(&request).await?);
                    }
                    Ok::<_, wharf::domain::driver::PluginError>(())
                });
            }
            while let Some(done) = tasks.join_next().await {
                done??;
            }
            Ok(begin.elapsed() / (threads * calls))
        })
    };
    timed(1)?;
    let calls_alone = Pairs::measure(TURNS, || timed(1), || native(calls))?;
    let threads = Pairs::measure(TURNS, || timed(1), || timed(2))?;
    // What the machine's two cores have to give at that time.
    let natives = |threads| natives(threads, calls * NATIVE_CALLS);
    let machine = Pairs::measure(TURNS, || natives(1), || natives(2))?;
    let (_, _, cores) = machine.middle(Duration::as_secs_f64)?;
    let (call, native, _) = calls_alone.middle(Duration::as_secs_f64)?;
    let (one, two, times) = threads.middle(Duration::as_secs_f64)?;
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
            format!("{:.0}/s", 1e6 / micros(two)),
            format!(
                "{:.0}/s, in one; {cores:.2}, the native function",
                1e6 / micros(one)
            ),
        ),
        times,
        Reach::AtLeast(1.8),
    );
    Ok(())
}

fn request() -> BlueprintRequest {
    BlueprintRequest {
        flavor: "base".to_owned(),
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

/// The native function in threads side by side.
fn natives(threads: u32, calls: u32) -> Result<Duration> {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| native(calls)))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| bail!("a thread broke")).map(drop)
        })
    })?;
    Ok(begin.elapsed() / (threads * calls))
}

fn native(calls: u32) -> Result<Duration> {
    let asked = request();
    let entry = catalog::ALL.iter().find(|entry| entry.name == asked.flavor);
    let entry = entry.context("no such flavor")?;
    let begin = Instant::now();
    for _ in 0..calls {
        let request = wharf_guest::BlueprintRequest {
            flavor: asked.flavor.clone(),
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
