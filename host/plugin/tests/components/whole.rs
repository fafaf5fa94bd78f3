//! The life of an instance through the simulated driver, its guest and its engine.

use crate::{Scratch, id, node, spec};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use wharf_domain::driver::{Phase, PluginError, Tag};
use wharf_domain::flavor::{BlueprintRequest, Flavor};
use wharf_domain::ids::Generation;
use wharf_domain::secret::InstanceSecrets;
use wharf_plugin::{CallLimits, Plugins};

#[tokio::test]
async fn an_instance_lives_and_goes() {
    let scratch = Scratch::new();
    let plugins = Plugins::load(scratch.config(CallLimits::default()))
        .await
        .unwrap();
    let capacity = json!({ "n_vcpus": 4, "mem_gib": 8, "disk_size_gib": 100 });
    let driver = node(
        &plugins,
        "simulated",
        "simulated:",
        json!({ "capacity": capacity, "ready_after_ms": 20 }),
    );
    assert_eq!(driver.engine_kind(), "simulated");
    let health = driver.probe().await.unwrap();
    assert_eq!(health.totals.mem_gib, 8);
    assert!(!health.features.network);

    let spec = spec(1);
    let target = spec.target.clone();
    let secrets = InstanceSecrets::default();
    let report = driver.ensure(&spec, &secrets).await.unwrap();
    assert_eq!(
        (report.generation, report.phase),
        (Generation(5), Phase::Booting)
    );
    tokio::time::sleep(report.again.unwrap()).await;
    let seen = driver.inspect(target.tag, Generation(9)).await.unwrap();
    assert_eq!((seen.generation, seen.phase), (Generation(9), Phase::Ready));
    assert_eq!(driver.list().await.unwrap().len(), 1);
    assert!(driver.stats(target.tag, true).await.unwrap().mem_used_bytes > 0);

    let mut larger = target.clone();
    larger.size.mem_gib = 9;
    let refused = driver.resize(&larger).await.unwrap_err();
    assert!(matches!(refused, PluginError::Insufficient(list) if list[0].field == "mem_gib"));
    larger.size.mem_gib = 8;
    driver.resize(&larger).await.unwrap();

    let grace = Duration::from_secs(1);
    assert_eq!(
        driver.stop(&larger, grace).await.unwrap().phase,
        Phase::Stopped(None)
    );
    assert_eq!(
        driver.ensure(&spec, &secrets).await.unwrap().phase,
        Phase::Stopped(None)
    );
    assert_eq!(driver.start(&larger).await.unwrap().phase, Phase::Booting);
    assert_eq!(driver.delete(&larger).await.unwrap().phase, Phase::Absent);
    assert_eq!(driver.delete(&larger).await.unwrap().phase, Phase::Absent);
    assert!(matches!(
        driver.start(&larger).await,
        Err(PluginError::NotFound)
    ));
    assert_eq!(
        driver
            .inspect(target.tag, Generation(1))
            .await
            .unwrap()
            .phase,
        Phase::Absent
    );
}

#[tokio::test]
async fn a_long_list_comes_whole() {
    let scratch = Scratch::new();
    let plugins = Plugins::load(scratch.config(CallLimits::default()))
        .await
        .unwrap();
    let driver = node(&plugins, "simulated", "simulated:", json!(null));
    let count = 45_000;
    for n in 0..count {
        driver
            .ensure(&spec(n), &InstanceSecrets::default())
            .await
            .unwrap();
    }
    let list = driver.list().await.unwrap();
    assert_eq!(list.len(), count as usize);
    assert!(list.iter().any(|row| row.tag
        == Tag {
            instance: id(44_999),
            incarnation: 1
        }));
}

#[tokio::test]
async fn every_flavor_has_a_blueprint_for_each_of_its_kinds() {
    let scratch = Scratch::new();
    let plugins = Plugins::load(scratch.config(CallLimits::default()))
        .await
        .unwrap();
    assert!(plugins.flavors().iter().any(|flavor| flavor.name == "base"));
    for flavor in plugins.flavors() {
        for kind in &flavor.resource_types {
            let mut request = BlueprintRequest {
                flavor: Arc::clone(flavor),
                resource_type: *kind,
                size: flavor.minimum,
                n_gpus: 0,
                login_user: "user".into(),
                public_key: Some("ssh-ed25519 AAAA x".into()),
                s3_prefill: flavor.s3_prefill,
                ai: flavor.ai,
                private_page: false,
            };
            let blueprint = plugins.blueprint(&request).await.unwrap();
            assert_eq!(
                blueprint,
                plugins.blueprint(&request).await.unwrap(),
                "pure"
            );
            assert!(
                blueprint
                    .images
                    .iter()
                    .any(|image| image.engine_kind == "simulated"),
                "{}",
                flavor.name
            );
            assert!(blueprint.ssh, "{}", flavor.name);
            request.flavor = Arc::new(Flavor {
                name: "nothing".into(),
                ..Flavor::clone(flavor)
            });
            assert_eq!(
                plugins.blueprint(&request).await,
                Err(PluginError::NotFound)
            );
        }
    }
}
