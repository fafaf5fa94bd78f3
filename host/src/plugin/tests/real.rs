//! The docker driver against a real engine: `WHARF_TEST_ENGINE=unix:///… cargo test --release -p wharf --lib
//! plugin::tests::real -- --ignored --nocapture`, with an image `localhost/wharf/base:1` on it.

use super::{Scratch, node, spec};
use crate::domain::blueprint::{Content, File, Image};
use crate::domain::driver::{Phase, PluginError};
use crate::domain::ids::Generation;
use crate::domain::secret::{SecretKind, SecretText, Secrets};
use crate::plugin::{Limits, Plugins};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine"]
async fn a_container_lives_and_goes() {
    let endpoint = std::env::var("WHARF_TEST_ENGINE").unwrap();
    let scratch = Scratch::new();
    let plugins = Plugins::load(scratch.config(Limits::default()))
        .await
        .unwrap();
    let driver = node(
        &plugins,
        "docker",
        &endpoint,
        json!({ "publish_address": "127.0.0.1" }),
    );
    println!("{:?}", driver.probe().await.unwrap());
    let mut spec = spec(7);
    spec.target.network.id = "h3test".into();
    spec.target.network.subnet = "10.99.7.0/24".parse().unwrap();
    spec.target.network.gateway = "10.99.7.1".parse().unwrap();
    spec.target.network.address = "10.99.7.9".parse().unwrap();
    let reference = "localhost/wharf/base:1".to_owned();
    spec.blueprint.images = vec![Image {
        engine_kind: "docker".into(),
        reference,
    }];
    let file = |path: &str, content| File {
        path: path.into(),
        mode: 0o600,
        uid: 0,
        gid: 0,
        content,
    };
    spec.blueprint.files = vec![
        file(
            "/etc/wharf/first-boot/user",
            Content::Bytes(b"user".to_vec()),
        ),
        file(
            "/etc/wharf/first-boot/password",
            Content::SecretCrypt(SecretKind::Password),
        ),
    ];
    let secrets = Secrets(vec![(
        SecretKind::Password,
        SecretText::new("correct horse"),
    )]);
    let started = Instant::now();
    loop {
        let report = driver.ensure(&spec, &secrets).await.unwrap();
        println!("{:?} {report:?}", started.elapsed());
        if report.phase == Phase::Booting || report.phase == Phase::Ready {
            break;
        }
        tokio::time::sleep(report.again.unwrap()).await;
    }
    let target = spec.target.clone();
    println!(
        "{:?}",
        driver.inspect(target.tag, Generation(1)).await.unwrap()
    );
    println!("{:?}", driver.stats(target.tag).await.unwrap());
    println!("{:?}", driver.list().await.unwrap());
    let mut larger = target.clone();
    larger.size.mem_gib = 3;
    println!("{:?}", driver.resize(&larger).await);
    let started = Instant::now();
    const CALLS: u32 = 300;
    for _ in 0..CALLS {
        driver.inspect(target.tag, Generation(1)).await.unwrap();
    }
    println!("inspect: {:?} each", started.elapsed() / CALLS);
    println!(
        "{:?}",
        driver.stop(&larger, Duration::from_secs(1)).await.unwrap()
    );
    println!("{:?}", driver.start(&larger).await.unwrap());
    assert_eq!(driver.delete(&larger).await.unwrap().phase, Phase::Absent);
    assert_eq!(
        driver
            .inspect(target.tag, Generation(1))
            .await
            .unwrap()
            .phase,
        Phase::Absent
    );
    assert!(driver.list().await.unwrap().is_empty());
    assert!(matches!(
        driver.start(&larger).await,
        Err(PluginError::NotFound)
    ));
}
