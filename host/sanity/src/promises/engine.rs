//! The node as a whole.

use super::Verdict;
use crate::subject::Subject;
use anyhow::{Result, bail, ensure};
use wharf_domain::driver::{PluginError, StoreMark};

pub async fn probe(subject: &Subject) -> Result<Verdict> {
    let health = subject.driver().probe().await?;
    ensure!(!health.version.is_empty(), "no version");
    let features = health.features;
    ensure!(
        features.containers || features.vms,
        "neither containers nor VMs: {features:?}"
    );
    ensure!(
        features == subject.health.features,
        "the features change from call to call"
    );
    Ok(Verdict::Kept)
}

pub async fn unreachable(subject: &Subject) -> Result<Verdict> {
    let Some(driver) = &subject.drivers.without_engine else {
        return Ok(Verdict::NotApplicable("a simulated engine is always there"));
    };
    let target = subject.spec()?.target;
    let is_unreachable = |error: Option<PluginError>, function: &str| match error {
        Some(PluginError::Unreachable(_)) => Ok(()),
        Some(other) => bail!("{function} does not call the engine unreachable: {other}"),
        None => bail!("{function} succeeds without an engine"),
    };
    is_unreachable(driver.probe().await.err(), "probe")?;
    is_unreachable(driver.list().await.err(), "list")?;
    let inspected = driver.inspect(target.tag, target.generation).await;
    is_unreachable(inspected.err(), "inspect")?;
    is_unreachable(driver.delete(&target).await.err(), "delete")?;
    Ok(Verdict::Kept)
}

pub async fn mark(subject: &Subject) -> Result<Verdict> {
    let driver = subject.driver();
    match driver.identify().await? {
        StoreMark::Missing => {}
        StoreMark::Unsupported => {
            return Ok(Verdict::NotApplicable("the driver keeps no marks"));
        }
        mark if mark.is_volatile() => {
            return Ok(Verdict::NotApplicable("the store is volatile"));
        }
        mark => bail!("a new installation has {mark:?}"),
    }
    let first = StoreMark::Is("first-1".to_owned());
    driver.mark("first-1").await?;
    ensure!(driver.identify().await? == first, "the mark is not kept");
    driver.mark("second-2").await?;
    ensure!(driver.identify().await? == first, "the mark was replaced");
    let other = subject.drivers.other.identify().await?;
    ensure!(other == StoreMark::Missing, "shared mark: {other:?}");
    Ok(Verdict::Kept)
}
