//! Figures, printed on demand: `cargo test --release -p wharf --lib plugin::tests::speed -- --ignored --nocapture`.

use super::{Scratch, node, spec};
use crate::domain::ids::Generation;
use crate::domain::secret::Secrets;
use crate::plugin::load::first_call;
use crate::plugin::{Limits, Plugins};
use serde_json::json;
use std::time::Instant;

const CALLS: u32 = 20_000;

/// A fresh guest under all its limits, and a function that does nothing.
async fn null(plugins: &Plugins) {
    let inner = &plugins.0;
    let pre = inner.drivers["simulated"].pre.clone();
    let kind = inner
        .caller
        .run(
            first_call(&inner.caller, "driver-simulated", "engine-kind"),
            |mut store| async move {
                let guest = pre.instantiate_async(&mut store).await?;
                guest
                    .wharf_plugin_driver()
                    .call_engine_kind(&mut store)
                    .await
            },
        )
        .await
        .unwrap();
    assert_eq!(kind, "simulated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures, decides nothing"]
async fn calls() {
    let scratch = Scratch::new();
    let started = Instant::now();
    let plugins = Plugins::load(scratch.config(Limits::default()))
        .await
        .unwrap();
    println!("compile and load: {:?}", started.elapsed());
    let started = Instant::now();
    let _again = Plugins::load(scratch.config(Limits::default()))
        .await
        .unwrap();
    println!("load what is compiled: {:?}", started.elapsed());

    let started = Instant::now();
    for _ in 0..CALLS {
        null(&plugins).await;
    }
    println!(
        "fresh guest, null call: {:?} each",
        started.elapsed() / CALLS
    );

    let driver = node(&plugins, "simulated", "simulated:", json!({}));
    let spec = spec(1);
    driver.ensure(&spec, &Secrets::default()).await.unwrap();
    for _ in 0..2 {
        let started = Instant::now();
        for _ in 0..CALLS {
            driver
                .inspect(spec.target.tag, Generation(1))
                .await
                .unwrap();
        }
        println!(
            "inspect, engine request included: {:?} each",
            started.elapsed() / CALLS
        );
    }
    let started = Instant::now();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (driver, tag) = (driver.clone(), spec.target.tag);
            tokio::spawn(async move {
                for _ in 0..CALLS {
                    driver.inspect(tag, Generation(1)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    println!(
        "8 tasks: {:.0} calls/s",
        f64::from(8 * CALLS) / started.elapsed().as_secs_f64()
    );
    let started = Instant::now();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let plugins = plugins.clone();
            tokio::spawn(async move {
                for _ in 0..CALLS {
                    null(&plugins).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    println!(
        "8 tasks: {:.0} null calls/s",
        f64::from(8 * CALLS) / started.elapsed().as_secs_f64()
    );
}
