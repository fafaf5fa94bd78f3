//! Calls that the host abandons, as when it is killed, and calls beside each other.

use super::Verdict;
use crate::subject::{GRACE, Subject};
use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use std::time::Duration;
use wharf_domain::driver::Phase;

/// Instances at once.
const INSTANCES: usize = 4;
/// Points of an interruption, from the begin of the call.
const AFTER_MS: [u64; 6] = [0, 5, 20, 60, 150, 400];

pub async fn at_once(subject: &Subject) -> Result<Verdict> {
    let specs = try_join_all((0..INSTANCES).map(|_| subject.up())).await?;
    let listed = subject.listed().await?;
    ensure!(
        listed.len() == INSTANCES,
        "{INSTANCES} instances exist, and list has {listed:?}"
    );
    try_join_all(specs.iter().map(|spec| subject.stop(&spec.target))).await?;
    try_join_all(specs.iter().map(|spec| subject.remove(&spec.target))).await?;
    let listed = subject.listed().await?;
    ensure!(listed.is_empty(), "list still has {listed:?}");
    Ok(Verdict::Kept)
}

pub async fn ensure(subject: &Subject) -> Result<Verdict> {
    for after in AFTER_MS.map(Duration::from_millis) {
        let mut spec = subject.spec()?;
        drop(tokio::time::timeout(after, subject.ensure(&spec)).await);
        spec.may_exist = true;
        subject.bring_up(&spec).await?;
        let listed = subject.listed().await?;
        ensure!(listed.len() == 1, "after {after:?}: {listed:?}");
        subject.remove(&spec.target).await?;
    }
    Ok(Verdict::Kept)
}

pub async fn others(subject: &Subject) -> Result<Verdict> {
    for after in AFTER_MS.map(Duration::from_millis) {
        let target = subject.up().await?.target;
        let driver = subject.driver();
        drop(tokio::time::timeout(after, driver.stop(&target, GRACE)).await);
        subject.stop(&target).await?;
        drop(tokio::time::timeout(after, driver.start(&target)).await);
        subject.start_until_ready(&target).await?;
        let tag = target.tag;
        drop(tokio::time::timeout(after, driver.delete(&target)).await);
        subject.remove(&target).await?;
        let phase = subject.phase(tag).await?;
        ensure!(phase == Phase::Absent, "after {after:?}: {phase:?}");
    }
    Ok(Verdict::Kept)
}
